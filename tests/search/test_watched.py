"""The quick look at positions refuses what the thorough one refuses, and its answer is that of this call."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.patterns.pairwise.kernel import Pairwise
from lanewise.patterns.search import watched
from lanewise.patterns.search.points import Points, points_of
from lanewise.patterns.search.watched import ANSWERS, NONE, DeviceLook
from lanewise.primitives.survey import ANSWER
from lanewise.runtime import cuda
from lanewise.runtime.memory import to_host
from lanewise.runtime.nvrtc import compile_cubin
from lanewise.support.errors import ArgumentError

PERIODIC = lw.StaticGrid(radius=0.2, world=lw.Periodic((1, 1, 1)))
CUDA = pytest.mark.cuda


@lw.record
class Agent:
    position: lw.vec3
    weight: lw.f32


@lw.record
class Flat:
    weight: lw.f64
    position: lw.dvec2


@lw.pairwise(search=PERIODIC)
def crowd(target: Agent, source: Agent, scale: lw.f32) -> lw.f32:
    return scale * source.weight


@lw.pairwise(search=PERIODIC)
def pull(target: Agent, source: Agent, scale: lw.f32, wind: lw.vec3) -> tuple[lw.vec3, lw.f32]:
    return scale * source.weight * (source.position - target.position) + wind, source.weight


def agents(count: int = 300, device: str = "cpu", layout: Any = None) -> Any:
    r = np.random.default_rng(4)
    return Agent.array(position=r.random((count, 3)), weight=r.random(count), layout=layout).to(device)


def refused(points: Points, world: Any, reach: float) -> bool:
    try:
        points.check("here", world, reach)
    except ArgumentError:
        return True
    return False


WORLDS = {
    2: [lw.Open(), lw.Periodic((1, 1)), lw.Bounded((0.1, -1), (0.7, 1e300))],
    3: [lw.Open(), lw.Bounded((0.1, -1, 0), (0.7, 1, 1e300))],
}
PLACES = [0.1, 0.7, math.nextafter(0.7, 1), float(np.float32(0.1)), float(np.float32(0.7)), float(np.nextafter(np.float32(0.7), 1)),
          -1.0, 0.0, -0.0, 1e30, -1e30, math.nan, math.inf, -math.inf, 5e-324]  # fmt: skip


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("layout", [lw.SoA(), lw.AoS(), lw.AoAS(), lw.AoSoA(4), lw.SoAoAS()], ids=str)
@pytest.mark.parametrize("record", [Agent, Flat])
def test_the_quick_look_lets_nothing_through_that_the_thorough_one_refuses(record: Any, layout: Any) -> None:
    axes = 3 if record is Agent else 2
    accepted = 0
    for world in WORLDS[axes]:
        for reach in (math.inf, 1e20):
            for axis in range(axes):
                for place in PLACES:
                    positions = np.full((7, axes), 0.5)
                    positions[4, axis] = place
                    with np.errstate(over="ignore"):
                        array = record.array(
                            position=positions.astype("f4" if record is Agent else "f8"), layout=layout
                        )
                    points = points_of(array, "position")
                    found = watched._host_look(points, points.bounds(world, reach))
                    if found is None:
                        assert layout == lw.AoSoA(4)  # a copy of now would say nothing of later
                        continue
                    look, arguments = found
                    assert not (look(*arguments) and refused(points.again(), world, reach)), (world, reach, axis, place)
                    accepted += look(*arguments)
    assert accepted > 0 or layout == lw.AoSoA(4)


def test_calls_go_the_quick_way(monkeypatch: pytest.MonkeyPatch) -> None:
    bodies, others = agents(), agents(200)
    wanted = [crowd(bodies, bodies, 2.0).tobytes(), crowd(others, bodies, 2.0).tobytes()]
    monkeypatch.setattr(Points, "check", lambda *_: pytest.fail("the slow way"))
    assert [crowd(bodies, bodies, 2.0).tobytes(), crowd(others, bodies, 2.0).tobytes()] == wanted


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=CUDA)])
def test_every_call_has_results_and_values_of_its_own(device: str) -> None:
    bodies = agents(device=device)
    values = [(1.0, (0.0, 0.5, 1.0)), (1.0, (0.0, 0.5, 1.0)), (-2.0, (3.0, 0.5, 1.0)), (-2.0, (3.0, 0.25, 1.0))]
    results = [pull(bodies, bodies, *each) for each in values]
    for each, (forces, weights) in zip(values, results, strict=True):
        wanted = [to_host(w).tobytes() for w in pull.bind(bodies, bodies, *each)()]
        assert forces.shape == (300, 3)
        assert [to_host(forces).tobytes(), to_host(weights).tobytes()] == wanted


def test_targets_are_looked_at_too() -> None:
    kernel, bodies, others = Pairwise(crowd.python, PERIODIC), agents(), agents(200)
    wanted = kernel(others, bodies, 2.0).tobytes()
    kept = others.position[7, 1].copy()
    others.position[7, 1] = np.nan
    for _ in range(2):
        with pytest.raises(ArgumentError, match=r"crowd: 'target': the position of element 7 is"):
            kernel(others, bodies, 2.0)
    others.position[7, 1] = kept
    assert kernel(others, bodies, 2.0).tobytes() == wanted


def test_the_answer_compiles() -> None:
    assert compile_cubin(ANSWER, "look_answer", "sm_90").code.startswith(b"\x7fELF")


# ------------------------------------------------------------ on a GPU


def look_of(kernel: Pairwise) -> DeviceLook:
    """Of the last call."""
    over: Any = kernel.searched
    return over._repeated._entries[0].watched.flat._look


def warm(kernel: Pairwise, bodies: Any) -> bytes:
    """What calls give, after the first quick one."""
    found = {to_host(kernel(bodies, bodies, 2.0)).tobytes() for _ in range(3)}
    assert len(found) == 1
    return found.pop()


def sleep() -> None:
    """Work on the GPU that takes some milliseconds, put on the current stream."""
    module = cuda.cupy()
    text = 'extern "C" __global__ void wait(long long n) { const long long t = clock64(); while (clock64() - t < n) ; }'
    module.RawKernel(text, "wait")((1,), (1,), (np.int64(20_000_000),))


@CUDA
def test_a_look_behind_other_work_is_waited_for() -> None:
    kernel, bodies = Pairwise(crowd.python, PERIODIC), agents(device="cuda")
    wanted = warm(kernel, bodies)
    sleep()
    assert to_host(kernel(bodies, bodies, 2.0)).tobytes() == wanted
    sleep()
    bodies.position[9, 2] = np.inf  # on the stream, behind the other work
    with pytest.raises(ArgumentError, match="the position of element 9 is"):
        kernel(bodies, bodies, 2.0)
    bodies.position[9, 2] = 0.25
    first = to_host(Pairwise(crowd.python, PERIODIC)(bodies, bodies, 2.0)).tobytes()
    for _ in range(3):
        assert to_host(kernel(bodies, bodies, 2.0)).tobytes() == first


@CUDA
def test_a_look_that_was_interrupted_answers_no_later_one(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, bodies = Pairwise(crowd.python, PERIODIC), agents(device="cuda")
    wanted = warm(kernel, bodies)
    sound = DeviceLook.sound

    def interrupted(self: DeviceLook) -> bool:
        raise KeyboardInterrupt

    for bad in (False, True):
        monkeypatch.setattr(DeviceLook, "sound", interrupted)
        if bad:
            bodies.position[3, 0] = np.nan
        sleep()
        with pytest.raises(KeyboardInterrupt):
            kernel(bodies, bodies, 2.0)
        monkeypatch.setattr(DeviceLook, "sound", sound)
        if bad:
            with pytest.raises(ArgumentError, match="the position of element 3 is"):
                kernel(bodies, bodies, 2.0)
            with pytest.raises(ArgumentError, match="the position of element 3 is"):
                kernel(bodies, bodies, 2.0)
        else:
            assert to_host(kernel(bodies, bodies, 2.0)).tobytes() == wanted


@CUDA
def test_looks_are_counted_round() -> None:
    kernel, bodies = Pairwise(crowd.python, PERIODIC), agents(device="cuda")
    wanted = warm(kernel, bodies)
    look: Any = look_of(kernel)
    look._state[2] = look._begun = ANSWERS - 1
    for _ in range(4):
        assert to_host(kernel(bodies, bodies, 2.0)).tobytes() == wanted
    assert look._begun == 2
    assert to_host(look._state)[:2].tolist() == [NONE, NONE]


@CUDA
def test_threads_and_streams_share_a_look() -> None:
    kernel, bodies = Pairwise(crowd.python, PERIODIC), agents(3000, device="cuda")
    wanted = to_host(kernel(bodies, bodies, 2.0)).tobytes()
    module = cuda.cupy()

    def work(number: int) -> set[bytes]:
        with module.cuda.Stream(non_blocking=True):
            return {to_host(kernel(bodies, bodies, 2.0)).tobytes() for _ in range(20)}

    module.cuda.Device().synchronize()
    with ThreadPoolExecutor(4) as pool:
        assert set().union(*pool.map(work, range(8))) == {wanted}


@CUDA
def test_the_quick_way_is_one_graph_and_one_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, bodies = Pairwise(crowd.python, PERIODIC), agents(device="cuda")
    wanted = warm(kernel, bodies)
    launches, launch = [0], cuda.CudaKernel.launch

    def counted(self: Any, *arguments: Any) -> None:
        launches[0] += 1
        launch(self, *arguments)

    monkeypatch.setattr(cuda.CudaKernel, "launch", counted)
    assert to_host(kernel(bodies, bodies, 2.0)).tobytes() == wanted
    assert launches == [1]
