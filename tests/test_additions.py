"""ARCHITECTURE.md's table holds: each thing is added to a copy of lanewise by one file and lines at one place, and is
there.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.additions import ADDITIONS, PREAMBLE, Addition
from tests.storeys import SOURCE

TABLE = (SOURCE.parent.parent / "ARCHITECTURE.md").read_text(encoding="utf-8")
MOST_FILES = 6
INTERPRETER = [sys.executable, "-P"]


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with all additions."""
    copy = tmp_path_factory.mktemp("copy") / "lanewise"
    # With the bytecode of what stays as it is, and without what another process is about to write of it.
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("*.pyc.*"))
    for a in ADDITIONS:
        if a.file:
            (copy / a.file).parent.mkdir(exist_ok=True)
            (copy / a.file).write_text(a.text, encoding="utf-8")
        for name, before, added in a.lines:
            text = (copy / name).read_text(encoding="utf-8")
            assert text.count(before) == 1, (name, before)
            (copy / name).write_text(text.replace(before, added + before), encoding="utf-8")
    return copy


@pytest.mark.parametrize("addition", ADDITIONS, ids=lambda a: a.name)
def test_the_table_says_where(addition: Addition) -> None:
    row = next(line for line in TABLE.splitlines() if line.startswith(f"| {addition.name} |"))
    folder = addition.file.rpartition("/")[0]
    if not (SOURCE / folder).is_dir():  # the folder itself is what is added
        folder = folder.rpartition("/")[0]
    assert not addition.file or f"`{folder}/`" in row
    assert len({addition.file, *(name for name, _, _ in addition.lines)} - {""}) <= MOST_FILES
    for name, _, _ in addition.lines:
        assert f"`{name}`" in row or f"`{name.rpartition('/')[0]}/`" in row, name
    assert bool(addition.lines) is ("none: it is found" not in row)


def test_everything_added_is_there(extended: Path, tmp_path: Path) -> None:
    program = tmp_path / "program.py"  # a function's source is read from its file
    program.write_text("\n".join((PREAMBLE, *(a.use for a in ADDITIONS), 'print("all there")\n')), encoding="utf-8")
    done = subprocess.run(
        [*INTERPRETER, str(program)], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={"PYTHONPATH": str(extended.parent), "LANEWISE_CACHE_DIR": str(tmp_path / "cache"), "PATH": "", "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.stdout.endswith("all there\n"), done.stderr[-3000:]
