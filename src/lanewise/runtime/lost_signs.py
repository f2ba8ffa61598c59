"""A fault of NVIDIA's assembler, and texts that keep clear of it.

From sm_90 on there is one instruction for the largest, or the smallest, of three integers. The
assembler of CUDA 13.0 to 13.3 makes it of `max(max(a, -b), c)` and forgets the sign of b, at every
level of optimisation but the lowest; that of 13.5 does not. Such a minus need not be in the text:
the compiler before it turns `min(x, n - 1)` into `~max(~x, -n)` where that decides how often a loop
runs.

So the assembler's input is looked at. A kernel that has the pattern is compiled again with minima
and maxima that the compiler cannot turn round; if the pattern is still there, because the text
itself negates, the assembler is instructed not to optimise.
"""

from __future__ import annotations

import re

MENDED = (13, 5)  # the first version that was seen to be right
FIRST = 90  # the first architecture with the instruction
WRITTEN_OUT = "--ptxas-options=-O0"

_STATEMENT = re.compile(r"\b(neg|sub|min|max)\.s32\s+(%\w+),\s*([^,;]+)(?:,\s*([^;]+))?;")
_APART = """\
template <class T> __device__ __forceinline__ T lw_apart_min(T a, T b) { return b < a ? b : a; }
template <class T> __device__ __forceinline__ T lw_apart_max(T a, T b) { return a < b ? b : a; }
__device__ __forceinline__ int lw_apart_min(int a, int b) { int r; asm("min.s32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r; }
__device__ __forceinline__ int lw_apart_max(int a, int b) { int r; asm("max.s32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r; }
#define min lw_apart_min
#define max lw_apart_max
#line 1
"""


def suspected(arch: str, version: str) -> bool:
    """Whether the assembler of an NVRTC of this version may lose signs for this architecture."""
    number = re.search(r"\d+", arch)
    known = tuple(map(int, version.split(".")))
    return known < MENDED and number is not None and int(number[0]) >= FIRST


def loses_sign(ptx: str) -> bool:
    """Whether a minimum of a minimum, or a maximum of a maximum, takes a negated number, anywhere
    in the assembler's input.
    """
    for body in ptx.split(".visible .entry"):
        statements = [tuple(x.strip() if x else "" for x in s) for s in _STATEMENT.findall(body)]
        negated = {
            to for name, to, a, _ in statements if name == "neg" or (name == "sub" and a == "0")
        }
        for name in ("min", "max"):
            chosen = {to: {a, b} for operation, to, a, b in statements if operation == name}
            for operands in chosen.values():
                inner = [chosen[o] for o in operands if o in chosen]
                if any(negated & (operands | i) for i in inner):
                    return True
    return False


def apart(text: str) -> str:
    """A text whose minima and maxima of i32 the compiler takes as they are; lines keep their
    numbers.
    """
    return _APART + text
