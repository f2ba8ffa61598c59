"""Patterns of elements that have nothing to do with each other: a result for each, and totals over all."""

from __future__ import annotations

from lanewise.ir.pattern import GRAIN_ELEMENTS, HostCode, Pattern

NARROW = 4  # leaves of a structure that SIMD loops load together and take apart by shuffles
ELEMENTS_PER_LANE = 64  # of a total: elements whose values one thread adds

ELEMENTWISE = Pattern("elementwise", one_record=True, host=HostCode(inline=True, widest_stride=NARROW))
REDUCTION = Pattern("reduction", grain=lambda last_count: GRAIN_ELEMENTS // ELEMENTS_PER_LANE)
