"""The default plans that docs/passes.md shows are those of the rules, and its table of defaults knows every field that
they set.
"""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import lanewise as lw
from docs.generator import default_shapes
from lanewise.explanation.offline import explained
from lanewise.launch.support import machine_of
from lanewise.patterns.sitewise.pattern import BOX_PLANS
from lanewise.patterns.threadwise import host_plans
from lanewise.patterns.threadwise import plans as array_plans
from lanewise.planning.plan import NEUTRAL

ROOT = Path(__file__).parent.parent


class Body(lw.Record):
    position: lw.vec3
    mass: lw.f32


@lw.pairwise
def gravity(target: Body, source: Body, softening2: lw.f32) -> lw.vec3:
    d = source.position - target.position
    return source.mass * lw.rsqrt(lw.dot(d, d) + softening2) ** 3 * d


@lw.pairwise(search=lw.StaticGrid(radius=0.05, world=lw.Bounded((0, 0, 0), (1, 1, 1))))
def density(target: Body, source: Body) -> lw.f32:
    return source.mass


@lw.elementwise
def drift(body: Body, velocity: lw.vec3, dt: lw.f32) -> None:
    body.position += dt * velocity


@lw.segmentwise
def total(body: Body) -> lw.f32:
    return body.mass


@lw.threadwise
def product(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32], c: lw.Array2[lw.f32]) -> None:
    found = lw.f32(0)
    for j in range(a.shape[1]):
        found += a[y, j] * b[j, x]
    c[y, x] = found


@lw.stencil(lw.D2Q5)
def heat(t: lw.Field[lw.f32], rate: lw.f32) -> lw.f32:
    return t[0] + rate * (t[1] + t[2] + t[3] + t[4] - 4 * t[0])


CALLS: dict[str, tuple[Any, int, dict[str, Any]]] = {
    "gravity, 1,000 bodies": (gravity, 1_000, {}),
    "gravity, 16,384 bodies": (gravity, 16_384, {}),
    "gravity, 1,000,000 bodies": (gravity, 1_000_000, {}),
    "sums within a radius, 100,000 bodies": (density, 100_000, {}),
    "an update of 1,000,000 records": (drift, 1_000_000, {}),
    "sums over 10,000 lists of 100": (total, 1_000_000, {"shapes": {"body": (10_000, 100)}}),
    "the collision of `examples/cavity.py`, 1024 x 1024 sites": ("flow", 1 << 20, {"shapes": {"sites": (1024, 1024)}}),
    "a heat stencil, 1024 x 1024 sites": (heat, 1 << 20, {"shapes": {"sites": (1024, 1024)}}),
    "a naive matrix product, 2048 x 2048": (product, 1 << 22, {}),
}  # fmt: skip


def tables() -> tuple[list[list[str]], list[list[str]]]:
    """Cells of the rows of both: defaults by field, and plans of some calls."""
    text = (ROOT / "docs/passes.md").read_text(encoding="utf-8")
    section = text.partition("\n## Defaults\n")[2].partition("\n## ")[0]
    found = [
        [c.strip() for c in row.strip("|").split(" | ")] for row in re.findall(r"^\| [^-].*\|$", section, re.MULTILINE)
    ]
    first, second = (n for n, row in enumerate(found) if row[0] in ("field", "call"))
    return found[first + 1 : second], found[second + 1 :]


def test_every_field_has_a_default() -> None:
    named = [name for row in tables()[0] for name in re.findall(r"`(\w+)`", row[0])]
    assert sorted(named) == sorted(f.name for f in fields(lw.Plan))


def numbers_of(field: str, column: int, kernels: str) -> set[int]:
    """Those that the table of defaults has for such kernels, in a part such as "stencils: 2, 4 or 8"."""
    (row,) = (r for r in tables()[0] if f"`{field}`" in r[0])
    (part,) = (p for p in row[1 + column].split(";") if f"{kernels}:" in p)
    return {int(n) for n in re.findall(r"\d+", part.partition(f"{kernels}:")[2])}


def values_of(field: str, plans: Iterable[lw.Plan]) -> set[int]:
    return {v for p in plans if (v := getattr(p, field)) is not None}


@pytest.mark.parametrize("field", ["across", "down", "rows", "layers"])
def test_defaults_of_stencils_are_those_of_the_rules(field: str) -> None:
    plans = [p for several in BOX_PLANS.values() for p in several]
    assert numbers_of(field, 0, "stencils") == values_of(field, plans)


@pytest.mark.parametrize("field", ["across", "down", "rows", "layers", "min_blocks"])
def test_defaults_of_array_kernels_are_those_of_the_rules(field: str) -> None:
    plans = [p for _, several in default_shapes.ON_A_GPU for p in several]
    assert numbers_of(field, 0, "naive array kernels") == values_of(field, plans)
    on_a_cpu = values_of(field, [p for _, several in default_shapes.ON_A_CPU for p in several])
    if on_a_cpu:
        assert numbers_of(field, 1, "naive array kernels") == on_a_cpu
    elif field != "across":
        (row,) = (r for r in tables()[0] if f"`{field}`" in r[0])
        assert row[2] == "neutral"


def test_every_family_of_plans_is_in_the_reference() -> None:
    """The tables of the rules, by their names in the code: a new one needs a row in
    docs/generator/default_shapes.py.
    """
    on_a_gpu = (*default_shapes.ON_A_GPU, *default_shapes.BY_THE_MODEL)
    for module, rows in ((array_plans, on_a_gpu), (host_plans, default_shapes.ON_A_CPU)):
        listed = {p.as_dict().__repr__() for _, several in rows for p in several}
        for name, thing in vars(module).items():
            plans = [thing] if isinstance(thing, lw.Plan) else thing if isinstance(thing, tuple) else []
            for p in plans:
                if isinstance(p, lw.Plan) and p not in (host_plans.PLAIN, NEUTRAL):
                    assert p.as_dict().__repr__() in listed, (name, p)


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
def test_the_default_plans_of_calls(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", [""])  # the example has settings
    by_field, plans = tables()
    assert [row[0] for row in plans] == list(CALLS)
    kernel, count, given = CALLS[call]
    if isinstance(kernel, str):
        kernel = runpy.run_path(str(ROOT / "examples/cavity.py"))[kernel]
    ((_, *shown),) = (row for row in plans if row[0] == call)
    for column, (device, arch) in enumerate((("cuda", "sm_90"), ("cpu", None))):
        if device == "cuda":
            pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
        elif machine_of("cpu").vector_bits != 512:
            continue  # the page has the plans of AVX-512
        plan = explained(kernel, count, device, arch=arch, **given)[1][0].subject.plan.as_dict()
        others = {n: v for n, v in plan.items() if v != getattr(NEUTRAL, n)}
        said = ", ".join(f"{n}={v!r}" for n, v in others.items()).replace("'", '"')
        assert shown[column] == (f"`{said}`" if said else "neutral")
        for name in others:
            (row,) = (r for r in by_field if f"`{name}`" in r[0])
            assert row[1 + column] != "neutral", name
