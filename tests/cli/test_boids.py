"""`lanewise boids run`: what it prints and writes, what it refuses, and how it goes on."""

from __future__ import annotations

import csv
import itertools
import os
import re
import shlex
import signal
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from PIL import Image

import lanewise as lw
from lanewise.sims.boids import Flock, Parameters, read_state
from lanewise.sims.boids.obstacles import parse_obstacle
from lanewise.sims.boids.parameters import NUMBERS
from lanewise.support.errors import InputError
from tests.boids.reference import DATA
from tests.cli.command import Command, Outcome, start_process

RUN = ("boids", "run", "--search", "all-pairs")
SMALL = (*RUN, "--agents", 40, "--world", 20)
KEYS = {
    "device", "semantics", "search", "search_chosen", "search_reason", "agents", "k", "radius", "world", "boundary", "obstacles",
    "think_every", "precision", "layout", "steps", "step", "time", "dt", "seconds", "steps_per_second", "agents_per_second",
    "polarisation", "polarisation_initial", "speed", "nearest_neighbour_distance", "cell_population", "out", "final", "plot", "movie",
}  # fmt: skip


def assert_refused(outcome: Outcome, message: str) -> None:
    assert (outcome.code, outcome.out, outcome.err) == (2, "", f"error: {message}\n")


def state(path: str | Path) -> dict[str, Any]:
    """The bits of a checkpoint that decide how a run goes on."""
    file: Any
    with h5py.File(path) as file:
        arrays = {n: np.asarray(a) for n, a in file["state"].items()}
        clock = file["lanewise"].attrs["clock"]
        return {"clock": clock, **{n: (a.dtype.str, a.tobytes()) for n, a in arrays.items()}}


def frames(path: str) -> int:
    with Image.open(path) as film:
        return getattr(film, "n_frames", 0)


# ------------------------------------------------------------ results


def test_json_ends_the_output(lanewise: Command) -> None:
    outcome = lanewise(*SMALL, "--steps", 30, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    found = outcome.last_json
    assert found.keys() == KEYS
    assert {n: found[n] for n in ("device", "semantics", "search", "agents", "world", "boundary", "steps", "step", "k")} == {
        "device": "cpu", "semantics": "sync", "search": "all-pairs", "agents": 40, "world": 20, "boundary": "wrap", "steps": 30,
        "step": 30, "k": None,
    }  # fmt: skip
    assert found["time"] == pytest.approx(0.5)
    assert found["agents_per_second"] == pytest.approx(40 * 30 / found["seconds"])
    flock = Flock(40, world=20, search="all-pairs")
    assert found["polarisation_initial"] == flock.polarisation()
    wanted = flock.run(30).statistics()
    assert found["polarisation"] == wanted.polarisation
    assert found["nearest_neighbour_distance"] == {"min": wanted.nearest_min, "mean": wanted.nearest_mean}
    assert found["cell_population"] == {
        "cells": wanted.cells, "min": wanted.cell_min, "mean": wanted.cell_mean, "max": wanted.cell_max,
    }  # fmt: skip
    assert "40 agents (sync), 30 steps to t = 0.5 on cpu in soa, f32\nsearch: all pairs: all within 9" in outcome.out


def test_every_file_of_a_run(lanewise: Command) -> None:
    files = ("--out", "a.h5", "--final", "a.csv", "--plot", "a.png", "--movie", "a.gif", "--size", "160x90")
    outcome = lanewise(*SMALL, "--steps", 12, *files, "--every", 4, "--json")
    assert outcome.code == 0, outcome.err
    assert sorted(p.name for p in Path().iterdir()) == ["a.csv", "a.gif", "a.h5", "a.png"]
    assert {n: outcome.last_json[n] for n in ("out", "final", "plot", "movie")} == {
        "out": "a.h5", "final": "a.csv", "plot": "a.png", "movie": "a.gif",
    }  # fmt: skip
    assert re.findall(r"^written to (\S+)$", outcome.out, re.MULTILINE) == ["a.h5", "a.csv", "a.png", "a.gif"]
    file: Any
    with h5py.File("a.h5") as file:
        assert file["trajectory/step"][()].tolist() == [0, 4, 8, 12]
        assert file["trajectory/position"].shape == (4, 40, 3)
        assert file["history/polarisation"][-1] == outcome.last_json["polarisation"]
        assert (file.attrs["agents"], file.attrs["radius"], file.attrs["boundary"]) == (40, 9.0, b"wrap")
        last = np.asarray(file["state/position"])
    with Image.open("a.png") as picture:
        assert picture.size == (160, 90)
    assert frames("a.gif") == 4
    with Path("a.csv").open() as table:
        rows = list(csv.DictReader(itertools.islice(table, 1, None)))
    assert tuple(rows[0]) == tuple((DATA / "init.csv").read_text().splitlines()[0].split(","))
    assert np.array_equal(np.array([[row[f"p{a}"] for a in "xyz"] for row in rows], np.float32), last)


def test_the_table_of_opensteer_in_and_out(lanewise: Command) -> None:
    """A step from OpenSteer's own start is OpenSteer's own step."""
    dt = repr(float(np.float32(1 / 60)))
    options = ("--from", DATA / "init.csv", "--steps", 1, "--dt", dt, "--final", "end.csv")
    assert lanewise(*RUN, *options).code == 0
    found, wanted = read_state("end.csv"), read_state(DATA / "sync_step1.csv")
    assert np.array_equal(found.ids, wanted.ids)
    assert np.abs(found.position - wanted.position).max() < 1e-5


def test_one_agent_has_no_flockmate(lanewise: Command) -> None:
    outcome = lanewise(*RUN, "--agents", 1, "--steps", 2, "--json", "--plot", "a.png", "--size", "64x64")
    assert (outcome.code, outcome.err) == (0, "")
    assert "1 agent (sync), 2 steps" in outcome.out
    assert "no flockmate near; 1 cell in use with 1 to 1 agent, 1 on average" in outcome.out
    assert outcome.last_json["nearest_neighbour_distance"] == {"min": None, "mean": None}


def test_movies_fly_at_the_flocks_own_pace(lanewise: Command) -> None:
    outcome = lanewise(*SMALL, "--steps", 60, "--movie", "a.gif", "--size", "64x64", "--camera", "orbit", "--select", 3)
    assert outcome.code == 0, outcome.err
    assert frames("a.gif") == 31  # 60 steps are a second: 25 frames, were they not whole steps


def test_every_constant_is_an_option(lanewise: Command) -> None:
    usual = Parameters()
    given = {n: round(0.9 * getattr(usual, n), 6) for n in NUMBERS}
    options = [word for n, v in given.items() for word in (f"--{n.replace('_', '-')}", v)]
    stone = ("--obstacle", "sphere:5,0,0,2")  # without one nothing looks at the room to obstacles
    assert lanewise(*SMALL, "--steps", 3, *options, *stone, "--out", "a.h5").code == 0
    with h5py.File("a.h5") as file:
        assert {n: file.attrs[n] for n in NUMBERS} == given
    stones = (parse_obstacle(stone[1]),)
    changed = Flock(40, world=20, search="all-pairs", obstacles=stones, **given).run(3)
    assert state("a.h5")["position"][1] == changed.state.position.tobytes()


METHODS = (
    "--semantics seq", "--semantics thesis --search all-pairs", "--precision f64 --search static-grid", "--k 3 --search dynamic-grid",
    "--boundary inside-box --obstacle sphere:5,0,0,2 --think-every 2 --search all-pairs", "--layout aosoa(8) --boundary periodic",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("options", METHODS)
def test_methods(lanewise: Command, options: str) -> None:
    run = lanewise("boids", "run", "--agents", 60, "--world", 24, "--steps", 6, *shlex.split(options), "--json")
    assert (run.code, run.err) == (0, "")
    assert run.last_json["step"] == 6


def test_the_help_names_every_panel(lanewise: Command) -> None:
    text = lanewise("boids", "run", "--help").out
    for panel in ("Initial state", "Method", "Rules", "Pictures and movies", "Files and output"):
        assert panel in text
    for name in NUMBERS:
        assert f"--{name.replace('_', '-')}" in text


# ------------------------------------------------------------ refusals

REFUSED: dict[str, tuple[str, str]] = {
    "radius": ("--radius 0", "the radius is 0; wanted a finite number above zero"),
    "agents": ("--agents 0", "0 agents requested; wanted at least 1"),
    "k of agents": ("--k 50 --agents 40", "k is 50; there are only 40 agents"),
    "k of kernels": ("--k 33 --agents 40", "k is 33; wanted at most 32, the longest list that is kept in registers"),
    "no k": ("--k 0", "k is 0; wanted at least 1 neighbour"),
    "world": ("--world nan", "the radius of the world is nan; wanted a finite length above zero"),
    "endless world": ("--world 1e16", "the radius of the world is 1e+16; wanted at most 1e+15: distances are squared"),
    "steps": ("--steps 0", "the number of steps is 0; wanted an integer from 1 to 1,000,000,000,000"),
    "dt": ("--dt -1", "the time step dt is -1.0; wanted a finite time above zero"),
    "precision": ("--precision f16", "unknown precision 'f16'; did you mean 'f64'? wanted one of f32, f64"),
    "semantics": ("--semantics fast", "unknown semantics 'fast'; wanted one of sync, seq, thesis"),
    "search": ("--search tree", "unknown search 'tree'; wanted one of auto, all-pairs, static-grid, cell-array, dynamic-grid"),
    "boundary": (
        "--boundary round",
        "unknown boundary 'round'; did you mean 'bounded'? wanted one of wrap, open, periodic, bounded, inside-sphere, outside-sphere, outside-spheres, "
        "outside-spheres-wrap, rectangle, rectangle-wrap, outside-box, inside-box",
    ),
    "start": ("--start heap", "unknown start 'heap'; wanted one of ball, world, cube, shell, disc, clusters"),
    "outside": (
        "--agents 9 --start shell --start-radius 60",
        "agent 0 starts 60 from the centre, outside of the world of radius 50; a larger --world holds it, or --boundary open",
    ),
    "seq with k": (
        "--semantics seq --k 3",
        "semantics seq sees all flockmates within the radius, as OpenSteer does; leave k out, or use semantics sync",
    ),
    "periodic": (
        "--boundary periodic --world 8", "the radius is 9; in a periodic world of 16 it is at most half of that, 8",
    ),
    "cosine": ("--alignment-cosine 2", "the alignment cosine is 2; wanted a cosine, from -1 to 1"),
    "obstacle": ("--obstacle sphere:1,2", "--obstacle sphere:1,2: 2 numbers; wanted sphere:x,y,z,r"),
    "no obstacle": ("--obstacle walls.toml", "walls.toml: there is no such file"),
    "every": ("--every 3", "--every needs --out or --movie: frames go there"),
    "checkpoints": ("--checkpoint-every 3", "--checkpoint-every needs --out: checkpoints go there"),
    "table": ("--final a.h5", "--final a.h5: wanted a name that ends in .csv"),
    "picture": ("--plot a.jpg", "--plot a.jpg: pictures are PNG; wanted a name that ends in .png"),
    "movie": ("--movie a.avi", "--movie a.avi: animations are GIF or MP4; wanted a name that ends in .gif or .mp4"),
    "no folder": ("--movie no/a.gif", "no/a.gif: the folder no does not exist; create it first"),
    "colour": ("--colour red --plot a.png --agents 5", "unknown colour 'red'; wanted one of heading, speed, cluster"),
    "unseen": ("--camera orbit", "--camera needs --plot or --movie"),
    "camera": (
        "--camera up --plot a.png --agents 5", "unknown camera 'up'; wanted one of fixed, orbit, offset, follow, pov",
    ),
    "selected": ("--select 5 --plot a.png --agents 5", "agent 5 is to be followed, and there is none with this number"),
    "clusters": (
        "--cluster-radius 0 --colour cluster --plot a.png --agents 5", "the radius of clusters is 0; wanted a finite number above zero",
    ),
    "size": ("--size big --plot a.png", "--size big: wanted WIDTHxHEIGHT in pixels, such as 1280x720"),
    "small": ("--size 9x99 --plot a.png", "--size 9x99: wanted 64 to 7680 pixels each way"),
    "fps": ("--fps 60 --movie a.gif", "--fps 60: wanted more than 0 and at most 50 frames per second for .gif"),
    "fps of nothing": ("--fps 20 --plot a.png", "--fps needs --movie"),
    "one file": ("--out a.h5 --final a.h5", "--final a.h5 is also the file of --out; wanted another one"),
    "table and agents": ("--from a.csv --agents 3", "--agents cannot be given with --from: the table says where the agents are"),
    "no table": ("--from a.csv", "a.csv: there is no such file"),
    "no checkpoint": ("--resume a.h5", "a.h5: there is no such file"),
    "kept": ("--resume a.h5 --k 3", "--k cannot be given with --resume: the checkpoint keeps its own"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused_before_anything_is_written(lanewise: Command, name: str) -> None:
    options, message = REFUSED[name]
    assert_refused(lanewise("boids", "run", *shlex.split(options)), message)
    assert not list(Path().iterdir())


def test_too_many_agents_for_the_memory(lanewise: Command) -> None:
    outcome = lanewise("boids", "run", "--agents", 10**13)
    assert outcome.code == 2
    wanted = r"error: a start of 10,000,000,000,000 agents needs [\d,]+ bytes on 'cpu', and [\d,]+ are available\n"
    assert re.fullmatch(wanted, outcome.err)


HEAD = "id,px,py,pz,fx,fy,fz,ux,uy,uz,sx,sy,sz,speed,ax,ay,az"
ONE, TWO = "0,1,2,3,1,0,0,0,1,0,0,0,1,2.7,0,0,0", "1,4,5,6,1,0,0,0,1,0,0,0,1,2.7,0,0,0"
WANTED = "px,py,pz,fx,fy,fz,ux,uy,uz,speed and perhaps id,sx,sy,sz,ax,ay,az"
TABLES: dict[str, tuple[tuple[str, ...], str]] = {
    "nan": ((HEAD, ONE, TWO.replace("5", "nan")), "line 3, column 3 (py): 'nan'; wanted a finite number"),
    "text": ((HEAD, ONE.replace("2.7", "fast")), "line 2, column 14 (speed): 'fast'; wanted a finite number"),
    "short": ((HEAD, ONE, "1,2"), f"line 3 has 2 values; wanted 17 ({HEAD})"),
    "unknown": ((HEAD.replace("px", "x"), ONE), f"line 1, column 2: unknown column 'x'; wanted {WANTED}"),
    "missing": ((HEAD.replace(",speed", ""),), f"line 1: no column speed; wanted {WANTED}"),
    "no names": ((ONE, TWO), f"line 1 is {ONE!r}; wanted the names of the columns: {WANTED}"),
    "nobody": ((HEAD,), "0 agents; wanted at least 1"),
    "twice": ((HEAD, ONE, ONE), "2 agents have the id 0; wanted one each"),
    "heading": ((HEAD, ONE, TWO.replace("6,1", "6,3")), "forward of agent 1 has length 3; wanted a unit vector"),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_that_are_none(lanewise: Command, name: str) -> None:
    lines, message = TABLES[name]
    Path("a.csv").write_text("\n".join(lines) + "\n")
    assert_refused(lanewise("boids", "run", "--from", "a.csv", "--out", "a.h5"), f"a.csv: {message}")
    assert not Path("a.h5").exists()


@pytest.mark.parametrize("option", ["out", "final", "plot", "movie"])
def test_files_are_kept_unless_overwrite_is_given(lanewise: Command, option: str) -> None:
    name = {"out": "a.h5", "final": "a.csv", "plot": "a.png", "movie": "a.gif"}[option]
    Path(name).write_text("mine")
    command = (*SMALL, "--steps", 2, f"--{option}", name, *(() if option in ("out", "final") else ("--size", "64x64")))
    assert_refused(lanewise(*command), f"{name}: the file exists already; give --overwrite to replace it")
    assert Path(name).read_text() == "mine"
    assert lanewise(*command, "--overwrite").code == 0
    assert Path(name).read_bytes() != b"mine"


def test_an_agent_that_leaves_a_bounded_world(lanewise: Command) -> None:
    command = (*RUN, "--agents", 12, "--world", 20, "--boundary", "bounded", "--steps", 3000, "--out", "a.h5")
    outcome = lanewise(*command, "--movie", "a.gif", "--size", "64x64", "--every", 50)
    assert outcome.code == 2
    wanted = (
        r"error: between step [\d,]+ and step [\d,]+ agent \d+ left the world of radius 20, and is 20\.\d+ from its centre"
        r"( \(\d+ agents did\))?; a larger --world, --boundary wrap, or an obstacle that is seen from inside keeps it\n"
    )
    assert re.fullmatch(wanted, outcome.err), outcome.err
    assert Path("a.gif").exists()  # what there was
    assert lanewise("boids", "run", "--resume", "a.h5", "--steps", 1, "--json").last_json["steps"] == 1


def test_more_cells_than_there_are_numbers_for() -> None:
    edge = 50 * (1 + 1e-5)
    grid = lw.StaticGrid(radius=9.0, world=lw.Bounded((-edge,) * 3, (edge,) * 3), cells=2000)
    with pytest.raises(InputError) as error:
        Flock(10, search=grid)
    assert str(error.value) == (
        "StaticGrid(cells=2000): 2000 x 2000 x 2000 are 8,000,000,000 cells, and their numbers have 32 bits; wanted at most 2,147,418,112"
    )


# ------------------------------------------------------------ going on


THINKERS = ("--boundary", "outside-sphere", "--think-every", "2")


@pytest.mark.parametrize("options", [(), pytest.param(THINKERS, marks=pytest.mark.slow)], ids=["plain", "thinkers"])
def test_parts_are_the_whole_to_the_bit(lanewise: Command, options: tuple[str, ...]) -> None:
    assert lanewise(*SMALL, *options, "--steps", 23, "--every", 5, "--out", "whole.h5").code == 0
    assert lanewise(*SMALL, *options, "--steps", 9, "--every", 5, "--out", "parts.h5").code == 0
    for steps in (3, 11):
        outcome = lanewise("boids", "run", "--resume", "parts.h5", "--steps", steps)
        assert (outcome.code, outcome.err) == (0, "")
    assert state("parts.h5") == state("whole.h5")
    a: Any
    b: Any
    with h5py.File("parts.h5") as a, h5py.File("whole.h5") as b:
        for name in ("trajectory/step", "trajectory/position", "history/polarisation", "history/nearest_mean"):
            assert np.array_equal(a[name], b[name]), name


def test_pictures_and_movies_change_no_bit(lanewise: Command) -> None:
    lanewise(*SMALL, "--steps", 12, "--out", "a.h5")
    lanewise(
        *SMALL, "--steps", 12, "--out", "b.h5", "--movie", "b.gif", "--every", 3, "--plot", "b.png", "--size", "64x64"
    )
    assert state("a.h5") == state("b.h5")


def test_a_resumed_run_has_its_own_movie_and_leaves_the_checkpoint_alone(lanewise: Command) -> None:
    lanewise(*SMALL, "--steps", 6, "--out", "a.h5")
    before = Path("a.h5").read_bytes()
    look = ("--movie", "b.gif", "--every", 2, "--size", "64x64", "--camera", "follow")
    outcome = lanewise("boids", "run", "--resume", "a.h5", "--steps", 4, "--out", "b.h5", *look, "--json")
    assert outcome.code == 0, outcome.err
    assert (outcome.last_json["steps"], outcome.last_json["step"]) == (4, 10)
    assert frames("b.gif") == 3  # steps 6, 8 and 10
    assert Path("a.h5").read_bytes() == before


def test_a_complete_run_needs_steps(lanewise: Command) -> None:
    lanewise(*SMALL, "--steps", 2, "--out", "a.h5")
    assert_refused(
        lanewise("boids", "run", "--resume", "a.h5"), "a.h5 is complete at step 2; say with --steps how many more"
    )
    Path("b.csv").write_text("x\n")
    assert_refused(lanewise("boids", "run", "--resume", "b.csv"), "b.csv: this is no HDF5 file")


def test_ctrl_c_keeps_what_there_is(lanewise: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def press(run: Any) -> None:
        if run.state.flock.step == 8:
            os.kill(os.getpid(), signal.SIGINT)

    def follow(run: Any, *_: object, quiet: bool) -> None:
        run.execute(press)

    monkeypatch.setattr("lanewise.sims.common.frame.follow", follow)
    command = (*SMALL, "--steps", 1000, "--movie", "a.gif", "--size", "64x64", "--every", 4)
    outcome = lanewise(*command, "--out", "a.h5")
    assert (outcome.code, outcome.err) == (130, "interrupted; continue with: lanewise boids run --resume a.h5\n")
    assert frames("a.gif") == 3
    with h5py.File("a.h5") as file:
        assert file.attrs["step"] == 8
    resumed = lanewise("boids", "run", "--resume", "a.h5", "--steps", 4, "--json")
    assert (resumed.code, resumed.last_json["step"]) == (0, 12)


def test_what_is_said_when_nothing_was_kept(lanewise: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def follow(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lanewise.sims.common.frame.follow", follow)
    outcome = lanewise(*SMALL, "--steps", 5)
    assert (outcome.code, outcome.err) == (130, "interrupted at step 0; nothing was kept, as there is no --out\n")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["kill", "Ctrl-C"])
def test_a_stopped_run_resumes_to_the_same_bits(lanewise: Command, tmp_path: Path, number: signal.Signals) -> None:
    flock = ("--agents", 400, "--world", 30, "--search", "all-pairs")
    process = start_process(
        tmp_path, "boids", "run", *flock, "--steps", 10**9, "--out", "cut.h5", "--checkpoint-every", 20
    )
    path, until = tmp_path / "cut.h5", time.monotonic() + 60

    def step() -> int:
        file: Any
        try:
            with h5py.File(path) as file:
                return int(file.attrs["step"])
        except OSError:
            return 0

    while step() < 40 and time.monotonic() < until and process.poll() is None:
        time.sleep(0.05)
    os.kill(process.pid, number)
    _, errors = process.communicate(timeout=60)
    if number == signal.SIGINT:
        assert (process.returncode, errors) == (130, "interrupted; continue with: lanewise boids run --resume cut.h5\n")
    reached = step()
    assert reached >= 40
    assert lanewise("boids", "run", "--resume", "cut.h5", "--steps", 3).code == 0
    assert lanewise("boids", "run", *flock, "--steps", reached + 3, "--out", "whole.h5").code == 0
    assert state("cut.h5") == state("whole.h5")
