"""Whether two plans computed the same: equal but for rounding in another order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lanewise.ir import nodes as ir
from lanewise.ir.functions import functions
from lanewise.ir.traverse import statements
from lanewise.tuning.job import HostArray

ROUNDINGS = 1024  # units in the last place, of the largest value of a result: sums in another order differ by less


def tolerance(reference: ir.Kernel, roundings: int = ROUNDINGS) -> float:
    """The relative error that rounding explains, from the coarsest float type that the kernel or its function handles."""
    kinds = {leaf.type for a in reference.arrays for leaf in a.leaves} | {p.type for p in reference.uniforms}
    for function in functions(reference.body).values():
        kinds |= {s.value.type for s in statements(function.body) if isinstance(s, ir.Assign)}
    floats = [np.finfo(f"f{k.size}").eps for k in kinds if k.is_float]
    return roundings * float(max(floats, default=0.0))


def difference(found: Sequence[HostArray], wanted: Sequence[HostArray], relative: float) -> str:
    """What is wrong with a result, or nothing.

    Floats are compared relative to the largest finite value of their array, because sums cancel; whole numbers exactly.
    NaN and infinity have to be where they are wanted.
    """
    for number, (f, w) in enumerate(zip(found, wanted, strict=True)):
        if text := _difference(f, w, relative):
            return f"result {number}: {text}" if len(wanted) > 1 else text
    return ""


def _difference(found: HostArray, wanted: HostArray, relative: float) -> str:
    if wanted.dtype.kind != "f":
        wrong = int(np.count_nonzero(found != wanted))
        return f"{wrong:,} of {wanted.size:,} values differ from the default plan's" if wrong else ""
    finite = np.isfinite(wanted)
    if not np.array_equal(finite, np.isfinite(found)):
        wrong = int(np.count_nonzero(finite != np.isfinite(found)))
        return f"{wrong:,} of {wanted.size:,} values are finite in one result and not in the other"
    if not np.array_equal(found[~finite], wanted[~finite], equal_nan=True):
        return "infinities or NaN differ"
    f, w = found[finite].astype(np.float64), wanted[finite].astype(np.float64)
    size = float(np.max(np.abs(w), initial=0.0))
    error = float(np.max(np.abs(f - w), initial=0.0))
    if error <= relative * size:
        return ""
    share = error / size if size else error
    return (
        f"it differs from the default plan's by {share:.1e} of the largest value, and rounding explains {relative:.1e}"
    )
