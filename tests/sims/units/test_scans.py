"""Scans of parameters: results do not depend on who computed them when, to the byte, and nothing is taken on trust."""

from __future__ import annotations

import csv
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest
from typer.testing import CliRunner

from lanewise.cli.main import app
from lanewise.sims.gravity import runner
from lanewise.sims.units import Done, Scan, axis_of, compute, coordinator, opened, read_scan, status
from lanewise.sims.units.results import UnitFiles, UnitResult
from lanewise.sims.units.scan import ScanUnit
from lanewise.support.errors import InputError
from tests.cli.command import start_process

PATIENCE = 90.0  # seconds
SCANS = {
    "gravity": (("--bodies", "300", "--steps", "6000", "--checkpoint-seconds", "0.05", "--diagnostics-every", "50"), "seed=1,2"),
    "lbm": (("cavity", "--size", "48", "--steps", "4000", "--checkpoint-every", "200"), "re=50,100"),
    "boids": (("--agents", "600", "--steps", "900", "--checkpoint-every", "50"), "max-speed=7,9"),
    "steady": (("channel", "--size", "24", "--until-steady", "--checkpoint-every", "100"), "re=5,10"),
}  # fmt: skip


def scan_of(name: str, quorum: int = 1) -> Scan:
    options, axis = SCANS[name]
    product = "lbm" if name == "steady" else name
    return Scan(product=product, options=options, axes=(axis_of(axis),), quorum=quorum)


def small(*axes: str, quorum: int = 1) -> Scan:
    options = ("--bodies", "20", "--steps", "3")
    return Scan(product="gravity", options=options, axes=tuple(map(axis_of, axes)), quorum=quorum)


def silent(text: str) -> None:
    pass


def run(scan: Scan | None, folder: Path, workers: int = 1, say: Callable[[str], None] = silent) -> Done:
    with opened(folder, scan) as there:
        return compute(there, folder, workers=workers, say=say)


def files(folder: Path) -> dict[str, bytes]:
    """What a scan leaves, but for where it was begun and what processes said."""
    return {p.name: p.read_bytes() for p in sorted(folder.iterdir()) if p.suffix != ".log" and p.name != "units.json"}


def rows(done: Done) -> list[dict[str, str]]:
    return list(csv.DictReader(done.table.read_text().splitlines()[1:]))


def wait_until(true: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, bytes]]:
    known: dict[str, dict[str, bytes]] = {}

    def of(name: str) -> dict[str, bytes]:
        if name not in known:
            folder = tmp_path_factory.mktemp(name) / "scan"
            assert len(run(scan_of(name), folder).found) == 2
            known[name] = files(folder)
        return known[name]

    return of


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("name", SCANS)
def test_kills_of_everything_change_no_byte(
    name: str, tmp_path: Path, undisturbed: Callable[[str], dict[str, bytes]], started: list[subprocess.Popen[str]]
) -> None:
    """`kill -9` of the process that the user started: units' own are gone then, too, and what is resumed with two
    workers ends the same.
    """
    wanted, folder = undisturbed(name), tmp_path / "scan"
    scan = scan_of(name)
    words = ["run", folder, scan.product, *scan.options, "--scan", SCANS[name][1]]
    for kill in range(2):
        process = start_process(tmp_path, "units", *words)
        started.append(process)
        begun = UnitFiles(folder, 1 + kill).state
        wait_until(lambda begun=begun, process=process: begun.exists() or process.poll() is not None)
        children = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE)
        psutil.wait_procs(children, PATIENCE)
        assert not any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in children)
        words = ["resume", folder]
    assert len(run(None, folder, workers=2).found) == 2
    assert files(folder) == wanted


@pytest.mark.slow
def test_a_process_of_a_unit_that_is_killed_is_started_again(
    tmp_path: Path, undisturbed: Callable[[str], dict[str, bytes]], started: list[subprocess.Popen[str]]
) -> None:
    scan, folder = scan_of("gravity"), tmp_path / "scan"
    process = start_process(tmp_path, "units", "run", folder, "gravity", *scan.options, "--scan", SCANS["gravity"][1])
    started.append(process)
    wait_until(UnitFiles(folder, 1).state.exists)
    for child in psutil.Process(process.pid).children():
        child.kill()
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said
    assert files(folder) == undisturbed("gravity")


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.slow
@pytest.mark.parametrize("name", SCANS)
def test_an_interrupted_scan_goes_on(
    name: str, tmp_path: Path, undisturbed: Callable[[str], dict[str, bytes]], started: list[subprocess.Popen[str]]
) -> None:
    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # where tests run in the background, it is ignored
    scan, folder = scan_of(name), tmp_path / "scan"
    process = start_process(tmp_path, "units", "run", folder, scan.product, *scan.options, "--scan", SCANS[name][1])
    signal.signal(signal.SIGINT, before)
    started.append(process)
    wait_until(UnitFiles(folder, 1).state.exists)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, said
    assert f"interrupted; continue with: lanewise units resume {folder}" in said
    assert [s.state for s in status(read_scan(folder), folder)] == ["begun", "waiting"]
    run(None, folder)
    assert files(folder) == undisturbed(name)


@pytest.mark.slow
def test_results_are_those_of_the_library(tmp_path: Path) -> None:
    done = run(small("dt=1e-3,2e-3", "seed=1,2"), tmp_path / "scan")
    assert [(r["unit"], r["dt"], r["seed"]) for r in rows(done)] == [
        ("1", "1e-3", "1"), ("2", "1e-3", "2"), ("3", "2e-3", "1"), ("4", "2e-3", "2"),
    ]  # fmt: skip
    for row in rows(done):
        one = runner.start(bodies=20, steps=3, dt=float(row["dt"]), seed=int(row["seed"]))
        one.execute()
        assert float(row["energy_final"]) == one.finish()["energy_final"]


@pytest.mark.slow
def test_damaged_files_are_computed_again(tmp_path: Path) -> None:
    folder = tmp_path / "scan"
    run(small("seed=1..3"), folder)
    wanted = files(folder)
    state, result = UnitFiles(folder, 1).state, UnitFiles(folder, 2).result
    state.write_bytes(b"x" + state.read_bytes()[1:])
    result.write_text(result.read_text().replace("0", "1", 1))
    assert [s.state for s in status(read_scan(folder), folder)] == ["damaged", "damaged", "done"]
    said: list[str] = []
    run(None, folder, say=said.append)
    assert files(folder) == wanted
    assert "unit 1 is computed again: " in said[0]
    assert "its SHA-256 is not that of its result" in said[0]
    assert any("its checksum is not that of its content" in text for text in said)


@pytest.mark.parametrize("quorum", [1, 2, 3])
def test_the_result_of_a_unit_is_the_first_that_so_many_copies_have(quorum: int, tmp_path: Path) -> None:
    """Of any results of the copies, in any order; other names for them are no other results."""
    scan = small(quorum=quorum)

    class Copies(coordinator._Work):  # pyright: ignore[reportPrivateUsage]
        states: str = ""

        def _copy(self, unit: ScanUnit, files: UnitFiles) -> UnitResult:
            return UnitResult({}, self.states[files.copy - 1])

    for states in map("".join, itertools.product("abc", repeat=quorum + 2)):
        if not "abc".startswith("".join(dict.fromkeys(states))):
            continue
        work = Copies(scan, tmp_path, coordinator.Conditions(1, 0), silent)
        work.states = states
        work.of(scan.units[0])
        copies = range(1, quorum + (coordinator.SPARE if quorum > 1 else 0) + 1)
        agreed = [s for n in copies for s in "abc" if states[:n].count(s) == quorum]
        if agreed:
            assert work.found[1][1].state == agreed[0], states
        else:
            assert work.failed[1][1].startswith(f"no {quorum} of its "), states


@pytest.mark.slow
def test_a_quorum_finds_the_result_that_is_another(tmp_path: Path) -> None:
    """A copy whose computer was wrong, here one of other bodies, is outvoted by a third."""
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    run(small(quorum=2), right)
    assert {p.name for p in right.glob("*.h5")} == {"unit-000001.h5", "unit-000001-2.h5"}
    options = ("--bodies", "20", "--steps", "3", "--seed", "5")
    run(Scan(product="gravity", options=options, axes=(), quorum=1), wrong)
    copy, other = UnitFiles(right, 1, 2), UnitFiles(wrong, 1)
    _forge(copy, other)
    done = run(None, right)
    assert done.found[0][1].state != json.loads(copy.result.read_text())["state"]
    assert UnitFiles(right, 1, 3).result.exists()
    _forge(UnitFiles(right, 1, 1), other)
    _forge(UnitFiles(right, 1, 3), other)
    assert run(None, right).found[0][1].state == json.loads(copy.result.read_text())["state"]


def _forge(copy: UnitFiles, other: UnitFiles) -> None:
    """Make a valid result of a copy with the state of another run."""
    from lanewise.sims.units.results import write_result

    scan = read_scan(copy.folder)
    copy.state.write_bytes(other.state.read_bytes())
    write_result(copy, scan, scan.units[0], {})


BODIES = """
import numpy as np

def two(bodies=2, far=1.0):
    place = far * np.arange(3.0 * bodies).reshape(bodies, 3)
    return {"position": place, "velocity": 0 * place, "mass": np.ones(bodies)}

def three():
    return two(3)

def lost():
    return two(2, np.nan)
"""


@pytest.mark.slow
def test_a_unit_that_fails_leaves_the_others(tmp_path: Path) -> None:
    """What only its own bodies show."""
    folder, said, script = tmp_path / "scan", list[str](), tmp_path / "ic.py"
    script.write_text(BODIES)
    scan = Scan(
        product="gravity", options=("--steps", "2"), axes=(axis_of(f"ic={script}:two,{script}:lost,{script}:three"),)
    )
    done = run(scan, folder, say=said.append)
    assert [unit.number for unit, _ in done.found] == [1, 3]
    ((unit, why),) = done.failed
    assert unit.number == 2
    assert why.startswith(f"{script}:")
    assert f"unit 2 failed: {why}" in said


@pytest.mark.slow
def test_files_that_have_changed_are_refused(tmp_path: Path) -> None:
    table = tmp_path / "bodies.csv"
    rng = np.random.default_rng(1)
    lines = ["x,y,z,vx,vy,vz,mass"] + [",".join(map(str, rng.normal(size=6))) + ",1" for _ in range(5)]
    table.write_text("\n".join(lines) + "\n")
    folder = tmp_path / "scan"
    scan = Scan(product="gravity", options=("--ic", str(table), "--steps", "2"), axes=(axis_of("softening=0.1,0.2"),))
    run(scan, folder)
    table.write_text("\n".join(lines[:-1]) + "\n")
    with pytest.raises(InputError, match=r"bodies\.csv has changed since this scan began; wanted the file as it was"):
        run(None, folder)


@pytest.mark.parametrize(
    ("scan", "said"),
    [
        (small("dtt=1"), "unit 1: No such option: --dtt"),
        (small("dt=a"), "unit 1: Invalid value for '--dt': 'a' is not a number; write it like 0.01 or 1e-2"),
        (small("plot=a.png"), "--plot is no option of units, whose files are in their own folder; wanted it left out"),
        (small("device=cuda:1"), "the device is 'cuda:1', and a unit takes any GPU that is free; wanted cpu or cuda, and "
         "CUDA_VISIBLE_DEVICES to choose among GPUs"),
        (small("device=cuda,cpu"), "the scan runs on cuda and cpu; wanted one kind of device for all units, and a scan "
         "for each"),
    ],
)  # fmt: skip
def test_what_a_scan_refuses(scan: Scan, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        run(scan, tmp_path / "scan")
    assert str(raised.value).startswith(said)
    assert not (tmp_path / "scan").exists()


@pytest.mark.parametrize(
    ("product", "said"),
    [
        ("waves", "waves divides its searches itself: wanted lanewise waves run --units N --out FILE"),
        ("gravty", "unknown product 'gravty'; did you mean 'gravity'? wanted one of boids, gravity, lbm"),
    ],
)
def test_products_without_scans(product: str, said: str) -> None:
    with pytest.raises(InputError) as raised:
        Scan(product=product, options=(), axes=())
    assert str(raised.value) == said


@pytest.mark.parametrize(
    ("product", "options", "axis", "name"),
    [
        ("gravity", ("--seed", "9"), "seed=1..2", "seed"),
        ("gravity", ("--dt=0.5", "--bodies", "20"), "dt=1e-3,2e-3", "dt"),
        ("lbm", ("cavity", "--size", "8"), "size=8,9", "size"),
        ("lbm", ("cavity",), "case=cavity,channel", "case"),
        ("boids", ("--max-speed", "7"), "max-speed=8,9", "max-speed"),
    ],
)
def test_an_option_of_all_units_is_no_axis(
    product: str, options: tuple[str, ...], axis: str, name: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as raised:
        run(Scan(product=product, options=options, axes=(axis_of(axis),)), tmp_path / "scan")
    assert str(raised.value) == f"{name} is an option of all units and an axis of the scan; wanted it in one of them"
    assert not (tmp_path / "scan").exists()


@pytest.mark.parametrize("more", [(), ("--view-wait",), ("--view-record", "r.lwv")])
def test_scans_are_not_watched(more: tuple[str, ...], tmp_path: Path) -> None:
    scan = Scan(product="gravity", options=("--bodies", "20", "--view", *more), axes=(axis_of("seed=1,2"),))
    with pytest.raises(InputError, match=r"^--view shows one run, and a scan has many; wanted it left out$"):
        run(scan, tmp_path / "scan")


@pytest.mark.parametrize("text", ["dt=1e-3,0.001", "seed=1,01", "dt=.5,5e-1,2", "ic=plummer,plummer"])
def test_a_value_is_there_once_however_it_is_written(text: str) -> None:
    with pytest.raises(InputError, match="is there twice; wanted it once"):
        axis_of(text)


def test_one_unit_without_an_axis_is_said(tmp_path: Path) -> None:
    words = ["units", "run", str(tmp_path / "scan"), "gravity", "--device", "gpu", "--bodies", "5", "--steps", "1"]
    said = CliRunner().invoke(app, words).stderr
    assert said.startswith("note: without --scan this is one unit; --scan NAME=VALUES makes one for each value")
    assert "note" not in CliRunner().invoke(app, [*words, "--scan", "seed=1..2"]).stderr


def test_a_folder_has_one_scan(tmp_path: Path) -> None:
    folder = tmp_path / "scan"
    with pytest.raises(InputError, match="there is no such folder; start one, for example: lanewise units run"):
        run(None, folder)
    run(small(), folder)
    with pytest.raises(InputError, match=r"there is no scan; wanted the folder of one, as .*scan$"):
        run(None, tmp_path)
    with pytest.raises(InputError, match=r"a scan was begun there; lanewise units resume .* continues it"):
        run(small("seed=1"), folder)


@pytest.mark.slow
def test_a_case_is_an_axis(tmp_path: Path) -> None:
    scan = Scan(product="lbm", options=("--size", "8", "--steps", "2"), axes=(axis_of("case=cavity,channel"),))
    assert [u.arguments[0] for u in scan.units] == ["cavity", "channel"]
    done = run(scan, tmp_path / "scan")
    assert "results.vortex_x" in rows(done)[0]
    assert rows(done)[1]["results.vortex_x"] == ""


@pytest.mark.slow
def test_status_from_another_terminal(tmp_path: Path) -> None:
    folder = tmp_path / "scan"
    run(small("seed=1..2"), folder)
    UnitFiles(folder, 2).result.unlink()
    said = subprocess.run(
        [sys.executable, "-m", "lanewise", "units", "status", str(folder), "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    units = json.loads(said.stdout)["units"]
    assert [(u["values"]["seed"], u["state"], u["step"]) for u in units] == [("1", "done", 3), ("2", "begun", 3)]
    assert len(run(None, folder).found) == 2  # a state that is complete and has no result


def test_units_of_a_search_have_a_status(tmp_path: Path) -> None:
    """Those of waves, which divides its searches itself."""
    from lanewise.sims.waves.hierarchical import CANDIDATE
    from lanewise.sims.waves.units import State, Unit, write_state
    from lanewise.sims.waves.units.checkpoint import write_configuration
    from lanewise.sims.waves.units.progress import progress

    write_configuration(tmp_path, {"f": "demod"}, 2)
    unit = Unit(1, (2, 5), (1, 3), (0, 10))
    write_state(tmp_path, State(unit, "digest", 3, 2, np.empty(0, CANDIDATE)))
    assert [(u.number, u.done, u.steps) for u in progress(tmp_path)] == [(1, 3, 6)]
    said = subprocess.run(
        [sys.executable, "-m", "lanewise", "units", "status", str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert said.stdout == "1 unit of waves begun: 3 of 6 steps\nunit 1: 3 of 6 steps\n"


BASE = {
    "gravity": ("--bodies", "20", "--steps", "3"),
    "lbm": ("cavity", "--size", "8", "--steps", "2"),
    "boids": ("--agents", "20", "--steps", "2"),
}
REFUSED = {
    "gravity": (
        ("ic=plummer,two-body", "unit 2: two-body has exactly 2 bodies; 20 requested"),
        ("ic=plummer,plumer", "unit 2: unknown initial condition 'plumer'"),
        ("precision=f32,f16", "unit 2: unknown precision 'f16'"),
        ("integrator=leapfrog,leap", "unit 2: unknown integrator 'leap'"),
        ("softening=0.1,-1", "unit 2: the softening"),
        ("theta=0.5,0.7", "unit 1: --theta needs --method tree"),
    ),
    "lbm": (
        ("case=cavity,cavitee", "unit 2: unknown case 'cavitee'"),
        ("collision=bgk,mrtt", "unit 2: unknown collision operator 'mrtt'"),
        ("storage=f32,f16", "unit 2: storage f16 is for GPUs"),
        ("re=100,-1", "unit 2: the Reynolds number is -1"),
        ("speed=0.05,0.9", "unit 2: the speed of the case"),
    ),
    "boids": (
        ("start=ball,cubee", "unit 2: unknown start 'cubee'"),
        ("boundary=wrap,wrapp", "unit 2: unknown boundary 'wrapp'"),
        ("agent-radius=1,2", "unit 1: --agent-radius is about obstacles"),
        ("max-speed=9,0", "unit 2: "),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("product", "axis", "why"), [(p, *row) for p, rows in REFUSED.items() for row in rows])
def test_settings_of_any_unit_are_refused_before_anything_is_written(
    product: str, axis: str, why: str, tmp_path: Path
) -> None:
    scan = Scan(product=product, options=BASE[product][axis.startswith("case") :], axes=(axis_of(axis),))
    with pytest.raises(InputError) as refused, opened(tmp_path / "scan", scan):
        pass
    assert str(refused.value).startswith(why)
    assert list(tmp_path.iterdir()) == []


def _about_files() -> Iterator[tuple[str, str, str | None]]:
    """Every option of every product about files, pictures and views, with a value that it takes."""
    from lanewise.sims.units.products import OF_UNITS, PANELS
    from lanewise.sims.units.scan import _command  # pyright: ignore[reportPrivateUsage]

    for product in BASE:
        for p in _command(product).params:
            if getattr(p, "rich_help_panel", None) in PANELS and p.name not in OF_UNITS and not p.hidden:
                yield product, p.opts[0], None if p.is_flag else "1"


@pytest.mark.parametrize(("product", "option", "value"), list(_about_files()))
def test_options_about_files_are_none_of_units(product: str, option: str, value: str | None, tmp_path: Path) -> None:
    options = (*BASE[product], option, *(() if value is None else (value,)))
    with (
        pytest.raises(InputError) as refused,
        opened(tmp_path / "scan", Scan(product=product, options=options, axes=())),
    ):
        pass
    assert str(refused.value).startswith(option)
    assert list(tmp_path.iterdir()) == []
