"""Workers of a search that share one card: each has it for the steps of a unit, and no byte depends on it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lanewise.cli.main import app
from lanewise.sims.common.cards import a_card
from lanewise.sims.waves.units import Unit
from lanewise.sims.waves.units.checkpoint import mark_of, path_of, start_of, write_state
from lanewise.sims.waves.units.progress import progress, waiting
from lanewise.sims.waves.units.run import forget
from lanewise.sims.waves.units.work import process
from tests.sims.units.stand_in import ROOT, events
from tests.waves.units.data import a_job, environment, make_files

PATIENCE = 90.0  # seconds

WORKER = """
import sys
from pathlib import Path
from lanewise.sims.waves.units import divide, work
from lanewise.sims.waves.units.job import Job
from tests.sims.units.stand_in import note, replace_in
from tests.waves.units.data import a_job

pattern, folder, own, signs = sys.argv[1:]
job = a_job(pattern, device="cpu")
Job.on_gpu = property(lambda self: True)
work.visible_cards = lambda: ["a"]
now = ["none"]

def steps(before, *given):
    note(now[0], "begins on a")
    yield from before(*given)
    note(now[0], "keeps" if work._searches._last else "keeps nothing")
    note(now[0], "ends on a")

def write(before, where, state):
    note(now[0], "writes the end" if state.complete else "writes")
    before(where, state)

def let_go(device):
    note(now[0], "lets go")
    return 0

replace_in(work, "steps", steps)
replace_in(work, "write_state", write)
work.release_memory = let_go
ready = work._loaded(job)
note(f"worker {own}", "has read")
Path(signs, f"ready {own}").touch()
while len(list(Path(signs).glob("ready *"))) < 2:
    pass
units = divide(len(job.sky), len(ready.grids.f1dot), ready.grids.frequencies, 4)
for unit in units[int(own)::2]:
    now[0] = str(unit.number)
    work.process_remotely(job, ready.configuration, unit, folder, 1e9)
    note(now[0], "is done")
"""


@pytest.fixture(scope="module")
def pattern(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("erfa")
    return make_files(tmp_path_factory.mktemp("sfts"))


@pytest.mark.slow
def test_two_workers_take_turns_on_one_card(pattern: str, tmp_path: Path) -> None:
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    alone.mkdir()
    shared.mkdir()
    ready = a_job(pattern, device="cpu").load()
    from lanewise.sims.waves.units import divide

    units = divide(len(ready.job.sky), len(ready.grids.f1dot), ready.grids.frequencies, 4)
    for unit in units:
        process(ready, unit, alone, 1e9)
    path = os.pathsep.join([environment()["PYTHONPATH"], str(ROOT)])
    env = {**environment(), "PYTHONPATH": path, "TMPDIR": str(tmp_path), "EVENTS": str(tmp_path / "events")}
    words = [sys.executable, "-c", WORKER, pattern, str(shared)]
    workers = [
        subprocess.Popen([*words, str(n), str(tmp_path)], env=env, stderr=subprocess.PIPE, text=True) for n in range(2)
    ]
    for worker in workers:
        _, said = worker.communicate(timeout=PATIENCE)
        assert worker.returncode == 0, said
    holder = ""
    seen = [(unit, what) for unit, what in events(tmp_path / "events") if not unit.startswith("worker")]
    for unit, what in seen:
        if what == "begins on a":
            assert not holder, seen
            holder = unit
        elif what == "ends on a":
            assert holder == unit, seen
            holder = ""
        elif what in ("writes the end", "is done"):
            assert holder != unit, seen
    for unit in units:
        own = [what for number, what in seen if number == str(unit.number) and what != "lets go"]
        assert own == ["begins on a", "keeps", "ends on a", "writes the end", "is done"]
        assert path_of(shared, unit).read_bytes() == path_of(alone, unit).read_bytes()
    assert any(what == "lets go" for _, what in seen)
    assert sorted(p.name for p in shared.iterdir()) == sorted(path_of(shared, u).name for u in units)


def test_a_search_says_which_units_wait(tmp_path: Path) -> None:
    folder = tmp_path / "units"
    folder.mkdir()
    units = [Unit(n, (n, n + 1), (0, 2), (0, 10)) for n in range(3)]
    write_state(folder, start_of(units[0], "digest"))
    from lanewise.sims.waves.units.checkpoint import write_configuration

    write_configuration(folder, {"f": "demod"}, 3)

    def look() -> None:
        assert waiting(folder) == [2]
        said = CliRunner().invoke(app, ["units", "status", str(folder)]).stdout
        assert said == "1 unit of waves begun: 0 of 2 steps\nunit 0: 0 of 2 steps\nwaiting for a GPU: unit 2\n"
        said = CliRunner().invoke(app, ["units", "status", str(folder), "--json"]).stdout
        assert '"waiting for a GPU": [2]' in said
        raise KeyboardInterrupt

    with (
        a_card(["a"], None, tmp_path),
        pytest.raises(KeyboardInterrupt),
        a_card(["a"], mark_of(folder, 2), tmp_path, busy=look),
    ):
        pass
    assert waiting(folder) == []
    assert [u.number for u in progress(folder)] == [0]
    (folder / ".unit-000001.card.lock").touch()  # of a worker that was killed
    assert waiting(folder) == []
    forget(folder, tuple(units))
    assert not folder.exists()
