"""Boxes around groups of records, such as those of a tree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.live.boxes import FrameBox
from lanewise.live.frame import Frame, FrameHeader, encode
from lanewise.live.quantise import MOST, bound_groups
from lanewise.runtime.memory import module_of, to_host

LANES = 32  # threads of a group
KIND = "boxes"

Level = tuple[NDArray[Any], NDArray[Any]]


@dataclass(frozen=True, slots=True)
class NestedGroups:
    """Groups of records, and groups of these.

    levels: from the one group of all, of each group its first place and the one behind its last,
    among places in an order of the records. order: gives these records, int32, on their device.
    """

    levels: Sequence[Level]
    order: Callable[[], Any]

    def bounds(self, columns: Any, order: Any) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """Of each group (n, 2, 3) its least and greatest position, and its level; without those
        that hold nothing finite. columns: x, y and z, and others; order: a copy.
        """
        cells = np.unique(np.concatenate([np.concatenate(level) for level in self.levels]))
        count, module = len(cells) - 1, module_of(columns)
        made = module.empty((2, 3 * count, LANES), np.float32)
        begin = module.asarray(cells.astype(np.int32))
        bound_groups(columns, order, begin, made[0], made[1], grid=(count, LANES))
        least, most = (a.reshape(count, 3, LANES) for a in to_host(made))
        low, high = least.min(axis=2), most.max(axis=2)
        found: list[NDArray[np.float32]] = []
        depth: list[int] = []
        for number, level in enumerate(self.levels):
            for first, behind in zip(
                *(np.searchsorted(cells, ends) for ends in level), strict=True
            ):
                found.append(np.stack([low[first:behind].min(0), high[first:behind].max(0)]))
                depth.append(number)
        boxes = np.array(found, np.float32).reshape(-1, 2, 3)
        there = (boxes[:, 0] <= boxes[:, 1]).all(axis=1)
        return boxes[there], np.array(depth, np.int32)[there]

    def frame(self, columns: Any, order: Any, box: FrameBox, moment: tuple[int, float]) -> Frame:
        """The boxes, which hold what is in them also where they were rounded."""
        boxes, depth = self.bounds(columns, order)
        rows = np.zeros((len(boxes), 2, 4), np.uint16)
        parts = (boxes - np.array(box.origin)) / np.array(box.extent) * MOST
        parts[:, 0], parts[:, 1] = np.floor(parts[:, 0]), np.ceil(parts[:, 1])
        rows[:, :, :3] = parts.clip(0, MOST)
        rows[:, :, 3] = (depth * (MOST / max(1, len(self.levels) - 1)))[:, None]
        step, time = moment
        header = FrameHeader(
            kind=KIND, components=16, count=len(rows), total=len(rows), step=step, time=time,
            origin=box.origin, extent=box.extent, high=float(len(self.levels) - 1),
        )  # fmt: skip
        return encode(header, rows.tobytes())
