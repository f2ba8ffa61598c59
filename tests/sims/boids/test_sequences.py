"""Steps of flocks as data: the order in memory, the search, the rules and the update, over named memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import lanewise as lw
from lanewise.launch.task_verifier import verify
from lanewise.launch.tasks import Role, Sequence
from lanewise.sims.boids import Flock
from lanewise.sims.boids.boundaries import BOUNDARIES
from lanewise.support.errors import VerificationError

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]
SEARCHES = ("all-pairs", "static-grid", "dynamic-grid")


def flock(device: str = "cpu", **chosen: Any) -> Flock:
    return Flock(90, device=device, start_radius=10.0, **chosen)


@pytest.mark.grid(every=24)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_flocks_of_all_worlds_and_searches_are_sound(boundary: str, search: Any, device: str) -> None:
    found = flock(device, boundary=boundary, search=search)
    for steps in (1, 2, 33):
        sequence = verify(found.sequence(steps))
        assert sequence.changed <= {"agents", "rows"}
        assert sequence.buffers["agents"].role is Role.ARGUMENT
        names = [t.name for t in sequence.tasks]
        # agents are brought into the order of the search in the first step and after 32 others
        assert names.count("copy back") == (0 if search == "all-pairs" else 1 + steps // 33)
        assert names.count("steer") == steps


@pytest.mark.parametrize(
    "chosen",
    [
        {"think_every": 3},
        {"think_every": 3, "k": 4, "search": "static-grid"},
        {"k": 4},
        {"boundary": "open", "search": lw.StaticGrid(radius=9.0, build="host")},
        {"semantics": "thesis"},
        {"semantics": "seq", "search": "all-pairs"},
        {"precision": "f64", "layout": "aos"},
    ],
    ids=str,
)
def test_flocks_of_other_rules_are_sound(chosen: dict[str, Any]) -> None:
    found = flock(**chosen)
    for steps in (1, 4):
        verify(found.sequence(steps))
    found.run(2)
    verify(found.sequence(5))


def test_what_a_step_launches_is_explained() -> None:
    found = flock(search="static-grid")
    names = [t.name for t in found.sequence().tasks]
    assert found._steps.loop is not None
    rows = found._steps.loop.explain().launches
    assert (
        [row.name for row in rows]
        == names
        == ["cells", "gather", "gather", "copy back", "cells", "gather", "steer", "move"]
    )
    # an agent is copied with a number of its place
    assert rows[1].nbytes is not None
    assert rows[1].nbytes >= 2 * found.boids.nbytes
    assert all(row.grid == "90 turns" for row in rows if row.name in ("gather", "steer", "move"))


def without(sequence: Sequence, name: str) -> Sequence:
    return replace(sequence, tasks=tuple(t for t in sequence.tasks if t.name != name))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("steer", "move reads 'result0 of steer', which nothing has written before"),
        ("gather", "copy back reads 'spare boids', which nothing has written before"),
        ("cells", r"gather reads '\$order', which nothing has written before"),
        ("copy back", "gather writes 'spare rows', which nothing reads after it"),
        ("move", "steer writes 'result0 of steer', which nothing reads after it"),
    ],
)
def test_a_task_that_is_forgotten(name: str, why: str) -> None:
    sequence = verify(flock(search="static-grid").sequence())
    with pytest.raises(VerificationError, match=why):
        verify(without(sequence, name))


def test_agents_that_a_task_may_not_write() -> None:
    sequence = flock(search="static-grid").sequence()
    with pytest.raises(VerificationError, match="copy back writes 'agents', which a call does not change"):
        verify(replace(sequence, changed=frozenset({"rows"})))


def test_obstacles_lie_between_the_search_and_the_update() -> None:
    found = flock(boundary="outside-spheres-wrap", search="static-grid")
    sequence = verify(found.sequence())
    names = [t.name for t in sequence.tasks]
    assert names.index("steer") < names.index("clear") < names.index("move_around")
    assert sequence.buffers["result of clear"].role is Role.TEMPORARY
    with pytest.raises(VerificationError, match="reads 'result of clear', which nothing has written before"):
        verify(without(sequence, "clear"))
