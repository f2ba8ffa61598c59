"""The kernel of F in float64, for what single precision costs and gains: the thesis's main scruple.

Without `from __future__ import annotations`: a kernel's types are read where it is defined.
"""

import math
from functools import cache
from typing import Any

import lanewise as lw
from lanewise.sims.waves.kernels import NEAR, Sft, Template, arrival

PI = math.pi


@cache
def dirichlet_kernel64(dterms: int) -> Any:
    """As `sims.waves.kernels.dirichlet_kernel`, with bins and sums in float64: `kernel(templates,
    sfts, bins)` is (Fa, Fb) as four numbers per cell.
    """
    terms, before = 2 * dterms, dterms - 1

    @lw.segmentwise
    def amplitudes64(template: Template, sft: Sft, bins: lw.Row[lw.dvec2]) -> lw.dvec4:
        turns, place = arrival(template, sft)
        whole = lw.floor(place)
        k = lw.i32(whole)
        kappa = place - whole
        x = lw.window(bins, k - sft.first_bin - before, terms)
        total = lw.dvec2(0)
        for j in range(terms):
            total += x[j] / (kappa + lw.f64(before) - lw.f64(j))
        value = total * (lw.sin(PI * kappa) / PI)
        near = lw.min(kappa, 1.0 - kappa)
        if near <= NEAR:
            first = kappa < 0.5
            angle = lw.select(first, kappa, kappa - 1.0) * PI
            c, s = lw.cos(angle), lw.sin(angle)
            nearest = lw.select(first, x[before], -x[before + 1])
            value = lw.dvec2(nearest.x * c - nearest.y * s, nearest.y * c + nearest.x * s)
        if k & 1 != 0:
            value = -value
        c, s = lw.cos(2 * PI * turns), lw.sin(2 * PI * turns)
        y = lw.dvec2(value.x * c + value.y * s, value.y * c - value.x * s)
        return lw.dvec4(sft.a * y.x, sft.a * y.y, sft.b * y.x, sft.b * y.y)

    return amplitudes64
