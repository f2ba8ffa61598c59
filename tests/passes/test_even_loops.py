"""Loops that end where a point says, in tiles of the rounds of a block: the same bits, and nothing read beyond an
array.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.compiler.pipeline import build_program, simplified
from lanewise.language.target import CUDA
from lanewise.passes import even_loops, normal_form
from lanewise.planning.plan import NEUTRAL, Plan
from tests.fuzz.texts import executed
from tests.patterns.reductions import reference, run

Array = np.ndarray[Any, Any]
HEAD = "@lw.threadwise\ndef kernel({at}, a: lw.Array{d}[lw.f32], b: lw.Array{d}[lw.f32], r: lw.Array{d}[lw.f32]):\n"
TEXT = """    s = {first}
    for k in range({start}, {end}):
        {update}
    r[{at}] = s
"""
UPDATES = {
    "product": ("0.0", "s += {a} * {b}"),
    "differences": ("0.5", "s += abs({a} - {b})"),
    "smallest": ("1e30", "s = lw.min(s, {a} + {b})"),
    "branch": ("-1e30", "if {a} * {b} > s:\n            s = {a} * {b}"),
    "last": ("0.0", "s = {a} + {b}"),
    "temporary": ("0.0", "u = {a} - {b}\n        s += u * u"),
}
PLANS = (
    Plan(block=32, across=8, rows=2, targets=2, tile=4, unroll=0),
    Plan(block=32, across=8, rows=4, targets=1, tile=8, unroll=0, prefetch="registers"),
    Plan(block=32, across=8, rows=1, targets=4, tile=4, unroll=0, prefetch="async"),
)
EXTRA = (-3, 0, 1, 5)


def text(update: str, extra: int, start: int, places: tuple[str, str], rank: int = 2) -> str:
    indices = "zyx"[-rank:]
    a, b = (f"{'z, ' if rank == 3 else ''}{p}" for p in places)
    first, change = UPDATES[update]
    named = {"a": f"a[{a}]", "b": f"b[{b}]"}
    head = HEAD.format(at=", ".join(f"{i}: lw.index" for i in indices), d=rank)
    return head + TEXT.format(
        first=first, start=start, end=f"y + {extra}", update=change.format(**named), at=", ".join(indices)
    )


def arrays_of(places: tuple[str, str], shape: tuple[int, ...], rounds: int) -> list[Array]:
    """As small as they may be."""
    sizes = {"y": shape[-2], "x": shape[-1], "k": rounds}
    rng = np.random.default_rng(rounds)
    made = [rng.normal(size=(*shape[:-2], *(sizes[i] for i in p.split(", ")))).astype(np.float32) for p in places]
    return [*made, np.zeros(shape, np.float32)]


def check(source: str, places: tuple[str, str], shape: tuple[int, ...], rounds: int) -> None:
    with executed(source, "uneven.py") as names:
        arrays = arrays_of(places, shape, rounds)
        naive = reference(names.kernel, arrays, shape)
        normal = normal_form.apply(simplified(naive), CUDA)
        assert even_loops.apply(normal) is not normal
        wanted = run((naive,), names.kernel, arrays, shape)[2]
        for plan in PLANS[: 3 if len(shape) == 2 else 1]:  # shared memory has no room for a fourth dimension
            program = build_program(naive, plan.filled(NEUTRAL), "cuda")
            np.testing.assert_array_equal(run(program.kernels, names.kernel, arrays, shape)[2], wanted)


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("extra", EXTRA)
@pytest.mark.parametrize("start", [0, 2])
@pytest.mark.parametrize("a", ["y, k", "k, y"])
@pytest.mark.parametrize("b", ["x, k", "k, x"])
def test_the_bits_are_those_of_a_thread_for_each_point(update: str, extra: int, start: int, a: str, b: str) -> None:
    for shape in ((13, 11), (8, 16), (3, 5), (1, 1)):
        check(text(update, extra, start, (a, b)), (a, b), shape, max(1, shape[0] - 1 + extra))


@pytest.mark.parametrize("b", ["x, k", "k, x"])
def test_batches(b: str) -> None:
    check(text("differences", 1, 0, ("y, k", b), rank=3), ("y, k", b), (2, 9, 7), 9)


def uneven(body: str) -> str:
    return HEAD.format(at="y: lw.index, x: lw.index", d=2) + body


OTHERS = {
    "a place of both": "    s = 0.0\n    for k in range(y + 1):\n        s += a[y - k, x] * b[k, x]\n    r[y, x] = s\n",
    "a load in a branch": "    s = 0.0\n    for k in range(y + 1):\n        if k < x:\n            s += a[y, k]\n    r[y, x] = s\n",
    "two ends": "    s = 0.0\n    for k in range(lw.min(x, y) + 1):\n        s += a[y, k]\n    r[y, x] = s\n",
    "steeper": "    s = 0.0\n    for k in range(2 * y):\n        s += a[y, k]\n    r[y, x] = s\n",
    "beside it": "    s = 0.0\n    for k in range(y + 1):\n        s += a[y - 1, k]\n    r[y, x] = s\n",
    "a step": "    s = 0.0\n    for k in range(0, y + 1, 2):\n        s += a[y, k]\n    r[y, x] = s\n",
    "a break": "    s = 0.0\n    for k in range(y + 1):\n        if s > 3.0:\n            break\n        s += a[y, k]\n    r[y, x] = s\n",
    "a loop inside": "    s = 0.0\n    for k in range(y + 1):\n        for j in range(b.shape[1]):\n            s += a[y, k] * j\n    r[y, x] = s\n",
}


@pytest.mark.parametrize("body", OTHERS.values(), ids=OTHERS)
def test_what_might_read_beyond_an_array_or_change_a_value_stays(body: str) -> None:
    with executed(uneven(body), "other.py") as names:
        arrays = [np.ones((8, 16), np.float32), np.ones((8, 8), np.float32), np.zeros((8, 8), np.float32)]
        kernel = normal_form.apply(simplified(reference(names.kernel, arrays, (8, 8))), CUDA)
        assert even_loops.apply(kernel) is kernel


@pytest.mark.cuda
@pytest.mark.parametrize("update", ["product", "smallest", "branch"])
@pytest.mark.parametrize("a", ["y, k", "k, y"])
@pytest.mark.parametrize("b", ["x, k", "k, x"])
def test_triangles_in_tiles_on_a_gpu(update: str, a: str, b: str) -> None:
    """By the default plan, whose blocks have tiles from such a size on, and by a thread for each point: nearly the
    same.
    """
    import cupy as cp

    n = 2048
    with executed(text(update, 1, 0, (a, b)), "triangle.py") as names, lw.device("cuda"):
        given = [cp.asarray(x) for x in arrays_of((a, b), (n, n), n)]
        found = []
        for plan in (None, Plan(block=256)):
            given[2][:] = -1.0
            names.kernel(*given, grid=(n, n), plan=plan)
            found.append(given[2].get())
        np.testing.assert_allclose(found[0], found[1], rtol=2e-5, atol=2e-4)
        rows = given[0].get().astype(np.float64)[:40] if a == "y, k" else given[0].get().astype(np.float64).T[:40]
        if update == "product":
            right = given[1].get().astype(np.float64) if b == "k, x" else given[1].get().astype(np.float64).T
            np.testing.assert_allclose(found[0][:40], np.tril(rows) @ right, rtol=1e-4, atol=1e-4)
