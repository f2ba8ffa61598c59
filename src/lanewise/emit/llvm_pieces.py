"""Stores of SIMD registers past the caches in pieces, in LLVM's language, for one number of lanes
each.
"""

from __future__ import annotations

from functools import cache

from lanewise.emit.llvm_instructions import LETTERS, TYPES
from lanewise.language.types import Scalar
from lanewise.runtime.llvm_lines import FunctionLines

EVEN = 16  # bytes that a store past the caches needs to begin at a multiple of
NONTEMPORAL = ", !nontemporal !{i32 1}"


@cache
def pieces_of(count: int, kind: Scalar) -> str:
    """Stores some lanes past the caches; the place begins at a multiple of `EVEN` bytes. A short
    register of small numbers is one piece of fewer bytes.

    A separate function, or LLVM makes all of a kernel's loops for the sake of this.
    """
    code, t, piece = FunctionLines(), TYPES[kind], min(EVEN // kind.size, count)
    bits, element = f"i{count}", f"i{8 * kind.size}"
    letter = f"v{count}{LETTERS.get(kind) or t}"
    register = code.give(f"load <{count} x {t}>, ptr %kept")
    for first in range(0, count, piece):
        every = ((1 << piece) - 1) << first
        order = ", ".join(f"i32 {n}" for n in range(first, first + piece))
        values = code.give(
            f"shufflevector <{count} x {t}> {register}, <{count} x {t}> poison, "
            f"<{piece} x i32> <{order}>"
        )
        here = code.give(f"and {bits} %lanes, {every}")
        whole, some, behind = (code.label(n) for n in ("whole", "some", "behind"))
        code.branch(code.give(f"icmp eq {bits} {here}, {every}"), whole, some)
        code.begin(whole)
        place = code.give(f"getelementptr {t}, ptr %place, i64 {first}")
        code.do(f"store <{piece} x {t}> {values}, ptr {place}, align {EVEN}{NONTEMPORAL}")
        code.jump(behind)
        code.begin(some)
        for n in range(piece):
            then, after = code.label("then"), code.label("after")
            moved = code.give(f"lshr {bits} %lanes, {first + n}")
            code.branch(code.give(f"trunc {bits} {moved} to i1"), then, after)
            code.begin(then)
            one = code.give(f"extractelement <{piece} x {t}> {values}, i64 {n}")
            word = one if t == element else code.give(f"bitcast {t} {one} to {element}")
            place = code.give(f"getelementptr {t}, ptr %place, i64 {first + n}")
            code.do(f"store {element} {word}, ptr {place}, align {kind.size}{NONTEMPORAL}")
            code.jump(after)
            code.begin(after)
        code.jump(behind)
        code.begin(behind)
    code.end("ret void")
    head = (
        f"define internal void @lw_pieces_{letter}(ptr %kept, {bits} %lanes, ptr %place) noinline"
    )
    return f"{head} {{\n{code.text()}\n}}\n"
