"""Which cases run by default: of a grid those that cover each value of each parameter, and one in so many of the
others; of other tests those that are named.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent

GRID = """
import pytest

@pytest.mark.grid(every=3)
@pytest.mark.parametrize("plan", ["a", "b", "c", "d"])
@pytest.mark.parametrize("size", [1, 2, pytest.param(3, marks=pytest.mark.cuda)])
def test_all(size, plan):
    pass

def test_alone():
    pass

@pytest.mark.quick("b", "c")
@pytest.mark.parametrize("letter", ["a", "b", "c", pytest.param("d", marks=pytest.mark.cuda)])
def test_named(letter):
    pass

@pytest.mark.slow_cases("b")
@pytest.mark.parametrize("letter", ["a", "b"])
def test_but_one(letter):
    pass
"""
MISNAMED = (
    (
        '@pytest.mark.quick("b", "c")',
        '@pytest.mark.quick("b", "e")',
        "test_named has no cases ['e'], which are named quick",
    ),
    ('cases("b")', 'cases("c")', "test_but_one has no cases ['c'], which are named slow_cases"),
)


def test_every_value_runs(tmp_path: Path) -> None:
    (tmp_path / "test_grid.py").write_text(GRID)
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_collection_modifyitems\n")
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nmarkers =\n  grid(every): g\n  quick(ids): q\n  slow_cases(ids): s\n  slow: s\n  cuda: c\n"
    )

    def said(*arguments: str) -> str:
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--collect-only", "-q", *arguments]
        done = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, check=False, cwd=ROOT)
        return done.stdout + done.stderr

    def collected(*arguments: str) -> list[str]:
        return [line.partition("::")[2] for line in said(*arguments).splitlines() if "::" in line]

    everything, quick, slow = collected(), collected("-m", "not slow"), collected("-m", "slow")
    assert len(everything) == 19
    assert quick == [
        "test_all[1-a]",
        "test_all[1-c]",
        "test_all[1-d]",
        "test_all[2-b]",  # now each size and each plan was there
        "test_all[2-c]",  # the third of the others
        *(f"test_all[3-{p}]" for p in "abcd"),  # on a GPU all
        "test_alone",
        *(f"test_named[{n}]" for n in "bcd"),
        "test_but_one[a]",
    ]
    assert sorted(quick + slow) == sorted(everything)
    for right, wrong, what in MISNAMED:
        (tmp_path / "test_grid.py").write_text(GRID.replace(right, wrong))
        assert what in said()
