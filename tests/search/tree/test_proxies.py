"""Far fields of functions that are linear and not radial, by records at chosen points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.compiler.pipeline import build_program
from lanewise.ir.interpret import evaluate
from lanewise.launch.executable import build_executable
from lanewise.patterns.search.tree.arguments import HEIGHT_COUNT, LEAVES
from lanewise.planning.plan import NEUTRAL, Plan
from tests import far_kernels as kernels
from tests.search.tree.kernels_of_calls import TreeCall
from tests.search.tree.test_walk import bodies, errors


@lw.pairwise
def two_sums(target: kernels.Star, source: kernels.Star) -> tuple[lw.f64, lw.f64]:
    """One result with a weight, one that counts; both know where the source is."""
    d = source.position - target.position
    near = lw.exp(-lw.dot(d, d) * target.softening - 0.1 * source.position.y)
    return source.mass * near, near + 0.5


@lw.pairwise
def polynomial(target: kernels.Star, source: kernels.Star) -> lw.f64:
    """Of degree two along each axis."""
    x, y = source.position.x, source.position.y
    return source.mass * (x * x * target.position.z + 3.0 * x * y * y - source.position.z + 1.0)


@lw.pairwise
def in_a_plane(target: kernels.Wire, source: kernels.Wire) -> lw.dvec2:
    d = source.position - target.position
    return source.charge / (lw.dot(d, d) + 0.1 * target.charge) * d


@lw.record
class Grain:
    position: lw.vec3
    mass: lw.f32
    softening: lw.f32


@lw.pairwise
def softened(target: Grain, source: Grain) -> lw.vec3:
    if lw.same(target, source):
        return lw.vec3(0.0)
    d = source.position - target.position
    inv = lw.rsqrt(lw.dot(d, d) + target.softening * target.softening)
    return source.mass * inv * inv * inv * d


@lw.elementwise
def drift(grain: Grain, pull: lw.vec3, dt: lw.f32):
    grain.position += dt * pull


@pytest.mark.parametrize("kernel", [*kernels.WITH_PROXIES, two_sums, in_a_plane], ids=lambda k: k.__name__)
@pytest.mark.parametrize("device", ["python", "cpu"])
def test_results_are_those_of_all_pairs(kernel: Any, device: str) -> None:
    few = device == "python"
    targets = bodies(kernel, 40 if few else 1200, 1, target=True)
    targets["position"] += 2.0
    order, leaf = (1, 8) if few else (3, 16)
    call = TreeCall(kernel, bodies(kernel, 61 if few else 1500), {}, targets, order=order, leaf=leaf, theta=0.5)
    call.device = device
    found = errors(call)
    assert np.median(found) < (3e-2 if few else 1e-3)
    if kernel is kernels.placed:  # it is linear in places
        assert found.max() < 1e-12
    else:
        assert found.max() > 1e-9, "nothing was far"


def test_polynomials_are_exact_to_their_degree() -> None:
    found = {n: errors(_of(polynomial, n)).max() for n in (1, 2)}
    assert found[2] < 1e-11 < 1e-5 < found[1]


def test_errors_fall_with_the_degree() -> None:
    first, second, third = (np.median(errors(_of(kernels.adaptive, n))) for n in (1, 2, 3))
    assert first > 3 * second > 9 * third > 0


def _of(kernel: Any, degree: int) -> TreeCall:
    targets = bodies(kernel, 200, 1, target=True)
    targets["position"] += 2.0
    return TreeCall(kernel, bodies(kernel, 700), {}, targets, order=degree, leaf=8, theta=0.6)


@pytest.mark.parametrize("axes", [(2,), (0, 2), (0, 1, 2)], ids=["plane", "line", "one place"])
def test_boxes_without_extent(axes: tuple[int, ...]) -> None:
    sources = bodies(kernels.adaptive, 300)
    for axis in axes:
        sources["position"][:, axis] = 0.25
    others = bodies(kernels.adaptive, 80, 1, target=True)
    others["position"] *= 4
    call = TreeCall(kernels.adaptive, sources, {}, others, order=3, leaf=8, theta=0.4)
    found = errors(call)
    assert np.isfinite(found).all()
    assert np.quantile(found, 0.9) < 1e-3


def to_numpy(values: Any) -> Any:
    return np.asarray(values.get() if hasattr(values, "get") else values)


def grains(count: int, device: str = "cpu") -> Any:
    rng = np.random.default_rng(4)
    position, softening = rng.normal(size=(count, 3)), rng.uniform(0.01, 0.05, count)
    return Grain.array(position=position, mass=1.0 / count, softening=softening, device=device)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_a_call_says_its_degree_and_keeps_its_bits(device: str) -> None:
    g = grains(3000, device)
    far = softened.using(lw.Tree(theta=0.5))
    bound = far.compile(g, g)
    assert "order 2" in str(bound.search)
    one, two, exact = (to_numpy(f(g, g)) for f in (far, far, softened))
    assert np.array_equal(one, two)
    found = np.linalg.norm(one - exact, axis=1) / np.linalg.norm(exact, axis=1)
    assert 1e-7 < np.median(found) < 3e-3


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_a_loop_has_the_bits_of_its_parts(device: str) -> None:
    def run(*steps: int) -> Any:
        g = grains(1000, device)
        pull = softened.using(lw.Tree(theta=0.5)).bind(g, g)
        loop = lw.steps([pull, drift.bind(g, pull.results[0], dt=1e-3)])
        for n in steps:
            loop.run(n)
        return np.asarray(g.host.position)

    assert np.array_equal(run(40), run(33, 7))


def test_a_gpu_has_a_thread_for_each_record() -> None:
    fields = bodies(kernels.adaptive, 300)
    call = TreeCall(kernels.adaptive, fields, order=2, leaf=16, theta=0.6, device="cuda")
    numbers = {name: env for name, env in call.steps() if name != "walk"}
    rows = {"leaves": LEAVES, "parents": HEIGHT_COUNT}
    for name, env in numbers.items():
        program = build_program(call.reference[name], Plan(block=128).filled(NEUTRAL), "cuda")
        (grid,) = (k.grid for k in program.kernels)
        assert grid is not None
        index = {n: np.int32(v) for n, v in env.items() if isinstance(v, int)}
        assert evaluate(grid.extent, index) == 27 * env[rows[name]]
        (cubin,) = build_executable(program, "cuda", arch="sm_90").cubins
        assert cubin
