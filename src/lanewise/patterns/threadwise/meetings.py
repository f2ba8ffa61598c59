"""Threads that surely meet at an element that one of them writes.

Two witnesses, found among some of the threads of a call.

    c[i] = c[i + 1]    grid=4  ->  i = 0 reads c[1], and i = 1 writes it
Indices are evaluated with the numbers of a call, for all threads of a box at once, where they
depend on nothing else and no condition or loop is around them. What is found is a race. What is not
found may be one: threads that are not in the sample, places that data decide. Those are the
interpreter's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from lanewise.analysis.affine import accesses
from lanewise.ir import nodes as ir
from lanewise.ir.printer import print_place
from lanewise.ir.traverse import statements, writes
from lanewise.support.errors import ArgumentError, located

# that are looked at, half of them from the beginning of each index and half from its end
THREADS = 2**14
Threads = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Touched:
    """An access, and the element of each thread as one number."""

    statement: ir.ElementAccess
    elements: Any

    @property
    def writes(self) -> bool:
        return isinstance(self.statement, ir.StoreElement)


@dataclass(frozen=True, slots=True)
class Meeting:
    """Two accesses of one element, of which the first one writes, and their threads."""

    one: ir.ElementAccess
    other: ir.ElementAccess
    threads: tuple[Threads, Threads]
    element: tuple[int, ...]


def may_meet(thread: ir.Block, indices: tuple[str, ...]) -> bool:
    """Whether this is worth a look: there are arrays whose threads do not all have their
    own elements.
    """
    every = accesses(thread, indices)
    for array in {a.array for a in every if isinstance(a.statement, ir.StoreElement)}:
        of_array = [a for a in every if a.array == array]
        if any(a.indices != of_array[0].indices for a in of_array) or not of_array[0].keeps_apart(
            indices
        ):
            return True
    return False


def meeting(
    thread: ir.Block,
    extents: Mapping[str, int],
    numbers: Mapping[str, int],
    shapes: Mapping[str, tuple[int, ...]],
) -> Meeting | None:
    """The first two threads found that surely meet. extents: of the indices; numbers: of the call,
    whole ones, by name.
    """
    if min(extents.values()) < 1 or max(extents.values()) < 2:
        return None
    most = max(2, int(THREADS ** (1 / len(extents))))
    some = [_some(n, most) for n in extents.values()]
    boxes = [a.reshape(-1) for a in np.meshgrid(*some, indexing="ij")]
    touched = _touched(
        thread, {**numbers, **dict(zip(extents, boxes, strict=True))}, shapes, boxes[0].size
    )
    for one, other in combinations_with_replacement(touched, 2):
        if one.statement.array != other.statement.array or not (one.writes or other.writes):
            continue
        first, second = (one, other) if one.writes else (other, one)
        if pair := _pair(first.elements, second.elements):
            threads: Any = tuple(tuple(int(b[n]) for b in boxes) for n in pair)
            shape = shapes[first.statement.array]
            element = tuple(int(i) for i in np.unravel_index(int(first.elements[pair[0]]), shape))
            return Meeting(first.statement, second.statement, threads, element)
    return None


def _some(extent: int, most: int) -> Any:
    """All values of an index, or the first and the last ones."""
    if extent <= most:
        return np.arange(extent)
    return np.concatenate([np.arange(most // 2), np.arange(extent - most // 2, extent)])


def _pair(written: Any, touched: Any) -> tuple[int, int] | None:
    """Two threads, the first of which writes what the second one touches."""
    order = np.argsort(written, kind="stable")
    ordered = written[order]
    first = np.searchsorted(ordered, touched, "left").clip(max=len(ordered) - 1)
    last = (np.searchsorted(ordered, touched, "right") - 1).clip(min=0)
    found = ordered[first] == touched
    threads = np.arange(len(touched))
    for ends in (first, last):  # where several write an element, one of the two is another thread
        meet = np.flatnonzero(found & (order[ends] != threads))
        if meet.size:
            return int(order[ends][meet[0]]), int(meet[0])
    return None


# -------------------- what all threads touch, whatever the data are


def _touched(
    block: ir.Block, values: dict[str, Any], shapes: Mapping[str, tuple[int, ...]], count: int
) -> list[Touched]:
    found: list[Touched] = []
    for s in block:
        match s:
            case ir.Assign(name=name, value=value):
                if (known := _evaluated(value, values)) is None:
                    values.pop(name, None)
                else:
                    values[name] = known
                continue
            case ir.LoadElement() | ir.StoreElement():
                places = [_evaluated(i, values) for i in s.indices]
                shape = shapes[s.array]
                if all(p is not None for p in places) and all(
                    np.all((np.asarray(p) >= 0) & (np.asarray(p) < n))
                    for p, n in zip(places, shape, strict=True)
                ):
                    flat = np.ravel_multi_index(
                        tuple(np.broadcast_to(p, count) for p in places), shape
                    )
                    found.append(Touched(s, flat))
            case _:
                pass
        for inner in statements((s,)):
            for name in writes(inner):
                values.pop(name, None)
    return found


def _evaluated(e: ir.Expression, values: Mapping[str, Any]) -> Any:
    """An integer, or one for each thread; None where it depends on something else."""
    match e:
        case ir.Literal(value=value) if e.type.is_integer:
            return int(value)
        case ir.Local(name=name) if e.type.is_integer:
            return values.get(name)
        case ir.Cast(operand=operand) if e.type.is_integer and operand.type.is_integer:
            return _evaluated(operand, values)
        case ir.Unary(operator="-", operand=operand) if e.type.is_integer:
            inner = _evaluated(operand, values)
            return None if inner is None else -inner
        case ir.Binary(operator=operator, left=left, right=right) if e.type.is_integer:
            a, b = _evaluated(left, values), _evaluated(right, values)
            return None if a is None or b is None else _combined(operator, a, b)
        case _:
            return None


def _combined(operator: ir.BinaryOperator, a: Any, b: Any) -> Any:
    match operator:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "//" | "%" if np.all(np.asarray(b) > 0):
            return a // b if operator == "//" else a % b
        case _:
            return None


# ------------------------------------------------------------ the error


def refusal(kernel: str, indices: tuple[str, ...], met: Meeting, grid: str) -> ArgumentError:
    """Of a call whose threads meet."""
    (one, other), s = met.threads, met.one
    element = f"{s.array}[{', '.join(map(str, met.element))}]"
    other_does = "also writes it," if isinstance(met.other, ir.StoreElement) else "reads it"
    where = (
        "" if met.other is s else f"in line {met.other.location.line}, {print_place(met.other)}, "
    )
    return ArgumentError(
        located(
            f"{kernel}: threads meet at an element that one of them writes",
            s.location,
            found=f"{_named(indices, one)} writes {element}, and {_named(indices, other)} "
            f"{other_does} {where}with {grid}",
            wanted="separate elements for every thread, as nothing says which thread comes first",
            hint="write to another array, or let a condition leave one of the threads out; sums of "
            "many threads are lw.scatter_add",
        )
    )


def _named(indices: tuple[str, ...], thread: Threads) -> str:
    return ", ".join(f"{n} = {i}" for n, i in zip(indices, thread, strict=True))
