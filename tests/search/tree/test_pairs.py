"""Pairs of groups: lw.Tree(method="dual"), by its kernels and by calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.compiler.pipeline import build_program
from lanewise.language import types as t
from lanewise.launch.executable import build_executable
from lanewise.patterns.search.tree import call as tree_call
from lanewise.patterns.search.tree import pairs
from lanewise.patterns.search.tree.shape import TreeShape
from lanewise.planning.plan import NEUTRAL, Plan
from tests import far_kernels as kernels
from tests.search.tree.kernels_of_calls import Array, TreeCall
from tests.search.tree.test_tree_calls import (
    SOFTENING2,
    Body,
    Flat,
    bodies,
    errors,
    exact,
    gravity,
    in_a_plane,
    kick_drift,
)
from tests.search.tree.test_walk import NOTHING, PLACES, VALUES, all_pairs
from tests.search.tree.test_walk import bodies as fields_of
from tests.search.tree.test_walk import errors as errors_of


@lw.pairwise
def number(target: Body, source: Body) -> lw.f32:
    return 1.0


def dual(theta: float = 0.6, order: int = 2, leaf: int = 32) -> Any:
    return gravity.using(search=lw.Tree(theta=theta, order=order, leaf=leaf, method="dual"))


def typical(call: TreeCall) -> float:
    return float(np.median(errors_of(call)))


# ---------------------------------------------------------------- kernels


WITH_ITSELF = (
    kernels.newton,
    kernels.plummer,
    kernels.potential,
    kernels.spline,
    kernels.stokeslet,
    kernels.number_within,
)


@pytest.mark.parametrize("kernel", WITH_ITSELF, ids=lambda k: k.__name__)
def test_every_kernel_on_the_interpreter(kernel: Any) -> None:
    values = VALUES.get(kernel.__name__, NOTHING)
    call = TreeCall(kernel, fields_of(kernel, 61), values, order=3, leaf=4, theta=0.5, device="python", pairs=True)
    found = errors_of(call)
    assert np.median(found) < 2e-2
    if kernel is kernels.number_within:  # groups all of whose pairs are within, or none
        assert not found.any()


@pytest.mark.parametrize("places", PLACES.values(), ids=PLACES.keys())
def test_places_of_all_kinds(places: Array) -> None:
    mass = 10 ** np.random.default_rng(7).uniform(-3, 3, len(places))
    fields = {"position": places, "mass": mass, "softening": mass}
    call = TreeCall(
        kernels.plummer, fields, {"softening2": 0.01}, order=4, leaf=8, theta=0.3, pairs=True, device="python"
    )
    found, wanted = call.run()[0], all_pairs(call)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, wanted, rtol=2e-2, atol=1e-3 * np.abs(wanted).max() + 1e-9 * mass.sum())


@pytest.mark.slow
def test_errors_fall_with_the_order_and_the_angle() -> None:
    fields = fields_of(kernels.plummer, 2000)
    found = [
        typical(TreeCall(kernels.plummer, fields, VALUES["plummer"], order=p, theta=a, leaf=16, pairs=True))
        for p, a in ((1, 0.8), (2, 0.8), (2, 0.5))
    ]
    assert found[0] > 2 * found[1] > 4 * found[2] > 0


@pytest.mark.parametrize("room", [1, 5])
def test_full_lists_leave_groups_to_the_walk(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (pairs, tree_call):
        monkeypatch.setattr(module, "ROOM", room)
    fields = fields_of(kernels.plummer, 150)
    call = TreeCall(kernels.plummer, fields, VALUES["plummer"], order=2, theta=0.5, leaf=8, pairs=True, device="python")
    assert np.quantile(errors_of(call), 0.99) < 5e-2
    lengths = np.asarray(call.arrays[pairs.LENGTHS].data).view(np.int32)
    assert lengths.max() == room


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_no_bit_depends_on_the_length_of_a_queue(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    b, found = bodies(1500, device=device), list[Array]()
    for queue in (1, 3, 32, 1000):
        for name in ("QUEUE", "HOST_QUEUE"):
            monkeypatch.setattr(pairs, name, queue)
        fresh = lw.Pairwise(gravity.python)
        far = fresh.using(search=lw.Tree(theta=0.7, order=3, leaf=16, method="dual"))
        found.append(_host(far(b, b, SOFTENING2)))
    assert all(np.array_equal(found[0], f) for f in found)


@pytest.mark.parametrize("order", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_code_for_a_gpu(order: int) -> None:
    fields = fields_of(kernels.plummer32, 64)
    call = TreeCall(kernels.plummer32, fields, VALUES["plummer32"], order=order, device="cuda", pairs=True)
    for build in (pairs.build_group_pairs, pairs.build_slices):
        kernel = build(call.operators, call.arguments, call.index)
        program = build_program(kernel, Plan(block=128).filled(NEUTRAL), "cuda")
        (cubin,) = build_executable(program, "cuda", arch="sm_90").cubins
        assert cubin.resources.spill_stores == cubin.resources.spill_loads == 0


# ---------------------------------------------------------------- threads that share a node


@given(st.integers(1, 10**7), st.sampled_from([1, 16, 32]), st.sampled_from([0, 1, 64, 2**15]))
def test_threads_find_room_in_the_rows_of_leaves(count: int, leaf: int, threads: int) -> None:
    """One row each, and of its lists the same part."""
    shape = TreeShape(count, leaf)
    leaves = -(-count // leaf)
    most = [0] * (shape.top + 1)
    level = {leaves: 1}
    while level:  # nodes by how many leaves they have: of a level two numbers at most
        below: dict[int, int] = {}
        for m, n in level.items():
            most[(m - 1).bit_length()] += n
            for half in ((m + 1) // 2, m // 2) if m > 1 else ():
                below[half] = below.get(half, 0) + n
        level = below
    for height, nodes in enumerate(most):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pairs, "HOST_THREADS", threads)
            slices = pairs.slices_of(height, shape.top, t.I64)
        assert pairs.ROOM % slices == 0
        assert slices == 1 or (nodes * slices <= leaves and nodes * slices <= threads)


@pytest.mark.parametrize(("leaf", "threads"), [(16, 64), (32, 2**15)])
def test_threads_that_share_nodes_meet_every_source_once(
    leaf: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Errors stay as they are, and so do the bits of every run, and those of parts of a mesh."""
    b, on_host = bodies(3000), bodies(3000)
    wanted = exact(on_host, on_host, lambda i: i)
    search = lw.Tree(theta=0.6, order=2, leaf=leaf, method="dual")
    alone = errors(lw.Pairwise(gravity.python).using(search=search)(b, b, SOFTENING2), wanted)
    monkeypatch.setattr(pairs, "HOST_THREADS", threads)
    counted = lw.Pairwise(number.python).using(search=lw.Tree(theta=0.8, order=0, leaf=leaf, method="dual"))
    assert (counted(b, b) == 3000).all()
    far = lw.Pairwise(gravity.python).using(search=search)
    found = far(b, b, SOFTENING2)
    together = errors(found, wanted)
    assert not np.array_equal(alone, together)
    assert np.quantile(together, 0.99) < 1.2 * np.quantile(alone, 0.99)
    assert np.array_equal(found, far(b, b, SOFTENING2))


# ---------------------------------------------------------------- calls

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("leaf", [16, 32, pytest.param(40, marks=pytest.mark.slow)])
def test_every_source_is_met_once(device: str, leaf: int) -> None:
    """A function that counts is exact for every order, so that a source met twice, or never, shows."""
    b = bodies(2500, device=device)
    search = lw.Tree(theta=0.8, order=0, leaf=leaf, method="dual")
    found = number.using(search=search)(b, b)
    assert (_host(found) == 2500).all()


def _host(values: Any) -> Array:
    return values.get() if hasattr(values, "get") else np.asarray(values)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("leaf", "theta"), [pytest.param(16, 0.5, marks=pytest.mark.slow), (32, 0.6)])
def test_errors_are_small_and_bits_the_same(device: str, leaf: int, theta: float) -> None:
    """Of smaller leaves fewer sources are met one by one, so they take a smaller angle."""
    b, on_host = bodies(3000, device=device), bodies(3000)
    found = [_host(dual(theta, leaf=leaf)(b, b, SOFTENING2)) for _ in range(2)]
    assert np.array_equal(found[0], found[1])
    away = errors(found[0], exact(on_host, on_host, lambda i: i))
    assert np.median(away) < 5e-3
    assert np.quantile(away, 0.99) < 5e-2


@pytest.mark.parametrize("count", [0, 1, 33, 65])
def test_few_bodies(count: int) -> None:
    b = bodies(count)
    found = np.asarray(dual()(b, b, SOFTENING2))
    assert found.shape == (count, 3)
    if count:
        assert errors(found, exact(b, b, lambda i: i)).max() < 1e-2


def test_two_axes_in_float64() -> None:
    rng = np.random.default_rng(0)
    flat: Any = Flat
    b = flat.array(position=rng.normal(size=(1500, 2)), mass=rng.uniform(0.5, 1.5, 1500))
    found = in_a_plane.using(search=lw.Tree(theta=0.5, order=3, method="dual"))(b, b, SOFTENING2)
    assert np.quantile(errors(found, exact(b, b, lambda i: i)), 0.99) < 1e-2


def test_no_bit_depends_on_where_a_run_is_cut() -> None:
    def positions(pieces: tuple[int, ...]) -> Array:
        b = bodies(300)
        force = dual(0.7, 2).bind(b, b, SOFTENING2)
        loop = lw.steps([force, kick_drift.bind(b, force.results[0], 1e-3)])
        for piece in pieces:
            loop.run(piece)
        return np.asarray(b.position)

    assert np.array_equal(positions((40,)), positions((1, 30, 9)))


def test_reports_name_every_task() -> None:
    b = bodies(300)
    compiled = dual().compile(b, b, SOFTENING2)
    assert "pairs of groups" in compiled.search
    text = str(compiled.explain())
    assert "gravity_pairs_of_groups" in text


# ---------------------------------------------------------------- refusals


def refused(error: type[Exception], call: Any) -> str:
    with pytest.raises(error) as raised:
        call()
    return str(raised.value)


def test_targets_that_are_others() -> None:
    text = refused(lw.ArgumentError, lambda: dual()(bodies(5, 1), bodies(7), SOFTENING2))
    assert text == (
        "Tree(method='dual'): groups of targets are those of the sources, and these targets are others; pass the same "
        "array twice, or choose method='walk'"
    )


def test_functions_that_are_not_radial() -> None:
    star: Any = kernels.Star
    stars = star.array(position=np.eye(3), mass=1.0, softening=0.1, device="cpu")
    text = refused(lw.CompileError, lambda: kernels.adaptive.using(lw.Tree(method="dual"))(stars, stars))
    assert "pairs of groups need expansions around targets, and this function has none: it is not radial" in text
    assert "choose method='walk'" in text
