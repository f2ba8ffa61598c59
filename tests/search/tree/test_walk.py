"""Far fields by the kernels of a tree, against all pairs in float64."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.compiler.pipeline import build_program
from lanewise.ir import nodes as ir
from lanewise.ir.interpreted_memory import ArrayMemory
from lanewise.language import types as t
from lanewise.launch.executable import build_executable
from lanewise.layouts import AoS, Layout, SoAoAS
from lanewise.patterns.search.tree.call import FarFields
from lanewise.patterns.search.tree.estimates import cannot_estimate
from lanewise.patterns.search.tree.group import GROUP_SIZE, LARGEST
from lanewise.patterns.search.tree.nodes import RECORDS
from lanewise.patterns.search.tree.structure import SHARE
from lanewise.patterns.search.tree.ways import GROUP_WALK, WALK
from lanewise.planning.plan import NEUTRAL, Plan
from tests import far_kernels as kernels
from tests.derivatives.whole_arrays import called
from tests.harness import run_kernel
from tests.search.tree.kernels_of_calls import Array, TreeCall

VALUES: dict[str, dict[str, float]] = {
    "plummer": {"softening2": 1e-4},
    "plummer32": {"softening2": 1e-4},
    "yukawa": {"kappa": 1.5},
    "spline": {"h": 0.3},
    "stokeslet": {"softening2": 0.01},
    "number_within": {"radius": 1.1},
}
NOTHING: dict[str, float] = {}


def bodies(kernel: Any, count: int, seed: int = 0, *, target: bool = False) -> dict[str, Array]:
    """Random fields of a kernel's sources, or of its targets; weights of one sign."""
    rng = np.random.default_rng(seed)
    record = list(kernel.signature.parameters.values())[0 if target else 1]
    fields: dict[str, Array] = {}
    for f in record.fields:
        kind = t.scalar_of(f.type)
        shape = (count, f.type.length) if isinstance(f.type, t.Vector) else (count,)
        values = rng.normal(size=shape) if f.name == "position" else rng.uniform(0.5, 1.5, shape)
        fields[f.name] = values.astype(kind.dtype) if kind.is_float else np.ones(shape, kind.dtype)
    return fields


def leaves_of(name: str, fields: dict[str, Array], axis: int) -> dict[str, Array]:
    """Fields as parameters of a function."""
    found: dict[str, Array] = {}
    for n, x in fields.items():
        columns = x if x.ndim == 2 else x[:, None]
        names = [f"{n}.{c}" for c in "xyz"[: columns.shape[1]]] if x.ndim == 2 else [n]
        wide = columns.astype(np.float64) if x.dtype.kind == "f" else columns
        found |= {f"{name}.{m}": np.expand_dims(v, axis) for m, v in zip(names, wide.T, strict=True)}
    return found


def all_pairs(call: TreeCall) -> Array:
    """(targets, results), in float64."""
    f = lw.far_field(call.kernel).proof.function
    targets = call.fields if call.targets is None else call.targets
    count = len(targets["position"]), len(call.fields["position"])
    same = np.eye(count[0], dtype=bool) if call.targets is None else np.zeros(count, bool)
    env: dict[str, Any] = {"$same": same, **call.values}
    env |= leaves_of("target", targets, 1) | leaves_of("source", call.fields, 0)
    with np.errstate(all="ignore"):
        pairs = called(f, {p.name: env[p.name] for p in f.parameters})
    return np.stack([np.broadcast_to(x, count).sum(1) for x in pairs], -1)


def errors(call: TreeCall) -> Array:
    """Of each target, relative to its own result."""
    found = np.concatenate([r.reshape(len(r), -1) for r in call.run()], 1)
    exact = all_pairs(call)
    size = np.maximum(np.linalg.norm(exact, axis=1), 1e-300)
    return np.linalg.norm(found - exact, axis=1) / size


@pytest.mark.parametrize("kernel", kernels.RADIAL, ids=lambda k: k.__name__)
def test_every_kernel_on_the_interpreter(kernel: Any) -> None:
    values = VALUES.get(kernel.__name__, NOTHING)
    apart = None if kernel in (kernels.newton, kernels.plummer, kernels.spline) else bodies(kernel, 50, 1, target=True)
    call = TreeCall(kernel, bodies(kernel, 61), values, apart, order=3, leaf=4, theta=0.5, device="python")
    found = errors(call)
    assert np.median(found) < 1e-2
    if kernel is kernels.number_within:  # a node that all of it, or none of it, is within
        assert not found.any()
    else:
        assert found.max() > 1e-9, "nothing was far"


def test_errors_fall_with_the_order_and_the_angle() -> None:
    found = [_median(90, p, theta, "python", 4) for p, theta in ((1, 0.7), (3, 0.7), (3, 0.4))]
    assert found[0] > 3 * found[1] > 9 * found[2] > 0


@pytest.mark.slow
def test_errors_in_lanes_fall_with_the_angle() -> None:
    found = [_median(3000, 2, theta, "cpu", 32) for theta in (0.8, 0.5)]
    assert 5e-3 > found[0] > 2 * found[1] > 0


def _median(count: int, order: int, theta: float, device: str, leaf: int) -> float:
    fields = bodies(kernels.plummer, count)
    call = TreeCall(
        kernels.plummer,
        fields,
        VALUES["plummer"],
        order=order,
        theta=theta,
        device=device,
        leaf=leaf,
    )
    return float(np.median(errors(call)))


@pytest.mark.parametrize("layout", [pytest.param(AoS(), marks=pytest.mark.slow), SoAoAS()], ids=str)
def test_targets_of_their_own_and_other_layouts(layout: Layout) -> None:
    kernel = kernels.stokeslet
    call = TreeCall(
        kernel,
        bodies(kernel, 500),
        VALUES["stokeslet"],
        targets=bodies(kernel, 333, 1, target=True),
        layout=layout,
        order=3,
        theta=0.5,
    )
    assert np.quantile(errors(call), 0.99) < 5e-3


def test_an_open_angle_of_zero_is_all_pairs() -> None:
    call = TreeCall(kernels.newton, bodies(kernels.newton, 77), theta=0.0, order=1)
    assert errors(call).max() < 1e-12


# ---------------------------------------------------------------- places and weights of all kinds


def clumps(count: int, at: tuple[float, ...]) -> Array:
    """Elements that share a few places."""
    return np.array(at)[np.arange(count) % len(at)][:, None] * np.ones(3)


PLACES = {
    "one place": clumps(70, (1e-3,)),
    "the origin": clumps(70, (0.0,)),
    "few places": clumps(90, (0.0, 1.0, -3e-5)),
    "a line": np.linspace(0, 1, 80)[:, None] * np.array([1.0, 0.0, 0.0]),
    "an outlier": np.concatenate([np.random.default_rng(5).normal(size=(70, 3)), [[1e6, 0, 0]]]),
    "one": np.zeros((1, 3)),
    "a leaf and one": np.random.default_rng(6).normal(size=(9, 3)),
}


@pytest.mark.parametrize("places", PLACES.values(), ids=PLACES.keys())
def test_places_of_all_kinds(places: Array) -> None:
    """Softened, with masses over six decades; sums that are zero have nothing but rounding."""
    rng = np.random.default_rng(7)
    mass = 10 ** rng.uniform(-3, 3, len(places))
    fields = {"position": places, "mass": mass, "softening": mass}
    call = TreeCall(kernels.plummer, fields, {"softening2": 0.01}, order=4, leaf=8, theta=0.6)
    call.device = "python"
    found, exact = call.run()[0], all_pairs(call)
    assert np.isfinite(found).all()
    room = 1e-3 * np.abs(exact).max() + 1e-9 * mass.sum()
    np.testing.assert_allclose(found, exact, rtol=2e-2, atol=room)


def test_what_is_not_a_number_ends_no_walk() -> None:
    """It is in every sum, as it is over all pairs."""
    fields = bodies(kernels.plummer, 70)
    fields["position"][11, 1] = np.nan
    call = TreeCall(kernels.plummer, fields, VALUES["plummer"], order=2, leaf=8, device="python")
    assert np.isnan(call.run()[0]).any(1).all()


def test_weights_of_both_signs_that_cancel() -> None:
    fields = bodies(kernels.newton, 150, 3)
    fields["mass"] *= np.where(np.arange(150) % 2, 1, -1)
    call = TreeCall(kernels.newton, fields, order=4, theta=0.5, leaf=4, device="python")
    assert 0 < np.median(errors(call)) < 1e-3


# ---------------------------------------------------------------- estimated errors


@pytest.mark.parametrize(
    ("kernel", "wide"),
    [
        (kernels.newton, 3e-2),
        pytest.param(kernels.yukawa, 3e-2, marks=pytest.mark.slow),
        pytest.param(kernels.stokeslet, 1.0, marks=pytest.mark.slow),
    ],
)
def test_errors_follow_the_accuracy(kernel: Any, wide: float) -> None:
    values, found = VALUES.get(kernel.__name__, NOTHING), list[float]()
    targets = bodies(kernel, 40, 1, target=True)
    for accuracy in (wide, wide / 30):
        call = TreeCall(kernel, bodies(kernel, 160), values, targets, order=3, theta=0.9)
        call.leaf, call.device, call.accuracy = 4, "python", accuracy
        found.append(float(np.quantile(errors(call), 0.95)))
        assert found[-1] < accuracy
    assert found[0] > 3 * found[1]


@pytest.mark.slow
def test_errors_of_a_cluster_have_no_tail() -> None:
    """Its halo is sparse and its core dense: by angles alone one error in a hundred is larger."""
    rng = np.random.default_rng(1)
    radius = 1 / np.sqrt(rng.uniform(0.01, 1, 4000) ** (-2 / 3) - 1)
    way = rng.normal(size=(4000, 3))
    places = way * np.minimum(radius, 10)[:, None] / np.linalg.norm(way, axis=1)[:, None]
    mass = np.full(4000, 1 / 4000)
    fields = {"position": places, "mass": mass, "softening": mass}
    share = SHARE * 1e-2
    call = TreeCall(kernels.plummer, fields, VALUES["plummer"], order=2, theta=0.7, accuracy=share)
    found = errors(call)
    assert 1e-4 < np.quantile(found, 0.99) < 1e-2
    assert found.max() < 2 * 1e-2


def test_sizes_of_nodes_are_at_least_those_of_their_sources() -> None:
    kernel, order = kernels.plummer, 2
    call = TreeCall(kernel, bodies(kernel, 100), VALUES["plummer"], order=order, leaf=4)
    call.device, call.accuracy = "python", 1e-3
    call.run()
    records = call.arrays[RECORDS]
    memory = ArrayMemory(records.data, records.arrangement, records.count)
    shape, of = call.shapes[1], call.orders[1]
    places, mass = call.fields["position"][of], call.fields["mass"][of]
    for n, (first, leaves) in enumerate(shape.table):
        inside = slice(first * 4, min((first + leaves) * 4, 100))
        centre = [memory.read(f"centre.{c}", n) for c in "xyz"]
        away = np.linalg.norm(places[inside] - centre, axis=1)
        exact = float(np.log2((mass[inside] * away ** (order + 1)).sum()))
        assert memory.read("radius", n) >= away.max()
        powers = memory.read("size", n) + 2 * np.log2(memory.read("spread", n))  # as SIZES are, over its square
        assert exact - 1e-9 <= powers <= exact + (1e-9 if leaves == 1 else 6)


def test_what_is_not_estimated() -> None:
    operators = TreeCall(kernels.plummer, bodies(kernels.plummer, 2)).operators
    assert cannot_estimate(operators, 1) is None
    assert "several results" in str(cannot_estimate(operators, 2))
    operators = TreeCall(kernels.moving, bodies(kernels.moving, 2)).operators
    assert "different values of the target" in str(cannot_estimate(operators, 1))


# ---------------------------------------------------------------- code


def spilled(kernel: ir.Kernel) -> int:
    """Bytes that a kernel puts aside on a GPU, for want of registers."""
    program = build_program(kernel, Plan(block=128).filled(NEUTRAL), "cuda")
    (cubin,) = build_executable(program, "cuda", arch="sm_90").cubins
    return cubin.resources.spill_stores + cubin.resources.spill_loads


@pytest.mark.parametrize("order", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_code_for_a_gpu_keeps_all_in_registers(order: int) -> None:
    fields = bodies(kernels.plummer32, 64)
    call = TreeCall(kernels.plummer32, fields, VALUES["plummer32"], order=order, device="cuda", group=LARGEST)
    for kernel in call.reference.values():
        assert spilled(kernel) == 0, kernel.name


def fields_of_a_call(kernel: Any, order: int, **search: Any) -> FarFields:
    axes = len([x for x in list(kernel.signature.parameters.values())[1].leaves if x.field == "position"])
    return FarFields(kernel.signature, kernel.lowered, lw.Tree(theta=0.7, order=order, **search), axes)


def test_threads_have_two_targets_where_they_have_the_registers() -> None:
    wide = {(kernels.plummer32, 5, t.F32), (kernels.plummer, 4, t.F64), (kernels.stokeslet, 2, t.F64)}
    narrow = {(kernels.plummer32, 6, t.F32), (kernels.stokeslet, 4, t.F64), (kernels.dipole, 4, t.F64)}
    for some, wanted in ((wide, LARGEST), (narrow, GROUP_SIZE)):
        for kernel, order, precision in some:
            assert fields_of_a_call(kernel, order).group(t.I32, precision) == wanted, (kernel.__name__, order)
    assert fields_of_a_call(kernels.plummer32, 2).group(t.I64, t.F32) == GROUP_SIZE  # a CPU
    assert fields_of_a_call(kernels.plummer32, 2, method="dual").group(t.I32, t.F32) == GROUP_SIZE


@pytest.mark.slow
@pytest.mark.parametrize("order", [1, 2, 4, 5])
@pytest.mark.parametrize("kernel", [*kernels.RADIAL, kernels.plummer32], ids=lambda k: k.__name__)
def test_two_targets_of_a_thread_stay_in_registers(kernel: Any, order: int) -> None:
    """Compilers put a few words aside for the sake of more warps, also with one target."""
    values = VALUES.get(kernel.__name__, NOTHING)
    call = TreeCall(kernel, bodies(kernel, 64), values, order=order, device="cuda")
    precision = call.arguments.precision
    call = replace(call, group=fields_of_a_call(kernel, order).group(call.index, precision))
    if call.group == LARGEST:
        assert spilled(call.reference["walk"]) <= 16 * t.F32.size


@pytest.mark.parametrize("group", [GROUP_SIZE, LARGEST])
@pytest.mark.parametrize("accuracy", [None, 3e-2])
def test_groups_are_warps_of_a_gpu(accuracy: float | None, group: int) -> None:
    """The kernels as a GPU has them, interpreted: the same results, a group's way at a time. Threads
    of the last group have two targets, one or none.
    """
    results = list[Array]()
    for device in ("python", "cuda"):
        call = TreeCall(kernels.newton, bodies(kernels.newton, 105), order=1, leaf=4, theta=0.8)
        call.device, call.accuracy, call.group = device, accuracy, group
        for name, env in call.steps() if device == "cuda" else ():
            plan = Plan(block=64).filled(NEUTRAL)
            for kernel in build_program(call.reference[name], plan, "cuda").kernels:
                run_kernel(kernel, dict(call.arrays), env)
        results.append(call.results[0] if device == "cuda" else call.run()[0])
    np.testing.assert_allclose(results[0], results[1], rtol=1e-12)


@lw.pairwise
def by_gamma(target: kernels.Wire, source: kernels.Wire) -> lw.f64:
    """The gamma function takes one number after the other."""
    d = source.position - target.position
    return lw.gamma(1 + target.charge**2) * source.charge * lw.log(lw.dot(d, d)) * 0.5


def test_what_has_no_simd_instructions_walks_target_by_target() -> None:
    """The kernel of a CPU is over groups in lanes where it can be, and over targets else."""
    for kernel, pattern in ((kernels.plummer, GROUP_WALK), (by_gamma, WALK)):
        values = VALUES.get(kernel.__name__, NOTHING)
        call = TreeCall(kernel, bodies(kernel, 40), values)
        assert call.reference["walk"].pattern is pattern
    call = TreeCall(
        by_gamma,
        bodies(by_gamma, 400),
        targets=bodies(by_gamma, 70, 1, target=True),
        order=3,
        theta=0.5,
    )
    assert np.median(errors(call)) < 1e-3
