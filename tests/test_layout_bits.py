"""What a layout changes of the bits of results: nothing on a GPU, and on a CPU nothing but sums over all pairs.

Kernels choose the layout of arrays on GPUs, by which kernels a program has and how often it called them: so the bits
must not depend on it there. Without a GPU that is read from the kernels: the layout decides neither about plans nor
about arithmetic.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.compiler.pipeline import build_program
from lanewise.explanation.calls import call_subject
from lanewise.ir import nodes as ir
from lanewise.ir.functions import functions
from lanewise.ir.traverse import expressions, statements, subexpressions
from lanewise.models.devices import table_model
from lanewise.runtime.memory import array_module, to_host
from tests.fuzz.texts import executed
from tests.zoo.generate import SMALL
from tests.zoo.record_truth import call_of, records_of
from tests.zoo.records import RecordCase, generate

LAYOUTS = (lw.AoS(), lw.AoAS(16), lw.SoAoAS(), lw.AoSoA(32), "auto")
LOWERED = ("layout lowering", "load selection")
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]
QUICK = (0, 2, 4, 6)  # one of each family, and sums over pairs
SEEDS = [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in range(120)]


# ------------------------------------------------------------ what is read from kernels


def stages(kernel: Any, given: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, list[Any]]:
    """The default plan for a GPU, and the kernel at every stage: before places in memory are known the whole kernel
    but for the layouts of its arrays, after that what it computes.
    """
    subject, _, _ = call_subject(kernel, given, named, "cuda", table_model("sm_90"))
    seen: list[Any] = []

    def observe(stage: str, k: ir.Kernel) -> None:
        seen.append((stage, computed(k) if stage in LOWERED else whole(k)))

    build_program(subject.reference, subject.plan, "cuda", observe)
    assert any(stage in LOWERED for stage, _ in seen)
    return subject.plan, seen


def whole(k: ir.Kernel) -> str:
    arrays = [(a.name, a.leaves, a.written, a.space, a.length) for a in k.arrays]
    return f"{k.body} {arrays} {k.counts} {k.uniforms} {k.grid} {k.scratch} {k.reductions}"


def computed(k: ir.Kernel) -> Counter[str]:
    """Operations on floats, wherever they stand: places of loads are integers."""
    found = Counter[str]()
    for body in [k.body, *(f.body for f in functions(k.body))]:
        for s in statements(body):
            for e in expressions(s):
                for x in subexpressions(e):
                    if not isinstance(x, ir.Local | ir.Literal) and x.type.is_float:
                        found[str(x)] += 1
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_a_layout_decides_nothing_but_loads_and_stores_on_a_gpu(seed: int) -> None:
    case = generate(seed)
    tables = case.given_arrays()
    with executed(case.text, f"layout_bits_{seed}.py") as names:

        def made(layout: Any) -> Any:
            given = (*records_of(case, names.Item, SMALL, layout=layout), *case.uniforms.values())
            return stages(call_of(case, names.kernel, SMALL), given, tables)

        wanted = made(lw.SoA())
        assert sum(wanted[1][-1][1].values()) > 0
        for layout in LAYOUTS[:-1]:
            assert made(layout) == wanted, layout


# ------------------------------------------------------------ what calls give


def call(case: RecordCase, names: Any, layout: Any, device: str) -> list[bytes]:
    """The bits of the results of a call, of the fields of its elements, and of its tables after it."""
    records = records_of(case, names.Item, SMALL, layout=layout, device=device)
    tables: dict[str, Any] = case.given_arrays()
    if device != "cpu":
        cupy: Any = pytest.importorskip("cupy")
        tables = {n: cupy.asarray(a) for n, a in tables.items()}
    out = call_of(case, names.kernel, SMALL)(*records, *case.uniforms.values(), **tables)
    found = [*(out if isinstance(out, tuple) else () if out is None else (out,)), *tables.values()]
    return [to_host(f).tobytes() for f in found] + [f.tobytes() for f in records[0].numpy().values()]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("seed", SEEDS)
def test_calls_have_the_same_bits_in_every_layout(seed: int, device: str) -> None:
    """Default plans. Of sums over all pairs that is promised on GPUs alone, and of arrays without a layout
    everywhere.
    """
    case = generate(seed)
    promised = device != "cpu" or case.family != "pairs"
    with executed(case.text, f"layout_bits_{seed}.py") as names:
        wanted = call(case, names, lw.SoA(), device)
        for layout in (*(LAYOUTS if promised else ()), None):
            assert call(case, names, layout, device) == wanted, layout


@lw.record
class Grain:
    position: lw.vec3
    velocity: lw.vec3
    mass: lw.f32
    cell: lw.i32
    wide: lw.f64


@lw.pairwise
def heaviest(target: Grain, source: Grain) -> lw.ArgMin[lw.f32]:
    d = source.position - target.position
    return lw.dot(d, d) * source.mass


@lw.pairwise
def pull(target: Grain, source: Grain, softening2: lw.f32) -> lw.vec3:
    d = source.position - target.position
    return source.mass * lw.rsqrt(lw.dot(d, d) + softening2) ** 3 * d


@lw.elementwise
def energy(grain: Grain) -> lw.f32:
    return 0.5 * grain.mass * lw.dot(grain.velocity, grain.velocity)


@lw.elementwise
def kick(grain: Grain, pulled: lw.vec3, dt: lw.f32):
    grain.velocity += pulled * dt
    grain.wide += lw.f64(grain.mass) * lw.f64(dt)
    grain.position += grain.velocity * dt


@lw.elementwise
def deposit(grain: Grain, cells: lw.Array1[lw.f32]):
    lw.scatter_add(cells, grain.cell, grain.mass)


@lw.segmentwise
def kinetic(grain: Grain) -> lw.f32:
    return 0.5 * grain.mass * lw.dot(grain.velocity, grain.velocity)


def grains(layout: Any, device: str, n: int = 700) -> Any:
    r = np.random.default_rng(5)
    return Grain.array(
        position=r.random((n, 3)), velocity=r.standard_normal((n, 3)), mass=r.random(n), cell=r.integers(0, 9, n),
        wide=r.random(n), layout=layout, device=device,
    )  # fmt: skip


def deposited(a: Any) -> Any:
    cells = array_module(a.device).zeros(9, np.float32)
    deposit(a, cells)
    return cells


def pulled(search: Any = None, **how: Any) -> Any:
    kernel = pull if search is None else pull.using(search=search)
    return lambda a: kernel(a, a, 1e-3, **how)


PATTERNS: dict[str, Any] = {
    "elements": lambda a: kick(a, (0.5, 0.25, 1.0), 0.125),
    "results": energy,
    "sum of elements": energy.sum,
    "largest element": energy.max,
    "derivatives": energy.gradient("velocity"),
    "scatters": deposited,
    "lists": lambda a: kinetic(lw.ragged(a, counts=[3, 0, len(a) - 3])),
    "smallest pair": lambda a: heaviest(a, a),
    "neighbours": pulled(lw.Neighbors(radius=0.2)),
    "grid": pulled(lw.StaticGrid(radius=0.2)),
    "curve": pulled(lw.DynamicGrid(radius=0.2)),
    "nearest": pulled(lw.Nearest(k=5)),
    "tree": pulled(lw.Tree(theta=0.6)),
}
SUMS: dict[str, Any] = {
    "sums over pairs": pulled(),
    "in float64": pulled(plan=lw.Plan(accumulate="f64")),
    "derivatives of pairs": lambda a: pull.gradient("target.position")(a, a, 1e-3),
    "with cotangents": lambda a: pull.gradient("position")(a, a, 1e-3, cotangent=a.velocity),
}
"""Over all pairs: promised on GPUs, and where no layout was given."""


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("pattern", [*PATTERNS, *SUMS])
def test_patterns_have_the_same_bits_in_every_layout(pattern: str, device: str) -> None:
    def bits(layout: Any) -> list[bytes]:
        array = grains(layout, device)
        out = (PATTERNS | SUMS)[pattern](array)
        found = [] if out is None else [to_host(out).tobytes()] if hasattr(out, "shape") else [repr(out).encode()]
        return found + [f.tobytes() for f in array.numpy().values()]

    wanted = bits(lw.SoA())
    for layout in (*(LAYOUTS if device != "cpu" or pattern in PATTERNS else ()), None):
        for _ in range(2):
            assert bits(layout) == wanted, layout
