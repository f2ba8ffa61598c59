"""A small kernel whose sums are exact in any order: every way of shaping it gives the same bits. And one to print."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from itertools import groupby

import numpy as np
from hypothesis import strategies as st

import lanewise as lw
from lanewise.ir import nodes as ir
from lanewise.ir.printer import print_kernel
from lanewise.ir.verify import verify_kernel
from lanewise.layouts import Layout
from lanewise.passes import constant_folding, dead_code
from lanewise.support.errors import PlanError
from tests.corpus import LAYOUTS, Case, Fields
from tests.harness import Array, Input, reference_kernel, run_kernels


@lw.record
class Bead:
    place: lw.vec2
    level: lw.i32
    weight: lw.f64


@lw.pairwise
def probe(target: Bead, source: Bead, scale: lw.f32) -> tuple[lw.vec2, lw.i32, lw.f64]:
    if lw.same(target, source):
        return lw.vec2(0.0), 0, 0.0
    d = source.place - target.place
    return d * scale, source.level - target.level * 2, source.weight


@lw.pairwise
def pull(target: Bead, source: Bead) -> lw.f32:
    return lw.f32(source.level) * (source.place.x - target.place.x)


def _fill(rng: np.random.Generator, n: int) -> Fields:
    return {
        "place": rng.integers(-8, 9, (n, 2)).astype("f4"),
        "level": rng.integers(-5, 6, n).astype("i4"),
        "weight": rng.integers(-9, 10, n).astype("f8"),
    }


PROBE = Case("probe", probe, (Bead, Bead), _fill, lambda *_: (), {"scale": 2.0})
PULL = Case("pull", pull, (Bead, Bead), _fill, lambda *_: ())

counts = st.integers(1, 40)
inputs = st.builds(lambda n, m, seed: Input(PROBE, n, m, seed), counts, st.none() | counts, st.integers(0, 99))
small_inputs = st.builds(
    lambda n, m, seed: Input(PROBE, n, m, seed), st.integers(1, 24), st.none() | counts, st.integers(0, 99)
)
layouts = st.sampled_from(sorted(LAYOUTS)).map(LAYOUTS.__getitem__)


def simple(case: Case, *, same: bool = True, layout: Layout | None = None, device_kind: str = "cuda") -> ir.Kernel:
    """The reference kernel after the passes that look at functions."""
    reference = reference_kernel(case, layout or lw.SoAoAS(), device_kind, same=same)
    return dead_code.apply(constant_folding.apply(reference))


def check(given: Input, before: ir.Kernel, after: tuple[ir.Kernel, ...], layout: Layout | None = None) -> None:
    """The kernels verify and do what the reference kernel does, to the bit."""
    for k in after:
        verify_kernel(k)
    wanted = run_kernels((before,), given, layout or lw.SoAoAS())
    found = run_kernels(after, given, layout or lw.SoAoAS())
    assert_equal(found, wanted)


def assert_equal(found: tuple[Array, ...], wanted: tuple[Array, ...]) -> None:
    for f, w in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(f, w)


def before_and_after(before: ir.Kernel, *after: ir.Kernel, functions: bool = False) -> str:
    """The text for a golden file."""
    texts = [print_kernel(k, with_functions=functions) for k in after]
    return f"before\n------\n{print_kernel(before, with_functions=functions)}\nafter\n-----\n" + "\n".join(texts)


def changes(before: ir.Kernel, *after: ir.Kernel) -> str:
    """The text for a golden file of a long kernel whose text before the pass is one of its own: what each kernel after it has anew.

    `+` is a line that the pass wrote, `-` one that it took away; of many that it took away, or kept, their numbers in the kernel
    before say which, and by how much they are indented more or less. So the whole kernel after the pass is determined.
    """
    start = print_kernel(before, with_functions=False).splitlines()
    return "\n\n".join(_changes(start, print_kernel(k, with_functions=False).splitlines()) for k in after)


def _changes(before: list[str], after: list[str]) -> str:
    lines = [f"kernel {after[0].split()[1]}", "------"]
    bare_before, bare_after = ([x.strip() for x in text] for text in (before, after))
    for what, i, j, k, m in difflib.SequenceMatcher(None, bare_before, bare_after, autojunk=False).get_opcodes():
        if what == "equal":
            lines += _kept(before, after, i, k, j - i)
            continue
        lines += [f"- {x}" for x in before[i:j]] if j - i <= 2 else [f"- lines {i + 1} to {j}"]
        lines += [f"+ {x}" for x in after[k:m]]
    return "\n".join(lines)


def _kept(before: list[str], after: list[str], i: int, k: int, count: int) -> Iterator[str]:
    """`count` lines from the i-th before, which is the k-th after, in runs that were moved alike."""
    moved = [_indentation(after[k + n]) - _indentation(before[i + n]) for n in range(count)]
    for shift, run in groupby(range(count), key=moved.__getitem__):
        numbers = list(run)
        first, last = i + numbers[0] + 1, i + numbers[-1] + 1
        yield (f"  line {first}" if first == last else f"  lines {first} to {last}") + (
            f", indented by {shift:+}" if shift else ""
        )


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def refusal(apply: Callable[[], object]) -> str:
    """The text of the `PlanError` that a call must raise."""
    try:
        apply()
    except PlanError as error:
        return str(error)
    raise AssertionError("nothing was refused")
