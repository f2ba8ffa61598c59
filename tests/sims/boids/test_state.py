"""Tables of agents: what is written is read again to the bit; what is wrong is named with its place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lanewise.sims.boids import STARTS, Flock, make_state, read_state, write_state
from lanewise.support.errors import InputError
from tests.boids.reference import DATA, read
from tests.sims.boids.flocks import FIELDS, random_state

HEADER = "id,px,py,pz,fx,fy,fz,ux,uy,uz,speed\n"
LINE = "0,1,2,3,1,0,0,0,1,0,2.7\n"


def test_the_table_of_the_truth() -> None:
    state, wanted = read_state(DATA / "init.csv"), read(DATA / "init.csv")
    for name in (*FIELDS, "side"):
        assert np.abs(getattr(state, name) - getattr(wanted, name)).max() < 1e-6
    assert state.ids.tolist() == list(range(512))
    assert len(read_state(DATA / "thesis_step10.csv")) == 512  # with steering forces, which are passed over


@pytest.mark.parametrize("precision", ["f32", "f64"])
def test_written_and_read_again(precision: str, tmp_path: Path) -> None:
    flock = Flock(
        state=replace(random_state(20), ids=np.arange(100, 80, -1)), precision=precision, search="all-pairs"
    ).run(3)
    write_state(tmp_path / "a.csv", flock.state)
    again = Flock(state=read_state(tmp_path / "a.csv"), precision=precision, search="all-pairs")
    for name in (*FIELDS, "ids"):
        assert (getattr(again.state, name) == getattr(flock.state, name)).all(), name
    text = (tmp_path / "a.csv").read_text().split("\n", 1)[1]
    assert text.startswith("id,px,py,pz,fx,fy,fz,ux,uy,uz,sx,sy,sz,speed,ax,ay,az\n100,")


WANTED = "px,py,pz,fx,fy,fz,ux,uy,uz,speed and perhaps id,sx,sy,sz,ax,ay,az"
REFUSED = {
    "nan": (HEADER + LINE + "1,nan,2,3,1,0,0,0,1,0,1\n", "line 3, column 2 (px): 'nan'; wanted a finite number"),
    "text": (HEADER + LINE + "1,0,2,3,1,0,0,0,1,0,fast\n", "line 3, column 11 (speed): 'fast'; wanted a finite number"),
    "id": (HEADER + "1.5,1,2,3,1,0,0,0,1,0,1\n", "line 2, column 1 (id): '1.5'; wanted an integer"),
    "short": (HEADER + "1,2,3\n", "line 2 has 3 values; wanted 11 (id,px,py,pz,fx,fy,fz,ux,uy,uz,speed)"),
    "missing": ("id,px,py,pz,speed\n", f"line 1: no column fx, fy, fz, ux, uy, uz; wanted {WANTED}"),
    "no names": (LINE, f"line 1 is '0,1,2,3,1,0,0,0,1,0,2.7'; wanted the names of the columns: {WANTED}"),
    "unknown": ("px,py,pz,mass\n", f"line 1, column 4: unknown column 'mass'; wanted {WANTED}"),
    "twice": ("px,py,px\n", "line 1, column 3: a second column px"),
    "half an acceleration": (HEADER.strip() + ",ax\n", "line 1: wanted all of ax,ay,az, or none"),
    "no agents": (HEADER, "0 agents; wanted at least 1"),
    "no direction": (HEADER + "0,1,2,3,0,0,0,0,1,0,1\n", "forward of agent 0 has length 0; wanted a unit vector"),
    "no up": (HEADER + "0,1,2,3,1,0,0,0,0,0,1\n", "up of agent 0 is (0, 0, 0); wanted a direction"),
    "backwards": (HEADER + "0,1,2,3,1,0,0,0,1,0,-1\n", "speed of agent 0 is -1; wanted zero or more"),
    "same id": (HEADER + LINE + LINE, "2 agents have the id 0; wanted one each"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_tables_that_are_none(name: str, tmp_path: Path) -> None:
    text, message = REFUSED[name]
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        read_state(path)
    assert str(error.value) == f"{path}: {message}"


@pytest.mark.parametrize("start", STARTS)
def test_starts_lie_in_the_world_and_are_reproducible(start: str) -> None:
    state = make_state(500, start=start, world=50, seed=3)
    assert np.linalg.norm(state.position, axis=1).max() <= 50
    assert np.linalg.norm(state.forward, axis=1) == pytest.approx(1)
    assert np.linalg.norm(state.up, axis=1) == pytest.approx(1)
    assert np.abs((state.up * state.forward).sum(axis=1)).max() < 1e-12
    assert (state.speed == 2.7).all() or state.speed == pytest.approx(2.7)
    assert (make_state(500, start=start, world=50, seed=3).position == state.position).all()
    assert (make_state(500, start=start, world=50, seed=4).position != state.position).any()


def test_opensteers_start() -> None:
    distance = np.linalg.norm(make_state(20_000).position, axis=1)
    assert distance.max() <= 20
    assert np.mean((distance / 20) ** 3) == pytest.approx(0.5, abs=0.02)  # evenly in the ball
