"""Elements divided at means until parts are small enough, on all threads.

Parts of many elements are divided level by level, each by one thread; smaller parts are tasks, each
of one thread, which divides it to its end. Neither depends on the number of threads: what a part
becomes follows from its elements alone, in their order.

The first levels have few parts, so that 16 threads end 7 times as early as one. Passes in which all
threads share the elements of a part have no such limit, but they are three a level, of a fraction
of a millisecond each: handing them over costs more than they take.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.runtime import cpu

TASK = 8192  # elements of a part that is left to one thread at most
# an element's share of one division, and of all those of a task, in nanoseconds
HALF, ENDED = 5.0, 30.0

# AXES stands for the number of axes that parts are divided along, ALL for that of the positions: as
# numbers of the text they make loops that are written out.
#
# The elements from `begin` to `end` are divided at the mean along the axis whose border is nearest,
# or in the middle; `cut` gets that axis and the place, and the first one above is returned.
_DIVIDE = """def divide(places, order, spare, begin, end, border, mean, low, high, cut):
    real = places.dtype
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
    cut[0], cut[1] = axis, inf
    middle = (begin + end) // 2
    if axis >= 0:
        left, right, plane = begin, begin, mean[axis]
        for p in range(begin, end):
            element = order[p]
            below = 1 if places[element, axis] < plane else 0
            order[left], spare[right] = element, element  # no branch, which cannot be predicted
            left, right = left + below, right + 1 - below
        middle, cut[1] = left, plane
        for p in range(middle, end):
            order[p] = spare[begin + p - middle]
    return middle


"""

# A level: each of these parts once.
HALVES = f"""{_DIVIDE}def halve_parts_kernel(places, order, spare, ranges, boxes, middles, cuts, start, stop):
    mean, low, high, cut = empty(AXES, float64), empty(AXES, float64), empty(AXES, float64), empty(2, float64)
    border = empty((ALL, 2), float64)
    for part in range(start, stop):
        for a in range(ALL):
            border[a, 0], border[a, 1] = boxes[part, a, 0], boxes[part, a, 1]
        middles[part] = divide(places, order, spare, ranges[part, 0], ranges[part, 1], border, mean, low, high, cut)
        cuts[part, 0], cuts[part, 1] = cut[0], cut[1]
"""

# One row of `todo` is a part: first and last element, and the plane to attach it to. Small parts
# become leaves at once, the larger of two waits: rows never number more than the logarithm of the
# elements. The divisions of a task lie in the rows of its elements, from the first one on.
PARTS = f"""{_DIVIDE}def parts_kernel(places, order, spare, leaf, tasks, boxes, firsts, planes, links, divisions, start, stop):
    todo, borders = empty((128, 3), int64), empty((128, ALL, 2), float64)
    mean, low, high, cut = empty(AXES, float64), empty(AXES, float64), empty(AXES, float64), empty(2, float64)
    border = empty((ALL, 2), float64)
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
            middle = divide(places, order, spare, begin, end, border, mean, low, high, cut)
            axis, plane = int(cut[0]), cut[1]
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
    tasks = large.divide(_Part(0, count, box, (-1, 0)))
    planes, links = np.empty((count, 2)), np.empty((count, 2), np.int64)
    made = np.zeros(len(tasks), np.int64)
    arguments = (
        places, large.order, large.spare, leaf, *_table(tasks), firsts, planes, links, made,
    )  # fmt: skip
    kernel = _kernel(PARTS, "parts", axes, places.shape[1])
    cpu.run_priced(kernel, arguments, len(tasks), ENDED * count / len(tasks))
    return DividedElements(large.order, firsts, *_gathered(large, tasks, made, planes, links))


def _table(parts: list[_Part]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """First and last element of each, and its borders."""
    return np.array([(p.begin, p.end) for p in parts], np.int64), np.array(
        [p.border for p in parts]
    )


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
    begins = np.array([task.begin for task in tasks], np.int64)
    behind = np.repeat(offsets, made)
    rows = np.arange(len(large.planes), len(large.planes) + len(behind)) + np.repeat(
        begins - offsets, made
    )
    ended = links[rows]
    ended += np.where(ended < 0, 0, behind[:, None])
    for task, offset, divisions in zip(tasks, offsets.tolist(), made.tolist(), strict=True):
        if task.hook[0] >= 0:
            large.links[task.hook[0]][task.hook[1]] = offset if divisions else -1 - task.begin
    above = np.array(large.planes, np.float64).reshape(-1, 2)
    hung = np.array(large.links, np.int64).reshape(-1, 2)
    return np.concatenate([above, planes[rows]]), np.concatenate([hung, ended])


class _Large:
    """Parts of more than `most` elements, divided a level at a time."""

    def __init__(self, places: NDArray[Any], axes: int, most: int) -> None:
        self._places, self._most = places, most
        self._halve = _kernel(HALVES, "halve_parts", axes, places.shape[1])
        self.order = np.arange(len(places), dtype=np.int32)
        self.spare = np.empty(len(places), np.int32)
        self.planes: list[tuple[int, float]] = []
        self.links: list[list[int]] = []

    def divide(self, part: _Part) -> list[_Part]:
        """The parts that are left to divide, in the order of their elements."""
        level, small = [part], list[_Part]()
        while True:
            small += [p for p in level if p.end - p.begin <= self._most]
            level = [p for p in level if p.end - p.begin > self._most]
            if not level:
                return sorted(small, key=lambda p: p.begin)
            level = self._halves(level)

    def _halves(self, parts: list[_Part]) -> list[_Part]:
        """Both sides of each part."""
        middles, cuts = np.empty(len(parts), np.int64), np.empty((len(parts), 2))
        arguments = (self._places, self.order, self.spare, *_table(parts), middles, cuts)
        elements = sum(p.end - p.begin for p in parts)
        cpu.run_priced(self._halve, arguments, len(parts), HALF * elements / len(parts))
        halves: list[_Part] = []
        for part, middle, cut in zip(parts, middles.tolist(), cuts.tolist(), strict=True):
            halves += self._hang(part, int(cut[0]), cut[1], middle)
        return halves

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
