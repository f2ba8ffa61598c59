"""The pattern of elements that have nothing to do with each other."""

from __future__ import annotations

from dataclasses import replace

from lanewise.ir import nodes as ir
from lanewise.ir.pattern import HostCode, Pattern, Work, elementary_class
from lanewise.patterns import element_merging

NARROW = 4  # leaves of a structure that SIMD loops load together and take apart by shuffles


def _describe(reference: ir.Kernel, work: Work) -> Work:
    return replace(work, together=element_merging.suited(reference))


ELEMENTWISE = Pattern(
    "elementwise",
    one_record=True,
    host=HostCode(inline=True, widest_stride=NARROW),
    merging=element_merging,
    describe=_describe,
    plan_class=elementary_class,
)
