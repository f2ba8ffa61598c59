"""A command that is refused, however late, leaves its folder as it was: no file or folder made, none changed
or gone.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import NoReturn

import pytest

from lanewise.sims.units import coordinator
from lanewise.sims.waves.units import run as waves_units
from tests.cli.command import Command
from tests.waves.units.data import START, make_files

FILES = ("a.h5", "a.csv", "a.png", "a.json", "a.vti", "a.csv.units/search.json", "a.csv.units/unit-000000.json")
"""Of a user, or of an earlier run: with --overwrite they may be replaced, once all is right."""

CASES = tuple(line.split(" | ") for line in """
gravity run --out a.h5 --overwrite --plot a.png --snapshot-every 1 --steps 4 | --softening -1
gravity run --out a.h5 --overwrite --plot a.png --profile a.json --bodies 9 --steps 4 | --device cuda
gravity run --out a.h5 --overwrite --plot a.png | --ic a.csv
gravity run --out a.h5 --overwrite --bodies 9 | --theta 3
gravity run --out b.h5 --plot b.png | --resume a.h5
lbm run cavity --out a.h5 --overwrite --plot a.png --vti a.vti --size 8 --steps 4 | --re -1
lbm run cavity --out b.h5 --vti b.vti --size 8 --steps 4 | --device cuda
lbm run cylinder --out b.h5 --vti b.vti --size 8 | --mask a.png
lbm run --out b.h5 --vti b.vti | --resume a.h5
boids run --out a.h5 --overwrite --final a.csv --agents 9 --steps 4 | --max-speed -1
boids run --out b.h5 --final b.csv --agents 9 --steps 4 | --device cuda
boids run --out b.h5 --final b.csv --steps 4 | --obstacles a.csv
boids run --out b.h5 --final b.csv | --resume a.h5
waves make-data --out new --band 59.85,60.17 --start 1238166018 --sfts 3 --sqrt-s 1e-23,1e-23 | --signal freq=70
waves make-data --out new --band 59.85,60.17 --start 1238166018 --sfts 3 | --sqrt-s 1e-23
waves make-data --out new --band 59.85,60.17 --start 1238166018 --sfts 3 --sqrt-s 1e-23,1e-23 | --label a/b
waves run SEARCH --out b.csv | --method resamp --sky 2.0,0.3 --units 4
waves run SEARCH --out b.csv | --sky 2.0,0.3 --units 1000
waves run SEARCH --out b.csv | --sky 2.0,0.3 --units 0
waves run SEARCH --out b.csv | --sky 2.0,0.3 --workers 2 --device cuda
waves run SEARCH --out b.csv | --sky 2.0,0.3 --resume
waves run SEARCH --out b.csv --units 2 --sky 2.0,0.3 | --scheduler tcp://127.0.0.1:1
waves run SEARCH --out a.csv --overwrite | --method resamp --sky 2.0,0.3 --units 4
waves run SEARCH --out a.csv --overwrite | --sky 2.0,0.3 --units 1000
waves fstat --sfts SFTS --out a.csv --overwrite --freq 60.0 --ref-time 1238166018 | --band 0.01 --step 1e-5 --sky 2.0,0.3 --ephemeris none
units run new gravity --bodies 5 --steps 1 | --scan softening=-1..1
units run new gravity --bodies 5 --steps 1 --scan seed=1..2 | --workers 0
units run new gravity --bodies 5 --steps 1 --scan seed=1..2 | --scheduler tcp://127.0.0.1:1
units run a.csv.units gravity --bodies 5 --steps 1 --scan seed=1..2 | --workers 0
""".strip().splitlines())  # fmt: skip


@pytest.fixture(scope="module")
def sfts(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("erfa")
    return make_files(tmp_path_factory.mktemp("sfts"))


def _content(folder: Path) -> dict[str, bytes | None]:
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in folder.rglob("*")}


SEARCH = (
    f"--sfts SFTS --freq 60.0099 --band 0.0001 --ref-time {START + 90_000} --stack 36000 --patch 0.02 --threshold 4 "
    "--ephemeris EPV00 --candidates 40 --device numpy"
)
SLOW = "--scheduler"  # ten seconds until nobody answers
PARAMETERS = [pytest.param(*c, id=" ".join(c), marks=pytest.mark.slow if SLOW in c[1] else ()) for c in CASES]


@pytest.mark.parametrize(("good", "wrong"), PARAMETERS)
def test_what_is_refused_changes_nothing(lanewise: Command, sfts: str, good: str, wrong: str, tmp_path: Path) -> None:
    for name in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("old", encoding="utf-8")
    before = _content(tmp_path)
    outcome = lanewise(*f"{good} {wrong}".replace("SEARCH", SEARCH).replace("SFTS", sfts).split())
    assert outcome.code in (2, 3), outcome
    assert "error: " in outcome.err or "Error" in outcome.err
    assert _content(tmp_path) == before


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (waves_units, f"waves run {SEARCH} --sky 2.0,0.3 --out b.csv"),
        (coordinator, "units run new gravity --bodies 5 --steps 1 --scan seed=1..2"),
    ],
    ids=["waves", "units"],
)
def test_what_is_interrupted_before_it_began_is_not_said_to_go_on(
    lanewise: Command, sfts: str, module: ModuleType, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def press(paths: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "claimed", press)
    outcome = lanewise(*words.replace("SFTS", sfts).split())
    assert (outcome.code, outcome.err) == (130, "interrupted\n")
    assert list(tmp_path.iterdir()) == []
