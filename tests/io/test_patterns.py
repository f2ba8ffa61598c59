"""Files and folders whose names have marks of patterns in them: they stand for themselves, wherever the package looks
for files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import lanewise
from lanewise.io.source import matching
from lanewise.sims.gravity.options import Output
from lanewise.sims.gravity.runner import start
from lanewise.sims.waves.sft import DetectorSfts, SftSet, load_sfts, write_sfts
from lanewise.sims.waves.units.run import SEARCH, forget
from lanewise.support.errors import InputError

MARKED = ("a[1]", "a[", "[a-z]", "a]b[", "[!x]", "a?", "a*", "[[]", "**")
"""Names that stand for others, or for nothing, where they are read as patterns."""


def decoys(folder: Path) -> None:
    """What the marked names match as patterns."""
    for name in ("a1", "a", "b", "ab", "xx", "[", "a[2]"):
        (folder / name).mkdir(parents=True)
        (folder / name / "decoy.sft").write_text("")


def sft_set() -> SftSet:
    data = np.ones((2, 16), np.complex64)
    return SftSet(
        (
            DetectorSfts(
                "H1", np.array([1_000_000_000, 1_000_001_800]) * 10**9, 1800.0, 100, data, np.full(2, 3, np.uint8),
                np.full(2, 1, np.uint16), (b"\0" * 8,) * 2,
            ),
        ),
        (),
    )  # fmt: skip


@pytest.mark.parametrize("name", MARKED)
def test_sfts_of_a_marked_folder(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoys(tmp_path)
    (tmp_path / name).mkdir()
    written = write_sfts(tmp_path / name, sft_set())
    monkeypatch.chdir(tmp_path)
    for pattern in (f"{name}/*.sft", str(tmp_path / name / "*.sft"), str(written[0])):
        assert load_sfts(pattern).detectors[0].start.tolist() == sft_set().detectors[0].start.tolist()


@pytest.mark.parametrize(("outer", "inner"), [*product(MARKED, MARKED)])
def test_marked_folders_in_marked_folders(outer: str, inner: str, tmp_path: Path) -> None:
    decoys(tmp_path)
    folder = tmp_path / outer / inner
    decoys(tmp_path / outer)
    folder.mkdir(parents=True)
    for file in ("x.sft", "y[1].sft", "y1.sft"):
        (folder / file).write_text("")
    assert matching(folder / "*.sft") == sorted(str(folder / f) for f in ("x.sft", "y[1].sft", "y1.sft"))
    assert matching(folder / "y[1].sft") == [str(folder / "y[1].sft")]
    (folder / "y[1].sft").unlink()
    assert matching(folder / "y[1].sft") == [str(folder / "y1.sft")]


def test_brackets_that_are_no_folder_are_part_of_a_pattern(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        load_sfts(tmp_path / "b[1]" / "*.sft")
    assert str(error.value) == (
        f"{tmp_path}/b[1]/*.sft: there is no such file, and nothing that matches; wanted SFT files; brackets are part of a pattern where "
        "no folder of that name is there: [[] stands for one"
    )
    with pytest.raises(InputError, match=r"nothing that matches; wanted SFT files$"):
        load_sfts(tmp_path / "b" / "*.sft")


@pytest.mark.parametrize("name", MARKED)
def test_snapshots_of_marked_names_are_found_before_they_would_be_replaced(name: str, tmp_path: Path) -> None:
    """In a marked folder, of a run with a marked name; those of other runs are in nobody's way."""
    decoys(tmp_path)
    folder = tmp_path / name
    folder.mkdir()
    output = Output(folder / f"{name}.h5", snapshot_every=1)
    for other in ("a1", "a", "b", "xx"):
        (folder / f"{other}_00000001.h5").write_text("another run's")
    assert start(ic="two-body", steps=2, output=output).state.snapshots() == []
    (folder / f"{name}_00000002.h5").write_text("mine")
    with pytest.raises(InputError, match="exists already"):
        start(ic="two-body", steps=2, output=output)


@pytest.mark.parametrize("name", MARKED)
def test_checkpoints_of_a_search_in_a_marked_folder_are_forgotten(name: str, tmp_path: Path) -> None:
    decoys(tmp_path)
    folder = tmp_path / name
    folder.mkdir()
    for file in (SEARCH, ".unit-1.json.2f.tmp"):
        (folder / file).write_text("")
    (tmp_path / "a1" / ".unit-1.json.2f.tmp").write_text("another's")
    forget(folder, ())
    assert not folder.exists()
    assert (tmp_path / "a1" / ".unit-1.json.2f.tmp").exists()


def calls_of_glob() -> Iterator[str]:
    source = Path(lanewise.__file__).parent
    for path in sorted(source.rglob("*.py")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if re.search(r"\br?glob\(|\bfnmatch", line):
                yield f"{path.relative_to(source)}: {line.strip()}"


def test_every_pattern_of_the_package_is_known_here() -> None:
    """A new one needs a test above, unless its pattern and its folder are fixed."""
    fixed = (
        "ladders/memory.py", "live/page.py", "live/widget.py", "models/devices.py", "runtime/cache.py", "sims/common/cards.py", "sims/units/scan.py",
        "sims/waves/live.py",
    )  # fmt: skip
    assert [call.split(":")[0] for call in calls_of_glob() if not call.startswith(fixed)] == [
        "io/source.py", "sims/gravity/run.py", "sims/waves/units/progress.py", "sims/waves/units/run.py",
        "sims/waves/units/run.py",
    ]  # fmt: skip
