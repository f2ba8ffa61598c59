"""Kernels that are written by hand: what their text means, where Python runs the same text; what is refused; memory."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise.patterns.search.builders import (
    cells,
    counting,
    curve_host,
    dividing,
    hilbert_host,
    rows,
)
from lanewise.primitives import compaction, radix_sort, record_moves
from lanewise.runtime import llvm
from lanewise.runtime.written.kernel import TextKernel, llvm_text
from lanewise.runtime.written.kinds import TextError, kind_of, sort_of

PYTHON: dict[str, Any] = {
    **{n: getattr(np, n) for n in "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64".split()},
    "fitting": lambda kind, x: kind(x), "floor": np.floor, "ceil": np.ceil, "inf": np.inf, "empty": np.zeros, "zeros": np.zeros, "full": np.full,
}  # fmt: skip


class Typed(ast.NodeTransformer):
    """`values.dtype` is a type that converts in these texts, and `values.dtype.type` in NumPy."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        return ast.Attribute(node, "type", ast.Load()) if node.attr == "dtype" else node


def by_python(text: str, name: str) -> Any:
    scope = dict(PYTHON)
    tree = ast.fix_missing_locations(Typed().visit(ast.parse(text)))
    exec(compile(tree, "<text>", "exec"), scope)
    return scope[f"{name}_kernel"]


def check(text: str, name: str, *arguments: Any) -> None:
    """The text does the same to arrays, and returns the same, as Python runs it."""
    own, theirs = ([a.copy() if isinstance(a, np.ndarray) else a for a in arguments] for _ in range(2))
    found = TextKernel(text, name)(*own)
    with np.errstate(all="ignore"):
        wanted = by_python(text, name)(*theirs)
    for n, (a, b) in enumerate(zip(own, theirs, strict=True)):
        if isinstance(a, np.ndarray):
            assert a.tobytes() == b.tobytes(), (name, n)
    assert found == wanted


RANDOM = np.random.default_rng(5)
REALS, WHOLES = RANDOM.normal(size=50), RANDOM.integers(-1000, 1000, 50)

SMALL = {
    "chains": """def chains_kernel(a, b, out):
    for i in range(len(a)):
        out[i] = (1 if 0 <= a[i] < b[i] else 2) + (4 if a[i] < 0 or b[i] < 0 and not a[i] == b[i] else 8)
""",
    "whole": """def whole_kernel(a, b, out):
    for i in range(len(a) - 1, -1, -1):
        d = abs(b[i]) + 1
        out[i] = a[i] // d + 7 * (a[i] % d) + (a[i] ^ b[i] & -5 | 3) - (~a[i] >> 2) + (b[i] << 3)
""",
    "early": """def first(a, least):
    for i in range(len(a)):
        if a[i] >= least:
            return i
    return -1


def early_kernel(a, b, out):
    out[0], out[1] = first(a, 900), first(b, 5000)
    return first(a, 0) + 3
""",
    "rounds": """STEP, LAST = 3, 4 + 2


def rounds_kernel(a, b, out):
    total, n = 0, 0
    while True:
        n += STEP
        if n > LAST * 5:
            break
        if a[n] < 0:
            continue
        for k in (1, 2, 5):
            if k * a[n] > 2000:
                break
            total += k
    out[:] = total
    low, high = (a, b) if total > 5 else (b, a)
    out[2:5] = low[10:13]
    (high if total > 5 else low)[1] = 12
    out[5] = a[1] + b[1]
""",
    "rooms": """def rooms_kernel(a, b, out):
    n = len(a)
    some, more = zeros((2, n), int64), full(n, 2.5)
    for i in range(n):
        some[0, i] = some[0, i - 1] + a[i] if i > 0 else a[i]
        some[1][i] = i
        more[i] *= i
    for i in range(n):
        out[i] = some[0, i] + some[1, i] + int(more[i])
""",
}


@pytest.mark.parametrize("name", SMALL)
def test_statements_do_what_they_do_in_python(name: str) -> None:
    check(SMALL[name], name, WHOLES, RANDOM.permutation(WHOLES), np.zeros(50, np.int64))


FLOATS = """def floats_kernel(a, b, out):
    real = a.dtype
    for i in range(len(a)):
        x = max(min(a[i], b[i]), real(-1))
        out[i] = floor(x) / real(3) + abs(a[i]) * real(2) - (-b[i]) + (real(1) if a[i] != a[i] else ceil(b[i]))
"""


@given(
    st.lists(st.tuples(st.floats(width=32), st.floats(width=32)), min_size=1, max_size=9), st.sampled_from(["f4", "f8"])
)
def test_floats_are_those_of_numpy(pairs: list[tuple[float, float]], dtype: str) -> None:
    a, b = np.array(pairs).T.astype(dtype)
    kernel = TextKernel(FLOATS, "floats")
    found, wanted = np.zeros(len(a), dtype), np.zeros(len(a), dtype)
    kernel(a.copy(), b.copy(), found)
    with np.errstate(all="ignore"):
        by_python(FLOATS, "floats")(a, b, wanted)
    np.testing.assert_array_equal(found, wanted)


def test_texts_of_lanewise_do_what_python_makes_of_them() -> None:
    keys = RANDOM.integers(0, 2**30, 40).astype(np.uint32)
    sorts = np.zeros(40, np.uint32), np.zeros(40, np.int32), np.zeros(40, np.int32)
    check(radix_sort.HOST_TEXT, "radix_sort", keys, *sorts, 10)
    places = RANDOM.random((40, 3))
    values = [np.float64(v) for _ in range(3) for v in (0, 4, 3, 1, 1)]
    numbers, columns = np.zeros(40, np.int32), [np.ascontiguousarray(c) for c in places.T]
    check(cells._numbers_text(3), "cell_numbers", *columns, numbers, *values, 0, 40)
    check(counting.ALONE, "counting_sort", RANDOM.integers(0, 9, 40).astype(np.int32), np.zeros(10, np.int32), numbers)
    leaf = (places, np.zeros((0, 3)), np.arange(40, dtype=np.int32), 8, np.arange(5), np.zeros((9, 8)), 4, 1e-6)
    quantiles = np.sort(RANDOM.random((3, 33)), axis=1)
    curve = (places, quantiles, 1 / np.diff(quantiles, axis=1), 10, np.zeros(40, np.uint32))
    check(curve_host.KEYS, "hilbert_keys", *curve, 0, 40)
    check(curve_host.LEAVES, "leaf_boxes", *leaf, 0, 5)
    check(hilbert_host.KEYS, "hilbert_high", places, np.zeros(3), np.float64(2**42), np.zeros(40, np.int64), 0, 40)
    rows, box = np.array([[0, 25], [25, 40]]), np.array([[[0.0, 1]] * 3] * 2)
    parts = (np.arange(40, dtype=np.int32), np.zeros(40, np.int32), 4, rows, box, np.zeros(40, bool))
    text = dividing.PARTS.replace("AXES", "3").replace("ALL", "3")
    made = np.zeros((40, 2)), np.zeros((40, 2), np.int64), np.zeros(2, np.int64)
    check(text, "parts", places, *parts, *made, 0, 2)
    mask, starts = (RANDOM.random(40) < 0.5).view(np.uint8), np.zeros(2, np.int64)
    starts[1] = mask.sum()
    text = compaction.HOST_COPY.format(tile=64, sparse=16, copy=compaction.ONE.format(value="values[uint64(i)]"))
    check(text, "compaction", keys, mask, mask.view(np.uint64), starts, np.zeros(int(starts[1]), np.uint32), 0, 1)
    pieces = np.array([[1, 3, 1, 0, 0, 3, 1, 0, 2], [0, 12, 3, 2, 0, 3, 1, 0, 1]])
    moved = np.arange(40)[::3].copy(), np.arange(200, dtype=np.uint32), np.zeros(200, np.uint32), pieces
    check(record_moves.TAKE_ON_HOST, "records_take_host", *moved, 0, 14)


@pytest.mark.parametrize("count", [0, 1, 5, 24, 25, 700, 10_000])
def test_rows_are_sorted_whatever_their_order(count: int) -> None:
    ascending, pipe = np.arange(count), np.minimum(np.arange(count), np.arange(count)[::-1])
    kinds = [
        RANDOM.integers(-50, 50, count),
        RANDOM.permutation(count),
        ascending,
        ascending[::-1],
        pipe,
        ascending % 2,
        0 * ascending,
    ]
    entries = np.concatenate(kinds).astype(np.int32)
    wanted = np.sort(entries.reshape(len(kinds), count)).ravel()
    rows.sort_rows(entries, np.arange(len(kinds) + 1) * count)
    np.testing.assert_array_equal(entries, wanted)


def test_rows_that_are_hard_to_divide_are_sorted_by_a_heap() -> None:
    """Each division leaves all but two: an order that makes the medians of three the smallest entries."""
    count = 3000
    entries = np.zeros(count, np.int32)
    left = list(range(count))  # places that are left, from the first to the last
    for value in range(count):
        middle = left[len(left) // 2]
        entries[middle] = value
        left.remove(middle)
    wanted = np.sort(entries)
    rows.sort_rows(entries, np.array([0, count]))
    np.testing.assert_array_equal(entries, wanted)
    text = rows._SORT.format(few=rows.FEW).replace(
        "turns, waiting = offsets[row], offsets[row + 1], 40, 0",
        "turns, waiting = offsets[row], offsets[row + 1], 2, 0",
    )
    assert ", 2, 0" in text
    shuffled = RANDOM.permutation(wanted)
    TextKernel(text, "sort_rows")(shuffled, np.array([0, count]), 0, 1)
    np.testing.assert_array_equal(shuffled, wanted)


def test_types_are_those_of_the_arguments() -> None:
    kernel = TextKernel("def add_kernel(x, by):\n    for i in range(len(x)):\n        x[i] += by\n", "add")
    for dtype in ("i1", "u2", "i4", "u8", "f4", "f8"):
        x = np.arange(6).astype(dtype)
        kernel(x, x.dtype.type(3))
        assert x.tolist() == [3, 4, 5, 6, 7, 8]
    apart = np.zeros((6, 2))
    kernel(apart[:, 1], 2.0)
    assert apart.sum() == 12
    kernel(apart[::-2, 0], 1.5)
    assert apart[:, 0].tolist() == [0, 1.5, 0, 1.5, 0, 1.5]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("x[0] = y", "y is read before it has a value"),
        ("x[0] = uint64(1) + x[0]", "an integer with a sign meets one of 64 bits without"),
        ("for i in range(3):\n        a = empty(3, int64)", "local arrays are made outside of loops"),
        ("x[0] = helper(1)", "there is no function helper"),
        ("with x:\n        pass", "there is no With"),
        ("x[0:8:2] = 1", "parts of arrays are whole"),
        ("a = x\n    a = 1", "a variable is"),
        ("for i in range(0, 9, x[0]):\n        pass", "the step of a range is a number of the text"),
        ("return 0.5", "a kernel returns an integer, a boolean or nothing"),
        ("x[0] = x[0:2].view(int32)[0]", "a view has numbers of the same size"),
        ("a, b = 1, 2, 3", "as many values are wanted as there are names"),
        ("x[0.5] = 1", "places of an array are integers"),
        ("x[0] = fitting(uint8, 1.5)", "a float that fits a type with a sign is wanted"),
        ("x[0] = 1.5 & 3", "floats have no BitAnd"),
    ],
)
def test_what_is_not_in_the_language_says_its_line(body: str, said: str) -> None:
    with pytest.raises(TextError, match=said):
        llvm_text(f"def wrong_kernel(x):\n    {body}\n", "wrong", (kind_of(np.zeros(3, np.int64)),))


def test_a_function_that_calls_itself_and_wrong_arguments_are_refused() -> None:
    text = "def f(x):\n    return f(x)\n\n\ndef wrong_kernel(x):\n    x[0] = f(1)\n"
    with pytest.raises(TextError, match="f calls itself"):
        TextKernel(text, "wrong")(np.zeros(3))
    kernel = TextKernel("def one_kernel(x):\n    x[0] = 1\n", "one")
    with pytest.raises(TextError, match="takes 1 arguments, found 2"):
        kernel(np.zeros(3), 1)
    for wrong, said in ((np.zeros(3, ">f8"), "as other machines have it"), ("text", "found str")):
        with pytest.raises(TextError, match=said):
            kernel(wrong)


def test_memory_that_is_not_there_is_an_error_and_what_was_made_is_given_back() -> None:
    text = """def large_kernel(x, n):
    some = zeros(1 << 20, int64)
    more = empty(n, int64)
    for i in range(5):
        more[i], some[i] = i, 2 * i
    x[0] = more[int(x[1])] + some[int(x[2])]
"""
    kernel, x = TextKernel(text, "large"), np.array([0.0, 3.0, 4.0])
    for _ in range(200):  # 1.6 GB, if they were kept
        kernel(x, 5)
        with pytest.raises(MemoryError, match="large found no memory for its local arrays"):
            kernel(x, 1 << 50)
    assert x[0] == 11


def test_loops_become_instructions_of_simd_registers() -> None:
    text = "def twice_kernel(x, y):\n    for i in range(len(x)):\n        y[i] = x[i] * float32(2)\n"
    kinds = tuple(map(kind_of, (np.zeros(3, "f4"), np.zeros(3, "f4"))))
    assert " x float>" in str(llvm._optimised(llvm_text(text, "twice", kinds)))


def test_arguments_of_one_sort_are_of_one_kind() -> None:
    """Calls look for compiled code by the sort, which is quicker to find."""
    whole = np.zeros((4, 6), np.float32)
    some: list[Any] = [True, 1, 1.0, whole, whole[:, ::2], whole[0], whole[:, 0], whole.T]
    for name in ("bool", "int8", "uint8", "int32", "uint32", "int64", "uint64", "float32", "float64"):
        some += [np.zeros(3, name), np.dtype(name).type(1)]
    kinds = dict[Any, set[Any]]()
    for argument in some:
        kinds.setdefault(sort_of(argument), set()).add(kind_of(argument))
    assert {len(found) for found in kinds.values()} == {1}
    assert sort_of(whole.astype(">f4")) not in kinds
