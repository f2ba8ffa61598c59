"""Small files of the search for gravitational waves, for the campaigns that kill and damage, and the commands that read
them.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import tempfile
from pathlib import Path
from random import Random
from typing import Any

from lanewise.io.documents import digest_of
from tests.fuzz.commands import SCRATCH, Ended, command, folder

THERE = importlib.util.find_spec("erfa") is not None
"""The ephemeris that needs no tables."""

SFTS, SKY, LIST, UNITS = "a.sft", "sky.txt", "a.csv", "a.csv.units"
COMMON = ("--ref-time", 1238166018, "--ephemeris", "EPV00", "--device", "numpy")
SEARCH = ("waves", "run", "--sfts", SFTS, *COMMON, "--freq", 60.01, "--band", 5e-4, "--f1dot=-2e-9,1e-9", "--f1dot-step", 1e-9, "--stack", 3600,
          "--residuals", 1, "--patch", 0.02, "--candidates", 7, "--sky", SKY, "--out", LIST, "--checkpoint-every", 0)  # fmt: skip
BEGUN, RESUMED = (*SEARCH, "--units", 3, "--overwrite"), (*SEARCH, "--resume")
STATISTIC = ("waves", "fstat", "--sfts", SFTS, *COMMON, "--templates", "templates.csv", "--out", "f.csv", "--overwrite")
SKY_TEXT = "2.0 0.3\n2.1, 0.3  # another\n2.0 0.35\n"
TEMPLATES = "freq,alpha,delta,f1dot\n60.0101,2.0,0.3,-2e-10\n60.0102,2.0,0.3,0\n"
READERS: dict[str, tuple[str, tuple[object, ...]]] = {
    "SFTs": (SFTS, STATISTIC), "templates": ("templates.csv", STATISTIC), "list": ("templates.csv", STATISTIC), "sky": (SKY, BEGUN),
    "unit": (f"{UNITS}/unit-000001.json", RESUMED), "search": (f"{UNITS}/search.json", RESUMED),
}  # fmt: skip
"""The file that is damaged, and what reads it."""

SUMMED = ("SFTs", "unit", "search")
"""Kinds whose sums notice every change."""


@functools.cache
def good_sfts() -> bytes:
    with tempfile.TemporaryDirectory(prefix="lanewise-fuzz-", dir=SCRATCH) as place, folder(Path(place)):
        ended = command("waves", "make-data", "--out", "d", "--band", "59.9,60.12", "--start", 1238166018, "--sfts", 6, "--detectors", "H1",
                        "--sqrt-s", 1e-23, "--seed", 3)  # fmt: skip
        assert ended.code == 0, ended
        (path,) = Path("d").glob("*.sft")
        return path.read_bytes()


def inputs() -> None:
    """What every command reads, into the working folder."""
    Path(SFTS).write_bytes(good_sfts())
    Path(SKY).write_text(SKY_TEXT)
    Path("templates.csv").write_text(TEMPLATES)


@functools.cache
def good(kind: str) -> dict[str, bytes]:
    """All files that there are before the reader of a kind begins."""
    with tempfile.TemporaryDirectory(prefix="lanewise-fuzz-", dir=SCRATCH) as place, folder(Path(place)):
        inputs()
        if kind == "list":
            assert command(*BEGUN).code == 0
            Path(LIST).replace("templates.csv")
        if kind in ("unit", "search"):
            units_in_the_middle()
        return {str(p): p.read_bytes() for p in Path().rglob("*") if p.is_file()}


def units_in_the_middle() -> None:
    """The checkpoints of a search of which nothing is written yet."""
    from unittest import mock

    from lanewise.sims.waves.commands import search

    with mock.patch.object(search, "forget", return_value=None):
        ended = command(*BEGUN)
    assert ended.code == 0, ended
    Path(LIST).unlink()


@functools.cache
def good_end(kind: str) -> bytes:
    """The results that the reader of a kind has of good files."""
    with tempfile.TemporaryDirectory(prefix="lanewise-fuzz-", dir=SCRATCH) as place, folder(Path(place)):
        write(kind)
        ended = command(*READERS[kind][1])
        assert ended.code == 0, ended
        return results(kind)


def write(kind: str) -> None:
    """The good files of a kind into the working folder."""
    for name, content in good(kind).items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_bytes(content)


def results(kind: str) -> bytes:
    """What its reader has written."""
    return Path("f.csv" if READERS[kind][1] is STATISTIC else LIST).read_bytes()


def lie(path: Path, random: Random, change: Any) -> str:
    """Something in a checkpoint that its writer never wrote, with a sum that is right; change: of values, which says
    how.
    """
    values = json.loads(path.read_text())
    values.pop("sha256")
    how = change(values, random)
    try:
        values["sha256"] = digest_of(values)
    except ValueError:  # no number: JSON has no sum of it
        values["sha256"] = "0"
    path.write_text(json.dumps(values))
    return how


def read(kind: str) -> Ended:
    """The command that reads the files of a kind in the working folder."""
    return command(*READERS[kind][1])
