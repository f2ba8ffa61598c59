"""The ladder of flocks: every search is checked against float64 and compared; what cannot run says why, and ends
nothing.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lanewise.ladders import boids, boids_run, find_ladder
from lanewise.ladders.boids import LADDER, MILLIONS, SIZES, THESIS_AGENTS, climb, flocks, is_limited, summary
from lanewise.ladders.boids_run import FlockRunner
from lanewise.ladders.boids_truth import TOLERANCE
from lanewise.ladders.boids_versions import (
    AHEAD,
    ALL,
    AROUND,
    AUTOMATIC,
    COLUMNS,
    CONSTANT,
    CURVE,
    DEVICE,
    EIGHT,
    GPU,
    HOST,
    IN_TURN,
    LISTS,
    ONE,
    OWN_CELLS,
    SORT,
    THREE,
    Version,
    figures_of,
    is_host_built,
    paper_of,
    thesis_cells,
    versions,
)
from lanewise.ladders.rung import Options, Rung, as_json
from lanewise.patterns.search import StaticGrid
from lanewise.patterns.search.base import MOST_NEIGHBORS

AGENTS, WORLD = 500, 15.0
FEW = (ALL, HOST, CONSTANT, DEVICE, AUTOMATIC)  # versions that are soon compiled
Versions = Callable[[float, str], Iterator[Version]]


def some_versions(*names: str) -> Versions:
    return lambda world, device: (v for v in versions(world, device) if v.name in names)


def climbed(*names: str, agents: int = AGENTS) -> list[Rung]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boids, "versions", some_versions(*names))
        return list(climb(Options("cpu", (agents,), quick=True, worlds=(WORLD,))))


@pytest.fixture(scope="module")
def rungs() -> list[Rung]:
    return climbed(*FEW)


def short(rung: Rung) -> str:
    return rung.name.removeprefix(f"W={WORLD:g}, ")


def check(rung: Rung) -> None:
    assert rung.skipped is None
    assert rung.seconds is not None
    assert rung.relative_error is not None
    assert 0 < rung.relative_error < TOLERANCE
    assert rung.extra["steps_per_second"] == pytest.approx(1 / rung.seconds)
    assert int(rung.extra["checked"] or 0) > 0
    assert int(rung.extra["neighbors_checked"] or 0) > 100


def test_versions_are_measured_and_right(rungs: list[Rung]) -> None:
    assert [short(r) for r in rungs] == list(FEW)
    known = {short(r): r for r in rungs}
    for name in (ALL, HOST):
        check(known[name])
    host, every = known[HOST], known[ALL]
    assert (every.over, host.over) == (None, every.name)
    assert host.speedup == host.extra["over_all_pairs"] == pytest.approx((every.seconds or 0) / (host.seconds or 1))
    assert host.predicted == pytest.approx((every.predicted_seconds or 0) / (host.predicted_seconds or 1))
    for stage in ("build", "search", "update"):
        assert float(host.extra[f"{stage}_seconds"] or 0) > 0
    assert known[CONSTANT].skipped == "only a GPU has constant memory, and this is 'cpu'"
    assert known[DEVICE].skipped == f"on this device it is {HOST!r}"
    assert [known[n].extra["skip"] for n in (CONSTANT, DEVICE)] == ["device", "same code"]


@pytest.mark.slow
def test_all_versions() -> None:
    rungs = climbed(*(v.name for v in versions(WORLD, "cpu")), agents=3000)
    known = {short(r): r for r in rungs}
    assert set(EIGHT) < set(known)
    for name in (ALL, HOST, SORT, ONE, THREE, AROUND, CURVE, COLUMNS, LISTS, AHEAD, IN_TURN):
        check(known[name])
    assert known[AROUND].over == known[HOST].name
    assert known[IN_TURN].over is None
    assert known[IN_TURN].extra["search_seconds"] is None
    shares = {name: float(known[name].extra["idle_share"] or 0.0) for name in (SORT, ONE, THREE, CURVE)}
    assert shares[ONE] > 0.2  # the thesis: 0.405
    assert shares[THREE] > 0.2
    assert shares[SORT] < 0.05
    assert shares[CURVE] < 0.01
    for name in (SORT, ONE, THREE, CURVE):
        assert (
            0 <= float(known[name].extra["active_idle_threads"] or 0) <= float(known[name].extra["idle_threads"] or 0)
        )
    assert summary(rungs)[0].startswith(f"3,000 agents, world {WORLD:g}: fastest is ")


def test_a_rung_is_compared_with_the_one_that_its_base_is() -> None:
    """On a CPU the cells that the device builds are the host's: a rung over them has a factor all the same."""
    with pytest.MonkeyPatch.context() as patch:
        plain = {v.name: v for v in versions(WORLD, "cpu")}
        two = [plain[HOST], plain[DEVICE], replace(plain[AHEAD], over=DEVICE)]
        patch.setattr(boids, "versions", lambda world, device: iter(two))
        host, device, ahead = climb(Options("cpu", (AGENTS,), quick=True, worlds=(WORLD,)))
    assert device.extra["skip"] == "same code"
    assert ahead.over == host.name
    assert ahead.speedup == pytest.approx((host.seconds or 0) / (ahead.seconds or 1))
    check(ahead)


def test_report_and_picture(rungs: list[Rung], tmp_path: Path) -> None:
    found = json.loads(json.dumps(as_json({"name": "here"}, LADDER, rungs)))
    wanted = {
        "name",
        "seconds",
        "speedup",
        "predicted",
        "paper",
        "relative_error",
        "skipped",
        "world",
        "thesis",
        "thesis_where",
    }
    assert all(wanted <= row.keys() for row in found["rungs"])
    assert find_ladder("boids") is LADDER
    assert LADDER.draw is not None
    for number, shown in enumerate((rungs, [], [r for r in rungs if r.skipped])):
        path = tmp_path / f"{number}.png"
        LADDER.draw(path, LADDER, shown, "here")
        assert struct.unpack(">II", path.read_bytes()[16:24])[0] > 1500
    for column in LADDER.columns:
        assert all(column.text(r) for r in rungs)


def test_the_summary_names_the_automatic_choice() -> None:
    fast, slow = (
        Rung(name=f"W=9, {n}", bodies=5, seconds=s, extra={"world": 9.0}) for n, s in ((CURVE, 1.0), (OWN_CELLS, 1.5))
    )
    same = Rung(name=f"W=9, {AUTOMATIC}", bodies=5, skipped=f"on this device it is {OWN_CELLS!r}", extra={"world": 9.0})
    assert summary([slow, fast, same]) == [
        f"5 agents, world 9: fastest is {CURVE!r}, 1.00 s per step; the automatic choice, {OWN_CELLS!r}, takes 1.50 times as long"
    ]
    (line,) = summary([slow, same])
    assert line.endswith("1.50 s per step; it is lanewise's automatic choice")
    assert summary([same]) == []


# ---------------------------------------------------------------- what goes wrong


def test_a_search_that_misses_flockmates_has_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boids_run, "THESIS_K", 6)  # the flock's own; the truth of the runner is of seven
    (version,) = (v for v in versions(WORLD, "cpu") if v.name == HOST)
    assert version.search is not None
    runner = FlockRunner(Options("cpu", (AGENTS,), quick=True), AGENTS, WORLD, {False: 1e-9})
    with monkeypatch.context() as patch:
        patch.setattr(boids_run, "THESIS_K", 7)
        assert len(runner.truth.rows) > AGENTS // 2
    rung = runner.measure(replace(version, search=replace(version.search, k=6)), {})
    assert rung.seconds is None
    assert rung.extra["skip"] == "wrong"
    assert str(rung.skipped).startswith("wrong: the change of velocities differs from float64 by ")
    assert float(rung.relative_error or 0) > 10 * TOLERANCE


def test_an_error_in_one_rung_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Any, sources: Any) -> Any:
        raise RuntimeError("no such luck")

    monkeypatch.setattr(StaticGrid, "make", broken)
    every, host, again = climbed(ALL, HOST, DEVICE)
    assert every.seconds is not None
    assert host.skipped == again.skipped == "failed: RuntimeError: no such luck"
    assert host.extra["skip"] == "failed"


def test_a_search_that_is_refused_says_why() -> None:
    too_many = some_versions(HOST)
    (version,) = too_many(WORLD, "cpu")
    assert version.search is not None
    runner = FlockRunner(Options("cpu", (6,), quick=True), 6, WORLD, {False: 1e-9})
    rung = runner.measure(version, {})
    assert rung.extra["skip"] == "illegal"
    assert "k is 7; there are only 6 agents" in str(rung.skipped)
    assert MOST_NEIGHBORS > 7


def refusal(name: str, agents: int, device: str, pairs: dict[bool, float]) -> str | None:
    (version,) = (v for v in versions(200.0, device) if v.name == name)
    runner = FlockRunner(Options(device, (agents,)), agents, 200.0, pairs)
    blank = Rung(name=name, bodies=agents, skipped="not run")
    found = runner._refused(version, blank)  # pyright: ignore[reportPrivateUsage]
    return None if found is None else found.skipped


def test_what_would_take_too_long() -> None:
    pairs = {False: 1e-12, True: 1e-9}
    assert refusal(ALL, 2**22, "cuda", pairs) == (
        "a step would take about 18 seconds, and a rung gets 2 seconds (a pair takes 0.001 ns)"
    )
    for name in (HOST, CONSTANT, SORT, ONE, THREE, AROUND):
        assert refusal(name, 2**18, "cuda", pairs) is None
        assert refusal(name, 2**22, "cuda", pairs) == (
            "the host builds it and copies go both ways in every step: measured up to 262,144 agents"
        )
    for name in (DEVICE, OWN_CELLS, CURVE, AUTOMATIC):
        assert refusal(name, 2**22, "cuda", pairs) is None
    assert refusal(ALL, 2**18, "cuda", pairs) is None
    assert str(refusal(IN_TURN, 2**18, "cpu", pairs)).startswith(
        "a step would take about 69 seconds, and a rung gets 30"
    )


def test_a_ladder_on_a_gpu_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boids, "GPU_SECONDS", -1.0)
    rungs = list(climb(Options("cuda", SIZES("cuda", False))))
    assert len(rungs) == len(flocks(Options("cuda", SIZES("cuda", False)))) * 14
    assert all(r.extra["skip"] == "too long" for r in rungs)
    assert all(f"--agents {r.bodies} --world {r.extra['world']:g} measures it" in str(r.skipped) for r in rungs)


# ---------------------------------------------------------------- sizes, versions and figures


def test_sizes() -> None:
    assert SIZES("cpu", False) == THESIS_AGENTS == (4096, 8192, 16384, 32768, 65536, 131072, 262144)
    assert SIZES("cuda", False) == (*THESIS_AGENTS, MILLIONS)
    assert flocks(Options("cpu", (100, 200), worlds=(5.0, 6.0))) == [(100, 5.0), (100, 6.0), (200, 5.0), (200, 6.0)]
    found = flocks(Options("cuda", SIZES("cuda", False)))
    assert found[:8] == [*((n, 200.0) for n in THESIS_AGENTS), (MILLIONS, 400.0)]
    assert found[8:] == [(2**14, 50.0), (2**16, 50.0), (2**16, 100.0), (2**16, 400.0)]
    assert flocks(Options("cpu", SIZES("cpu", True), quick=True)) == [(2**12, 200.0), (2**14, 50.0)]
    assert flocks(Options("cuda:1", SIZES("cuda:1", True), quick=True)) == [(2**14, 50.0), (2**17, 200.0)]
    assert is_limited(Options("cuda", SIZES("cuda", False)))
    assert not is_limited(Options("cuda", SIZES("cuda", False), worlds=(50.0,)))
    assert not is_limited(Options("cpu", SIZES("cpu", False)))


def test_versions() -> None:
    names = [v.name for v in versions(200.0, "cuda")]
    assert names[: len(EIGHT)] == list(EIGHT)
    assert IN_TURN not in names
    assert [v.name for v in versions(200.0, "cpu")] == [*names, IN_TURN]
    for v in versions(200.0, "cpu"):
        assert v.over is None or v.over in names[: names.index(v.name)]
    assert [thesis_cells(w) for w in (1.0, 50.0, 100.0, 200.0)] == [1, 23, 25, 25]
    built = {v.name for v in versions(200.0, "cuda") if v.search is not None and is_host_built(v.search)}
    assert built == {HOST, CONSTANT, SORT, ONE, THREE, AROUND, COLUMNS}


def test_figures_of_the_thesis() -> None:
    assert paper_of(HOST, 2**17, 200.0) == {GPU: 35.0}
    assert paper_of(HOST, 2**17, 100.0) is None
    assert paper_of(AROUND, 2**13, 200.0) == {GPU: 1.15}
    assert [f.where for f in figures_of(ONE, 2**14, 50.0)] == ["section 7.3", "table 7.1"]
    idle = {f.rung: f.idle for name in (ONE, THREE) for f in figures_of(name, 2**14, 50.0) if f.idle}
    assert idle == {ONE: 11152, THREE: 9821}
    assert round(11152 / (11152 + 2**14), 3) == 1 - 0.595
