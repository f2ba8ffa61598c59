"""How many rounds a loop has, in LLVM's language, and what LLVM may do with them."""

from __future__ import annotations

from collections.abc import Callable

from lanewise.ir import nodes as ir


def counted_rounds(
    give: Callable[[str], str], t: str, start: str, stop: str, by: ir.Expression, step: str
) -> str:
    """From start to stop, in a type that holds the way between them.

    by: the step as it is in the IR, which may be known; step: its value.
    """
    way = give(f"sub {t} {stop}, {start}")
    ahead = give(f"icmp sgt {t} {way}, 0")
    known = by.value if isinstance(by, ir.Literal) else None
    if known == 1:
        return give(f"select i1 {ahead}, {t} {way}, {t} 0")
    up = "true" if known is not None and known > 0 else "false"
    if known is None:
        up = give(f"icmp sgt {t} {step}, 0")
    apart = give(f"xor i1 {ahead}, {up}")
    rest = give(f"srem {t} {way}, {step}")
    minus = give(f"sub {t} 0, {rest}")
    size = give(f"select i1 {ahead}, {t} {rest}, {t} {minus}")
    uneven = give(f"icmp sgt {t} {size}, 0")
    more = give(f"zext i1 {uneven} to {t}")
    whole = give(f"sdiv {t} {way}, {step}")
    all_of = give(f"add {t} {whole}, {more}")
    return give(f"select i1 {apart}, {t} 0, {t} {all_of}")


NOT_UNROLLED = '!0 = !{!"llvm.loop.unroll.disable"}'


def kept_whole(needs: set[str]) -> str:
    """What the end of a loop says whose few rounds LLVM shall not write out one by one, as it does
    before it looks for vectors. needs: of the text, by which the words have numbers.
    """
    number = sum(n.startswith("!") for n in needs | {NOT_UNROLLED})
    needs |= {NOT_UNROLLED, f"!{number} = distinct !{{!{number}, !0}}"}
    return f", !llvm.loop !{number}"
