"""Elements divided at means until parts are small enough, on all threads.

Parts of many elements are divided level by level: each pass over their elements goes in chunks of a
fixed length, whichever part they are of. Smaller parts are tasks, each of one thread, which divides
it to its end. Neither depends on the number of threads: chunks, tasks and the order of every sum
follow from the elements alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.runtime import cpu

CHUNK = 4096  # elements of a pass that one thread goes through at a time
TASK = 8192  # elements of a part that is left to one thread at most

# AXES stands for the number of axes that parts are divided along, ALL for that of the positions: as
# numbers of the text they make loops that are written out.
#
# One row of `todo` is a part: first and last element, and the plane to attach it to. Small parts
# become leaves at once, the larger of two waits: rows never number more than the logarithm of the
# elements. The divisions of a task lie in the rows of its elements, from the first one on.
PARTS = """def parts_kernel(places, order, spare, leaf, tasks, boxes, firsts, planes, links, divisions, start, stop):
    todo, borders = empty((128, 3), int64), empty((128, ALL, 2), float64)
    border, mean, low, high = empty((ALL, 2), float64), empty(AXES, float64), empty(AXES, float64), empty(AXES, float64)
    real = places.dtype
    for task in range(start, stop):
        base = tasks[task, 0]
        todo[0, 0], todo[0, 1], todo[0, 2] = base, tasks[task, 1], -1
        for a in range(ALL):
            borders[0, a, 0], borders[0, a, 1] = boxes[task, a, 0], boxes[task, a, 1]
        waiting, made = 1, 0
        while waiting:
            waiting -= 1
            begin, end, hook = todo[waiting, 0], todo[waiting, 1], todo[waiting, 2]
            for a in range(ALL):
                border[a, 0], border[a, 1] = borders[waiting, a, 0], borders[waiting, a, 1]
            if end - begin <= leaf:
                firsts[begin] = 1
                if hook >= 0:
                    links[base + hook // 2, hook % 2] = -1 - begin
                continue
            for a in range(AXES):
                mean[a], low[a], high[a] = 0.0, inf, -inf
            for p in range(begin, end):
                for a in range(AXES):
                    x = places[order[p], a]
                    mean[a] += x
                    low[a], high[a] = min(low[a], x), max(high[a], x)
            axis, nearest = -1, inf
            for a in range(AXES):
                mean[a] = real(mean[a] / (end - begin))  # a place of the positions' precision: walks compare with it exactly
                distance = min(mean[a] - border[a, 0], border[a, 1] - mean[a])
                if low[a] < mean[a] and mean[a] <= high[a] and (axis < 0 or distance < nearest):
                    axis, nearest = a, distance
            middle, plane = (begin + end) // 2, inf
            if axis >= 0:
                left, right, plane = begin, begin, mean[axis]
                for p in range(begin, end):
                    element = order[p]
                    below = 1 if places[element, axis] < plane else 0
                    order[left], spare[right] = element, element  # no branch: nobody guesses it
                    left, right = left + below, right + 1 - below
                middle = left
                for p in range(middle, end):
                    order[p] = spare[begin + p - middle]
            if hook >= 0:
                links[base + hook // 2, hook % 2] = made
            planes[base + made, 0], planes[base + made, 1] = max(axis, 0), plane
            larger = 0 if middle - begin > end - middle else 1
            for turn in range(2):
                half = larger if turn == 0 else 1 - larger
                todo[waiting, 0] = begin if half == 0 else middle
                todo[waiting, 1] = middle if half == 0 else end
                todo[waiting, 2] = 2 * made + half
                for a in range(ALL):
                    borders[waiting, a, 0], borders[waiting, a, 1] = border[a, 0], border[a, 1]
                if axis >= 0:
                    borders[waiting, axis, 1 - half] = plane
                waiting += 1
            made += 1
        divisions[task] = made
"""

# Chunks are rows (first, last) of elements of one part each.
SURVEY = """def survey_chunks_kernel(places, order, chunks, sums, lows, highs, begin, end):
    total, low, high = empty(AXES, float64), empty(AXES, float64), empty(AXES, float64)
    for chunk in range(begin, end):
        for a in range(AXES):
            total[a], low[a], high[a] = 0.0, inf, -inf
        for p in range(chunks[chunk, 0], chunks[chunk, 1]):
            for a in range(AXES):
                x = places[order[p], a]
                total[a] += x
                low[a], high[a] = min(low[a], x), max(high[a], x)
        for a in range(AXES):
            sums[chunk, a], lows[chunk, a], highs[chunk, a] = total[a], low[a], high[a]
"""

COUNT = """def count_below_kernel(places, order, chunks, axes, planes, below, begin, end):
    for chunk in range(begin, end):
        found, axis, plane = 0, axes[chunk], planes[chunk]
        for p in range(chunks[chunk, 0], chunks[chunk, 1]):
            found += 1 if places[order[p], axis] < plane else 0
        below[chunk] = found
"""

SCATTER = """def scatter_chunks_kernel(places, order, other, chunks, axes, planes, to, begin, end):
    for chunk in range(begin, end):
        left, right, axis, plane = to[chunk, 0], to[chunk, 1], axes[chunk], planes[chunk]
        if axis < 0:
            for p in range(chunks[chunk, 0], chunks[chunk, 1]):
                other[p] = order[p]
        else:
            for p in range(chunks[chunk, 0], chunks[chunk, 1]):
                element = order[p]
                below = 1 if places[element, axis] < plane else 0
                other[left if below else right] = element
                left, right = left + below, right + 1 - below
"""


@dataclass(slots=True)
class _Part:
    """Elements of one part, its borders (axes, 2), and the division and the side it depends on."""

    begin: int
    end: int
    border: NDArray[np.float64]
    hook: tuple[int, int]


@dataclass(frozen=True, slots=True)
class DividedElements:
    """order: the caller's indices; firsts: whether a leaf begins at a place; planes: (divisions, 2)
    axis and place; links: (divisions, 2) the divisions below and above, or -1 - the first place of
    a leaf. A division comes before those that depend on it.
    """

    order: NDArray[np.int32]
    firsts: NDArray[np.bool_]
    planes: NDArray[np.float64]
    links: NDArray[np.int64]


def divide(places: NDArray[Any], leaf: int, axes: int, box: NDArray[np.float64]) -> DividedElements:
    """Divide places, shape (count, all axes), along the first `axes` of them into parts of at most
    `leaf`. box: (all axes, 2), the borders of the world.
    """
    count = len(places)
    firsts = np.zeros(count, np.bool_)
    large = _Large(places, axes, max(leaf, TASK))
    order, tasks = large.divide(_Part(0, count, box, (-1, 0)))
    planes, links = np.empty((count, 2)), np.empty((count, 2), np.int64)
    ranges = np.array([(t.begin, t.end) for t in tasks], np.int64)
    boxes = np.array([t.border for t in tasks])
    made = np.zeros(len(tasks), np.int64)
    arguments = (places, order, large.spare, leaf, ranges, boxes, firsts, planes, links, made)
    cpu.run_range(_kernel(PARTS, "parts", axes, places.shape[1]), arguments, len(tasks), 1)
    return DividedElements(order, firsts, *_gathered(large, tasks, made, planes, links))


def _kernel(text: str, name: str, axes: int, all_axes: int) -> cpu.RangeKernel:
    return cpu.own_kernel(text.replace("AXES", str(axes)).replace("ALL", str(all_axes)), name)


def _gathered(
    large: _Large,
    tasks: list[_Part],
    made: NDArray[np.int64],
    planes: NDArray[np.float64],
    links: NDArray[np.int64],
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The divisions of large parts, then those of every task."""
    offsets = len(large.planes) + np.cumsum(made) - made
    total = len(large.planes) + int(made.sum())
    all_planes, all_links = np.empty((total, 2)), np.empty((total, 2), np.int64)
    if large.planes:
        all_planes[: len(large.planes)] = large.planes
        all_links[: len(large.planes)] = large.links
    for task, offset, divisions in zip(tasks, offsets.tolist(), made.tolist(), strict=True):
        here, there = slice(task.begin, task.begin + divisions), slice(offset, offset + divisions)
        all_planes[there] = planes[here]
        all_links[there] = np.where(links[here] < 0, links[here], links[here] + offset)
        if task.hook[0] >= 0:
            all_links[task.hook] = offset if divisions else -1 - task.begin
    return all_planes, all_links


class _Large:
    """Parts of more than `most` elements, divided a level at a time."""

    def __init__(self, places: NDArray[Any], axes: int, most: int) -> None:
        self._places, self._axes, self._most = places, axes, most
        self._order = np.arange(len(places), dtype=np.int32)
        self.spare = np.empty(len(places), np.int32)
        self.planes: list[tuple[int, float]] = []
        self.links: list[list[int]] = []

    def divide(self, part: _Part) -> tuple[NDArray[np.int32], list[_Part]]:
        """The order so far, and the parts that are left to divide."""
        level, small = [part], list[_Part]()
        while True:
            small += [p for p in level if p.end - p.begin <= self._most]
            level = [p for p in level if p.end - p.begin > self._most]
            if not level:
                return self._order, sorted(small, key=lambda p: p.begin)
            level = self._halves(level)

    def _halves(self, parts: list[_Part]) -> list[_Part]:
        """Both sides of each part."""
        chunks, owner = _chunks(parts)
        planes = self._planes(parts, chunks, owner)
        along = np.array([axis for axis, _ in planes], np.int64)[owner]
        at = np.array([place for _, place in planes])[owner].astype(self._places.dtype)
        below = np.zeros(len(chunks), np.int64)
        count = cpu.own_kernel(COUNT, "count_below")
        places, axes = self._places, np.maximum(along, 0)
        cpu.run_range(count, (places, self._order, chunks, axes, at, below), len(chunks), 1)
        to = np.empty((len(chunks), 2), np.int64)
        halves: list[_Part] = []
        for number, (part, (axis, plane)) in enumerate(zip(parts, planes, strict=True)):
            mine = np.flatnonzero(owner == number)
            middle = self._places_of(part, chunks[mine], below[mine], to, mine, axis)
            halves += self._hang(part, axis, plane, middle)
        scatter = cpu.own_kernel(SCATTER, "scatter_chunks")
        # parts that are done stay as they are
        self.spare[:] = self._order
        arguments = (places, self._order, self.spare, chunks, along, at, to)
        cpu.run_range(scatter, arguments, len(chunks), 1)
        self._order, self.spare = self.spare, self._order
        return halves

    def _planes(
        self, parts: list[_Part], chunks: NDArray[np.int64], owner: NDArray[np.int64]
    ) -> list[tuple[int, float]]:
        """Axis and place of the plane of each part; axis -1 where no mean divides it."""
        shape = (len(chunks), self._axes)
        sums, lows, highs = np.empty(shape), np.empty(shape), np.empty(shape)
        survey = _kernel(SURVEY, "survey_chunks", self._axes, self._places.shape[1])
        arguments = (self._places, self._order, chunks, sums, lows, highs)
        cpu.run_range(survey, arguments, len(chunks), 1)
        real, found = self._places.dtype.type, list[tuple[int, float]]()
        for number, part in enumerate(parts):
            mine = owner == number
            # one after the other: a sum whose order follows from the chunks alone
            total = np.add.accumulate(sums[mine])[-1]
            low, high = lows[mine].min(axis=0), highs[mine].max(axis=0)
            axis, nearest, plane = -1, np.inf, np.inf
            for a in range(self._axes):
                mean = float(real(total[a] / (part.end - part.begin)))
                distance = min(mean - part.border[a, 0], part.border[a, 1] - mean)
                if low[a] < mean <= high[a] and (axis < 0 or distance < nearest):
                    axis, nearest, plane = a, distance, mean
            found.append((axis, plane))
        return found

    def _places_of(
        self,
        part: _Part,
        chunks: NDArray[np.int64],
        below: NDArray[np.int64],
        to: NDArray[np.int64],
        mine: NDArray[np.int64],
        axis: int,
    ) -> int:
        """Where the elements of each chunk go, in their order; and the first one above the
        plane.
        """
        if axis < 0:
            to[mine, 0] = to[mine, 1] = chunks[:, 0]
            return (part.begin + part.end) // 2
        lengths = chunks[:, 1] - chunks[:, 0]
        middle = part.begin + int(below.sum())
        before = np.cumsum(below) - below
        to[mine, 0] = part.begin + before
        to[mine, 1] = middle + np.cumsum(lengths) - lengths - before
        return middle

    def _hang(self, part: _Part, axis: int, plane: float, middle: int) -> list[_Part]:
        """A division of two parts."""
        division = len(self.planes)
        self.planes.append((max(axis, 0), plane))
        self.links.append([0, 0])
        if part.hook[0] >= 0:
            self.links[part.hook[0]][part.hook[1]] = division
        halves: list[_Part] = []
        for half, (begin, end) in enumerate(((part.begin, middle), (middle, part.end))):
            border = part.border.copy()
            if axis >= 0:
                border[axis, 1 - half] = plane
            halves.append(_Part(begin, end, border, (division, half)))
        return halves


def _chunks(parts: list[_Part]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First and last element of each chunk, shape (chunks, 2), and the number of its part."""
    rows = [
        (begin, min(begin + CHUNK, part.end), number)
        for number, part in enumerate(parts)
        for begin in range(part.begin, part.end, CHUNK)
    ]
    table = np.array(rows, np.int64)
    return np.ascontiguousarray(table[:, :2]), table[:, 2]
