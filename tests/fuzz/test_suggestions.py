"""Every plan that is suggested for a kernel and called legal builds: a default plan is never refused."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from lanewise.compiler.pipeline import build_program
from lanewise.compiler.work import describe_work
from lanewise.language.target import target_of
from lanewise.planning.plan import NEUTRAL, Plan
from lanewise.support.errors import CompileError
from tests.fuzz.patterns import PATTERNS
from tests.fuzz.patterns.written import whole
from tests.fuzz.texts import executed
from tests.fuzz.trial import Subjects

BY_NAME = {p.name: p for p in PATTERNS}
# A thread may leave early, go over a window where it is not at an edge, and read columns, whose tiles are then without
# a loop.
KERNEL = """
@lw.threadwise
def kernel(z: lw.index, y: lw.index, x: lw.index, t: lw.Array1[lw.f32], a: lw.Array2[lw.f32],
           c: lw.Array3[lw.f32], n: lw.i32):
{leaves}
    s = lw.f32(0.5)
{loop}
    c[z, y, x] = s + {columns}

of_one_call = True

def arguments(device):
    m = 8
    return [], dict(t=np.ones(m, "f4"), a=np.ones((m, m), "f4"), c=np.ones((m, m, m), "f4"), n=np.int32(m), grid=(m, m, m))
"""
LEAVES = ("", "    if a[y, z] > 0:\n        return", "    if y == 0:\n        c[z, y, x] = 1\n        return")
LOOP = "for k in range(3):\n"
LOOPS = (
    "",
    f"    {LOOP}        s += t[k]",
    f"    if x >= 1 and x < n - 1:\n        {LOOP}            s += t[x + k - 1]",
)
COLUMNS = ("a[x, z]", "a[x, z] - a[(y - 2 + z) % n, (x - 2) % n]", "a[z, x] * a[x, y]")
# Every two of them meet.
WRITTEN = [
    KERNEL.format(leaves=a, loop=b, columns=COLUMNS[(i + j) % 3])
    for i, a in enumerate(LEAVES)
    for j, b in enumerate(LOOPS)
]


def suggestions(text: str, file: str) -> Iterator[tuple[Any, Plan, str]]:
    """The legal ones of a program, on either device."""
    with executed(whole(text), file) as names:
        try:
            subject = Subjects.of(names)
        except CompileError:  # a literal that is refused
            return
        if subject is None:
            return
        for kind in ("cuda", "cpu"):
            given = describe_work(subject.reference, 1_000_000, target_of(kind)).suggested
            if given is not None:
                yield from ((subject.reference, p, kind) for p in given.plans if given.is_legal(p))


@pytest.mark.slow
def test_suggestions_of_kernels_with_conditions_build() -> None:
    count = 0
    for number, text in enumerate(WRITTEN):
        for reference, plan, kind in suggestions(text, f"suggested_{number}.py"):
            build_program(reference, plan.filled(NEUTRAL), kind)
            count += 1
    assert count > len(WRITTEN)


PRODUCT = """
@lw.function
def tame(x):
    return lw.floor(lw.clamp(x, -4, 4) * 4) * 0.25

@lw.threadwise
def kernel(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    s = lw.f32(0)
    for k in range(a.shape[1]):
        s += {term}
    c[y, x] = s

of_one_call = True

def arguments(device):
    m = 8
    return [], dict(a=np.ones((m, m), "f4"), b=np.ones((m, m), "f4"), c=np.ones((m, m), "f4"), grid=(m, m))
"""


@pytest.mark.parametrize("depth", [1, *(pytest.param(d, marks=pytest.mark.slow) for d in (8, 12, 16, 24, 32))])
def test_suggestions_of_long_functions_build(depth: int) -> None:
    """What a plan writes out grows with the function, by more than the points of a thread where loops over tiles are
    written out.
    """
    term = "a[y, k] * b[k, x]"
    for _ in range(depth):
        term = f"tame({term})"
    for reference, plan, kind in suggestions(PRODUCT.format(term=term), f"suggested_long_{depth}.py"):
        build_program(reference, plan.filled(NEUTRAL), kind, between=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["threadwise", "stencils"])
def test_suggestions_of_random_kernels_build(name: str) -> None:
    for number in range(300):
        text = BY_NAME[name].write(Random(f"{name} suggested {number}"))
        for reference, plan, kind in suggestions(text, f"suggested_{name}_{number}.py"):
            build_program(reference, plan.filled(NEUTRAL), kind)
