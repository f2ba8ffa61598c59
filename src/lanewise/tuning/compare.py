"""Results of two plans are the same when every element of them is, but for rounding in another
order.

What rounding explains of an element is some units in the last place of its terms, which may cancel:

- Sums over pairs and items add what a function gives. The same kernel with the magnitudes of it
  adds those.
- Of other kernels every float that is read is moved by a unit in its last place, up or down at
  random. An element moves by such a unit of the root of the sum of its squared terms; times the
  root of the number of terms that is at least the sum of their magnitudes. Several samples are
  taken, so that none of the elements is still by chance.
- Multiplications and additions may be contracted by one plan and not by another, in sums or not:
  that is explained by some times what moved inputs do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from lanewise.ir import nodes as ir
from lanewise.ir.functions import functions
from lanewise.ir.traverse import blocks, flat_map, reads, scatters, statements

HostArray = np.ndarray[Any, Any]
# units in the last place of the terms of an element: sums in another order differ by less
ROUNDINGS = 1024
CONTRACTED = 64  # units in the last place: what plans may do where nothing is summed
# of moved inputs: an element is as good as still in all of them in one of 10 ** 13 cases
SAMPLES = 4


def tolerance(reference: ir.Kernel, roundings: int = ROUNDINGS) -> float:
    """The relative error that rounding explains, from the coarsest float type that the kernel or
    its function handles.
    """
    kinds = {leaf.type for a in reference.arrays for leaf in a.leaves} | {
        p.type for p in reference.uniforms
    }
    for function in functions(reference.body):
        kinds |= {s.value.type for s in statements(function.body) if isinstance(s, ir.Assign)}
    floats = [np.finfo(f"f{k.size}").eps for k in kinds if k.is_float]
    return roundings * float(max(floats, default=0.0))


def terms(reference: ir.Kernel, environment: Mapping[str, Any]) -> int:
    """How many terms an element of a result may have: rounds of the deepest loops, as many as the
    longest array where unknown.
    """
    whole = [
        int(v)
        for v in environment.values()
        if isinstance(v, (int, np.integer)) and not isinstance(v, bool)
    ]
    longest = max([1, *whole])
    bodies = [reference.body, *(f.body for f in functions(reference.body))]
    if any(map(scatters, bodies)):
        return longest
    return prod(_rounds(b, environment, longest) for b in bodies)


def _rounds(body: ir.Block, environment: Mapping[str, Any], longest: int) -> int:
    most = 1
    for s in body:
        inner = max((_rounds(b, environment, longest) for b in blocks(s)), default=1)
        most = max(most, inner * _turns(s, environment, longest))
    return most


def _turns(s: ir.Statement, environment: Mapping[str, Any], longest: int) -> int:
    if isinstance(s, ir.While):
        return longest
    if not isinstance(s, ir.For):
        return 1
    names = set(reads(s.stop)) | set(reads(s.start))
    if all(isinstance(environment.get(n), (int, np.integer)) for n in names):
        literal = int(s.stop.value) if isinstance(s.stop, ir.Literal) else 1
        return max([1, literal, *(int(environment[n]) for n in names)])
    return longest


def sums(reference: ir.Kernel, environment: Mapping[str, Any]) -> bool:
    """Whether elements of results may have several terms, whose order a plan may change."""
    return (
        reference.pattern.over_pairs
        or reference.pattern.over_items
        or terms(reference, environment) > 1
    )


def magnitudes(reference: ir.Kernel) -> ir.Kernel | None:
    """The kernel that adds the magnitudes of what this one adds; None for those that do not sum a
    function.
    """
    if not (reference.pattern.over_pairs or reference.pattern.over_items):
        return None

    def of_kernel(s: ir.Statement) -> ir.Block:
        return (replace(s, function=positive(s.function)),) if isinstance(s, ir.Apply) else (s,)

    return replace(reference, body=flat_map(reference.body, of_kernel))


def positive(function: ir.Function) -> ir.Function:
    """The function that gives the magnitudes of its floats."""

    def size(e: ir.Expression) -> ir.Expression:
        return ir.Call("abs", (e,), e.type) if e.type.is_float else e

    def of_function(s: ir.Statement) -> ir.Block:
        return (
            (replace(s, values=tuple(map(size, s.values))),) if isinstance(s, ir.Return) else (s,)
        )

    return replace(function, body=flat_map(function.body, of_function))


def moved(values: HostArray, sample: int, number: int, relative: float) -> HostArray:
    """Floats by so much of their size up or down at random, which is the same for the same sample
    and number; others as they are.
    """
    if values.dtype.kind != "f":
        return values
    signs = np.random.default_rng((sample, number)).integers(0, 2, values.shape, np.int8) * 2 - 1
    step = max(relative, float(np.finfo(values.dtype).eps))
    return (values * (1 + step * signs)).astype(values.dtype)


def margins(
    expected: Sequence[HostArray],
    samples: Sequence[Sequence[HostArray]],
    factor: float,
    relative: float,
    sizes: Sequence[HostArray] | None = None,
) -> list[HostArray]:
    """What rounding explains of every element besides its size: `factor` times how far samples are
    from what is expected.

    That is an estimate, and never taken for more than the relative error of the largest value.
    sizes: the sums of magnitudes, of which the relative error is explained as well.
    """
    found: list[HostArray] = []
    for number, e in enumerate(expected):
        spread = np.zeros(e.shape)
        if e.dtype.kind == "f":
            with np.errstate(all="ignore"):
                for s in samples:
                    spread = np.fmax(
                        spread, np.abs(s[number].astype(np.float64) - e.astype(np.float64))
                    )
        largest = (
            float(np.max(np.abs(e), initial=0.0, where=np.isfinite(e)))
            if e.dtype.kind == "f"
            else 0.0
        )
        explained = np.minimum(
            np.where(np.isfinite(spread), spread, 0.0) * factor, relative * largest
        )
        if sizes is not None and e.dtype.kind == "f":
            explained = explained + relative * np.nan_to_num(
                np.abs(sizes[number]), nan=0.0, posinf=0.0, neginf=0.0
            )
        found.append(explained)
    return found


def difference(
    actual: Sequence[HostArray],
    expected: Sequence[HostArray],
    relative: float,
    margins: Sequence[HostArray] | None = None,
) -> str:
    """What is wrong with a result, or nothing.

    Floats are compared element by element, relative to their size, with margins for those whose
    terms cancel; integers exactly. NaN and infinity have to be where they are wanted.
    """
    for number, (f, w) in enumerate(zip(actual, expected, strict=True)):
        if text := _difference(f, w, relative, 0.0 if margins is None else margins[number]):
            return f"result {number}: {text}" if len(expected) > 1 else text
    return ""


def _difference(
    actual: HostArray, expected: HostArray, relative: float, margin: HostArray | float
) -> str:
    if expected.dtype.kind != "f":
        wrong = int(np.count_nonzero(actual != expected))
        return (
            f"{wrong:,} of {expected.size:,} values differ from the default plan's" if wrong else ""
        )
    finite = np.isfinite(expected)
    if not np.array_equal(finite, np.isfinite(actual)):
        wrong = int(np.count_nonzero(finite != np.isfinite(actual)))
        return (
            f"{wrong:,} of {expected.size:,} values are finite in one result and not in the other"
        )
    if not np.array_equal(actual[~finite], expected[~finite], equal_nan=True):
        return "infinities or NaN differ"
    f = np.where(finite, actual, 0).astype(np.float64)
    w = np.where(finite, expected, 0).astype(np.float64)
    error = np.abs(f - w)
    allowed = relative * np.abs(w) + margin + float(np.finfo(expected.dtype).tiny)
    outside = error > allowed
    if not outside.any():
        return ""
    place = np.unravel_index(int(np.argmax(np.where(outside, error / allowed, 0))), expected.shape)
    return (
        f"{int(outside.sum()):,} of {expected.size:,} values differ from the default plan's by "
        "more than rounding explains, most of all "
        f"at {tuple(int(i) for i in place)}: {f[place]:.9g} instead of {w[place]:.9g}, and "
        f"rounding explains {allowed[place]:.1e}"
    )
