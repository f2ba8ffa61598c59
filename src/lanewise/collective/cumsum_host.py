"""Prefix sums on a CPU, in two passes over blocks of elements: what each block holds, then its elements behind what all before it hold.

The blocks do not hang on the threads that there are, so floats are added in one order in every run. Blocks are run through side by side,
`CHAINS` at a time: one sum after the other would wait for the adder.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lanewise.runtime import cpu

BLOCK = 1024  # elements
CHAINS = 4  # blocks side by side
GRAIN = 16  # groups of blocks worth handing to another thread
TEXT = """import numpy as np
from numba import {sum} as Sum
from numba import {element} as Element
from numba import njit


@njit(error_model="numpy", nogil=True)
def {name}_kernel(values, sums, results, begin, end):
{body}"""
TOTALS = """    for group in range(begin, end):
        first = np.uint64(group * 4096)
        a, b, c, d = Sum(0), Sum(0), Sum(0), Sum(0)
        if group * 4096 + 4096 <= len(values):
            for n in range(np.uint64(1024)):
                a += Sum(values[first + n])
                b += Sum(values[first + n + np.uint64(1024)])
                c += Sum(values[first + n + np.uint64(2048)])
                d += Sum(values[first + n + np.uint64(3072)])
        else:
            for n in range(first, np.uint64(len(values))):
                block = (n - first) // np.uint64(1024)
                x = Sum(values[n])
                if block == 0:
                    a += x
                elif block == 1:
                    b += x
                elif block == 2:
                    c += x
                else:
                    d += x
        sums[4 * group], sums[4 * group + 1], sums[4 * group + 2], sums[4 * group + 3] = a, b, c, d
"""
INCLUSIVE = """    for group in range(begin, end):
        first = np.uint64(group * 4096)
        a, b, c, d = sums[4 * group], sums[4 * group + 1], sums[4 * group + 2], sums[4 * group + 3]
        if group * 4096 + 4096 <= len(values):
            for n in range(np.uint64(1024)):
                a += Sum(values[first + n])
                b += Sum(values[first + n + np.uint64(1024)])
                c += Sum(values[first + n + np.uint64(2048)])
                d += Sum(values[first + n + np.uint64(3072)])
                results[first + n] = Element(a)
                results[first + n + np.uint64(1024)] = Element(b)
                results[first + n + np.uint64(2048)] = Element(c)
                results[first + n + np.uint64(3072)] = Element(d)
        else:
            for n in range(first, np.uint64(len(values))):
                if (n - first) % np.uint64(1024) == 0:
                    a = sums[np.uint64(4 * group) + (n - first) // np.uint64(1024)]
                a += Sum(values[n])
                results[n] = Element(a)
"""
EXCLUSIVE = """    for group in range(begin, end):
        first = np.uint64(group * 4096)
        a, b, c, d = sums[4 * group], sums[4 * group + 1], sums[4 * group + 2], sums[4 * group + 3]
        if group * 4096 + 4096 <= len(values):
            for n in range(np.uint64(1024)):
                p, q = values[first + n], values[first + n + np.uint64(1024)]
                r, s = values[first + n + np.uint64(2048)], values[first + n + np.uint64(3072)]
                results[first + n] = Element(a)
                results[first + n + np.uint64(1024)] = Element(b)
                results[first + n + np.uint64(2048)] = Element(c)
                results[first + n + np.uint64(3072)] = Element(d)
                a += Sum(p)
                b += Sum(q)
                c += Sum(r)
                d += Sum(s)
        else:
            for n in range(first, np.uint64(len(values))):
                if (n - first) % np.uint64(1024) == 0:
                    a = sums[np.uint64(4 * group) + (n - first) // np.uint64(1024)]
                x = values[n]
                results[n] = Element(a)
                a += Sum(x)
"""
SUMS = {"int32": "int32", "uint32": "uint32", "int64": "int64", "float32": "float64", "float64": "float64"}


def _kernel(name: str, body: str, element: str) -> Any:
    return cpu.own_kernel(TEXT.format(name=name, body=body, element=element, sum=SUMS[element]), name)


def cumsum(values: Any, out: Any, *, exclusive: bool) -> None:
    """Put the prefix sums of an array of NumPy into another one, or into itself."""
    element, groups = values.dtype.name, -(-values.size // (BLOCK * CHAINS))
    if not groups:
        return
    sums = np.empty(CHAINS * groups + 1, SUMS[element])
    cpu.run_range(_kernel("block_sums", TOTALS, element), (values, sums[1:], out), groups, GRAIN)
    sums[0] = 0
    before = np.cumsum(sums[:-1], dtype=sums.dtype)
    body = EXCLUSIVE if exclusive else INCLUSIVE
    cpu.run_range(_kernel("prefix_sums", body, element), (values, before, out), groups, GRAIN)
