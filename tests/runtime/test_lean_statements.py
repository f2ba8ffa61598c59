"""Statements made fewer, and a lowering of our own: what a text means stays what Python makes of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lanewise.runtime import cpu

HEAD = """
from numba import njit
from numba import float32 as f32
from numba import int32 as i32
from numba import int64 as i64
from numba import uint32 as u32
from numba import uint64 as u64


@njit(error_model="numpy")
def both(a, b):
    return a + b, a - b


@njit(error_model="numpy", nogil=True)
def NAME_kernel(x, y, n, flags, begin, end):
"""

# x and y are rows of float32 of one length, n one of int64, flags one of bool.
BODIES = {
    "what changes hands": """
    for i in range(begin, end):
        a, b = x[i], y[i]
        a, b = b, a
        x[i], y[i] = a, b
""",
    "what goes round": """
    a, b, c = x[0], x[1], x[2]
    for i in range(begin, end):
        a, b, c = b, c, a + y[i]
        x[i] = a - c
""",
    "what was there before": """
    total = f32(0.0)
    for i in range(begin, end):
        before = total
        total = total + x[i]
        y[i] = before * total - before
""",
    "what is read within an expression and changes after it": """
    a = f32(1.0)
    for i in range(begin, end):
        last = a
        a = last * f32(0.5) + (a if a > y[i] else last + f32(0.25))
        x[i] = last - a
""",
    "one value for two": """
    for i in range(begin, end):
        a = b = x[i]
        b = b + f32(1.0)
        y[i] = a * b
""",
    "what two branches give": """
    for i in range(begin, end):
        a = x[i]
        if a > y[i]:
            b = a
            a = y[i]
        else:
            b = y[i]
        x[i], y[i] = a, b
""",
    "several values of a function": """
    for i in range(begin, end):
        a, b = both(x[i], y[i])
        b, a = both(b, a)
        x[i], y[i] = a, b
""",
    "places from the end": """
    for i in range(begin, end):
        x[i - len(x)] = y[-1 - i] + y[i32(-1) - i32(i)]
""",
    "places without a sign": """
    for i in range(begin, end):
        x[u64(i)] = y[u32(len(x) - 1 - i)]
""",
    "places that are read": """
    for i in range(begin, end):
        x[n[i]] = y[n[n[i]]]
""",
    "places that change": """
    place = i64(0)
    for i in range(begin, end):
        here = place
        place = here + i64(2) if here + i64(2) < i64(len(x)) else i64(1)
        x[here] = y[place]
""",
    "one row or the other": """
    for i in range(begin, end):
        row = x if flags[i] else y
        row[i] = row[i] + f32(1.0)
        row = y if flags[i] else x
        row[i] = row[0]
""",
    "truths and whole numbers": """
    for i in range(begin, end):
        flags[i] = not flags[i] or bool(x[i] > y[i])
        n[i] = i64(flags[i]) + n[i] // i64(2)
        x[i] = y[i] if flags[i] and n[i] > i64(1) else -y[i]
""",
    "a loop that ends by itself": """
    i = i64(begin)
    while i < i64(end):
        step = i64(1) if flags[i] else i64(2)
        x[i] = y[i] * f32(step)
        i += step
""",
}


def arrays() -> list[np.ndarray[Any, Any]]:
    random = np.random.default_rng(3)
    x, y = random.normal(size=(2, 24)).astype(np.float32)
    return [x, y, random.permutation(24).astype(np.int64), random.random(24) < 0.5]


def pythons(text: str, name: str) -> Any:
    """The kernel as Python runs it, on NumPy's numbers."""
    kinds = {"f32": np.float32, "i32": np.int32, "i64": np.int64, "u32": np.uint32, "u64": np.uint64}
    names: dict[str, Any] = {"njit": lambda **_: lambda function: function, **kinds}
    exec("\n".join(line for line in text.splitlines() if not line.startswith("from")), names)
    return names[f"{name}_kernel"]


@pytest.mark.parametrize("what", BODIES)
def test_a_text_means_what_python_makes_of_it(what: str) -> None:
    text = (HEAD + BODIES[what]).replace("NAME", "told")
    found, wanted = arrays(), arrays()
    pythons(text, "told")(*wanted, 0, 24)
    cpu.load_kernel(text, "told")(*found, 0, 24)
    for a, b in zip(found, wanted, strict=True):
        assert a.tobytes() == b.tobytes()
