"""What single targets of a case over records are, by its own text on float64 numbers."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np

import lanewise as lw
from tests.fuzz.texts import executed
from tests.zoo.generate import SMALL, Array
from tests.zoo.records import RecordCase

TOLERANCE = 128 * float(np.finfo(np.float32).eps)


def call_of(case: RecordCase, kernel: Any, size: str) -> Any:
    """The kernel with the search of that size."""
    if case.family != "searches":
        return kernel
    search = lw.Neighbors(radius=case.radius(size), position="position")
    return kernel.using(search=search)


def records_of(case: RecordCase, item: Any, size: str, **how: Any) -> list[Any]:
    """Arrays of records for a call: of targets and sources, or of elements. how: device and layout."""
    arrays = [item.array(**fields, **how) for fields in case.values(size)]
    return arrays * 2 if case.same and case.family != "elements" else arrays


def check(
    case: RecordCase, size: str, found: Sequence[Array], after: dict[str, Array], tables: dict[str, Array]
) -> float:
    """The largest error of a call, in parts of what rounding may make.

    found: its results. after: the fields of its elements after the call, and tables what it added to, of elements
    alone. Few targets are looked at, and all elements. Raises `AssertionError` where one is wrong.
    """
    with np.errstate(all="ignore"), warnings.catch_warnings(), lw.device("cpu"):
        warnings.simplefilter("ignore", lw.LanewiseWarning)
        return _elements(case, size, found, after, tables) if case.family == "elements" else _pairs(case, size, found)


def _compare(case: RecordCase, what: str, found: Any, wanted: Any, scale: Any) -> float:
    errors = np.abs(np.asarray(found, np.float64) - wanted) / (TOLERANCE * (1.0 + np.asarray(scale)))
    assert np.all(errors <= 1), f"seed {case.seed}, {what}: {found} for {wanted}\n{case.text}"
    return float(np.max(errors, initial=0.0))


# ---------------------------------------------------------------- pairs


def _pairs(case: RecordCase, size: str, found: Sequence[Array]) -> float:
    values = case.values(size)
    (count, others), rng, worst = case.count(size), Random(case.seed), 0.0
    running = 1.0 + others**0.5 / 128  # a running sum in float32 loses more of each term, the longer it is
    chosen = [0, count - 1, *(rng.randrange(count) for _ in range(4))]
    with (
        executed(case.exact, f"zoo_exact_{case.seed}.py") as names,
        executed(case.magnitudes, f"zoo_magnitudes_{case.seed}.py") as sizes,
    ):
        targets = {n: v[chosen] for n, v in values[0].items()}
        sources = names.Item.array(**values[-1])
        reduced = _by_python if size == SMALL else _by_a_cpu
        wanted = reduced(case, size, names, targets, values[-1])
        scales = reduced(case, size, sizes, targets, values[-1])
        items = list(names.Item.array(**targets))
        for n, results in enumerate(found):
            form, mine = case.form(n), np.asarray(results)[chosen]
            if form in (
                "ArgMin",
                "ArgKMin",
            ):  # of values that are nearly equal either may be meant: what counts is the value
                assert all(len({*row}) == len(row) for row in (k[k >= 0].tolist() for k in mine)), (
                    f"seed {case.seed}, result {n}"
                )
                mine = np.array(
                    [_values(case, names, item, sources, n, k) for item, k in zip(items, mine, strict=True)]
                )
                there = np.isfinite(wanted[n])
                assert np.array_equal(there, np.isfinite(mine)), f"seed {case.seed}, result {n}"
                mine, wanted[n] = np.where(there, mine, 0.0), np.where(there, wanted[n], 0.0)
            if form in ("Min", "Max", "KMin", "LogSumExp"):  # of no source at all
                there = np.isfinite(wanted[n])
                assert np.array_equal(mine[~there], wanted[n][~there]), f"seed {case.seed}, result {n}"
                mine, wanted[n] = np.where(there, mine, 0.0), np.where(there, wanted[n], 0.0)
            scale = (
                np.zeros(1) if form in ("Count", "Any", "All") else np.abs(wanted[n]) if form else scales[n] * running
            )
            if wanted[n].ndim > 1 and scale.ndim == 1:
                scale = scale[:, None]
            worst = max(worst, _compare(case, f"result {n}", mine, wanted[n], scale))
    return worst


def _values(case: RecordCase, names: Any, target: Any, sources: Any, n: int, found: Any) -> Any:
    """The values of the sources that a target found, one or several; infinity for none."""
    if np.ndim(found):
        return [_values(case, names, target, sources, n, k) for k in found]
    if found < 0:
        return np.inf
    results = names.kernel.python(target, sources[int(found)], *case.uniforms.values())
    return float(results[n] if len(case.results) > 1 else results)


def _by_python(
    case: RecordCase, size: str, names: Any, targets: dict[str, Array], sources: dict[str, Array]
) -> list[Any]:
    """The reduced results of the function itself, pair by pair."""
    others = list(names.Item.array(**sources))
    rows: list[list[Any]] = []
    for target in names.Item.array(**targets):
        pairs = [
            names.kernel.python(target, s, *case.uniforms.values()) for s in others if _meets(case, size, target, s)
        ]
        columns: list[Any] = list(zip(*pairs, strict=True)) if len(case.results) > 1 else [pairs]
        columns = columns or [()] * len(case.results)
        rows.append([_reduced(case, n, column) for n, column in enumerate(columns)])
    return [np.array(column) for column in zip(*rows, strict=True)]


def _meets(case: RecordCase, size: str, target: Any, source: Any) -> bool:
    if case.family != "searches":
        return True
    apart = np.array(source.position) - np.array(target.position)
    return bool(np.sum(apart * apart) < case.radius(size) ** 2)


def _reduced(case: RecordCase, n: int, column: Sequence[Any]) -> Any:
    match case.form(n):
        case "Min" | "ArgMin":
            return min(map(float, column), default=np.inf)
        case "Max":
            return max(map(float, column), default=-np.inf)
        case "KMin" | "ArgKMin":
            many = case.most(n)
            return (sorted(map(float, column)) + [np.inf] * many)[:many]
        case "LogSumExp":
            return np.logaddexp.reduce([float(x) for x in column]) if column else -np.inf
        case "Any":
            return any(column)
        case "All":
            return all(column)
        case _:
            zero = np.zeros(case.dimensions) if case.annotations[n].startswith("lw.vec") else 0.0
            return sum((np.array(x, np.float64) for x in column), start=zero)


def _by_a_cpu(
    case: RecordCase, size: str, names: Any, targets: dict[str, Array], sources: dict[str, Array]
) -> list[Any]:
    """The same, compiled: every source is looked at."""
    kernel = names.kernel
    if case.family == "searches":
        kernel = kernel.using(search=lw.AllPairs(radius=case.radius(size), position="position"))
    with lw.device("cpu"):
        found = kernel(names.Item.array(**targets), names.Item.array(**sources), *case.uniforms.values())
    return [np.array(f, np.float64) for f in (found if isinstance(found, tuple) else (found,))]


# ---------------------------------------------------------------- elements


def _elements(
    case: RecordCase, size: str, found: Sequence[Array], after: dict[str, Array], tables: dict[str, Array]
) -> float:
    arrays = case.arrays()
    with executed(case.exact, f"zoo_exact_{case.seed}.py") as names:
        items = names.Item.array(**case.values(size)[0])
        if size == SMALL:
            elements = list(items)
            results = [names.kernel.python(item, *case.uniforms.values(), *arrays.values()) for item in elements]
            wanted = [np.array(results, np.float64)] if case.results else []
            fields = {n: np.array([getattr(item, n) for item in elements]) for n in case.fields}
        else:
            with lw.device("cpu"):
                out = names.kernel(items, *case.uniforms.values(), **arrays)
            wanted = [np.array(out)] if case.results else []
            fields = items.numpy()
    worst = [_compare(case, "result", f, w, np.abs(w)) for f, w in zip(found, wanted, strict=True)]
    worst += [_compare(case, f"field {n}", after[n], fields[n], np.abs(fields[n])) for n in case.fields]
    worst += [_compare(case, n, tables[n], arrays[n], np.abs(arrays[n])) for n in tables]
    return max(worst)
