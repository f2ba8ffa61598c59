"""Between a box and its parts: rows of arrays, one for each site.

The sites of slabs follow each other, so an array on a mesh has the rows that each part owns where
they are. Those of blocks do not: their rows go to the host, into the order of the box, and in that
order to the parts of the array.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lanewise.language.target import CPU
from lanewise.patterns.sitewise.blocks import Block, Whole
from lanewise.patterns.sitewise.halo import BoxCut
from lanewise.patterns.sitewise.sites import Sites
from lanewise.records.split_array import SplitArray, split_values
from lanewise.runtime.memory import array_module, bring, on, to_host


def block_of(part: Sites) -> Block:
    """Which sites of the box a part has."""
    assert part.block is not None
    return part.block


def own_rows(block: Block, array: Any) -> Any:
    """The rows of the sites that a part owns, of an array with a row for each of its sites. The
    device of the array is the current one.
    """
    own = block.own
    if isinstance(own, slice):
        return array[own]
    row = array.shape[1:]
    return array.reshape(*block.shape, *row)[block.inner].reshape(-1, *row)


def own_column(part: Sites, name: str) -> Any:
    """A leaf of the records that the next step reads, of the sites that a part owns."""
    block = block_of(part)
    with on(part.device):
        if block.is_slab:
            return getattr(part.current[block.own], name)
        return own_rows(block, getattr(part.current, name))


def set_own_column(part: Sites, name: str, values: Any) -> None:
    """Give it values, an array on the device of the part."""
    block = block_of(part)
    with on(part.device):
        if block.is_slab:
            setattr(part.current[block.own], name, values)
            return
        column = array_module(part.device).array(getattr(part.current, name)).reshape(block.shape)
        column[block.inner] = values.reshape(block.owned_shape)
        setattr(part.current, name, column.reshape(-1))


def owned_counts(of: BoxCut) -> tuple[int, ...]:
    """How many sites every part owns."""
    return tuple(int(np.prod(b.owned_shape)) for b in of.blocks)


def row_lengths(of: BoxCut, rows: int) -> tuple[int, ...]:
    """How many rows every part of an array on the mesh has, if a layer of the box has so many."""
    return tuple(len(layers) * rows for layers in of.mesh.rows(of.cut.shape[0]))


def whole_rows(of: BoxCut, own: Sequence[Any]) -> npt.NDArray[Any]:
    """The rows of all sites in the order of the box, on the host of every process, from those that
    the parts of this one own.
    """
    mine = np.concatenate([to_host(rows) for rows in own])
    rows = of.mesh.gather(mine, owned_counts(of))
    return rows if of.in_slabs else into_box(of.blocks, rows)


def into_box(blocks: Sequence[Block], rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Rows that some parts own, one part after the other, where their sites lie in the box; zeros
    elsewhere.
    """
    row, box = rows.shape[1:], tuple(s.box for s in blocks[0].spans)
    whole, first = np.zeros((*box, *row), rows.dtype), 0
    for block in blocks:
        shape = block.owned_shape
        stop = first + int(np.prod(shape))
        whole[block.place] = rows[first:stop].reshape(*shape, *row)
        first = stop
    return whole.reshape(-1, *row)


def rows_on_mesh(of: BoxCut, own: Sequence[Any], rows: int) -> SplitArray:
    """The same as an array on the mesh. rows: of a layer of the box."""
    lengths = row_lengths(of, rows)
    if of.in_slabs:
        return SplitArray(of.mesh, own, lengths)
    return split_values(whole_rows(of, own), of.mesh, lengths)


def rows_of_parts(of: BoxCut, values: Any) -> list[Any]:
    """The rows of each part of this process, with the ghosts, of an array with a row for each site,
    in one axis or in those of the box. They are copies: of views, some parts would see what is
    written later, and ghosts and other parts would not.
    """
    shape = of.cut.shape
    if isinstance(values, SplitArray):
        values = values.numpy()
    if not of.in_slabs:
        rows = bring(values, CPU.name)
        row = rows.shape[len(shape) if rows.shape[: len(shape)] == shape else 1 :]
        whole = rows.reshape(*shape, *row)
        places = zip(of.own, of.mesh.devices, strict=True)
        return [bring(whole[b.numbers].reshape(-1, *row), device) for b, device in places]
    rows = len(values) // shape[0]
    pieces: list[Any] = []
    for block, device in zip(of.own, of.mesh.devices, strict=True):
        span = block.spans[0]
        first, stop = span.owned.start - span.below, span.owned.stop + span.above
        spans = [(max(first, 0), min(stop, span.box))]
        if first < 0:
            spans.insert(0, (first + span.box, span.box))
        if stop > span.box:
            spans.append((0, stop - span.box))
        each = [bring(values[a * rows : b * rows], device) for a, b in spans]
        pieces.append(array_module(device).concatenate(each))
    return pieces


def own_rows_of_parts(of: BoxCut, values: Any) -> list[Any]:
    """The rows of the sites that each part of this process owns, on its device, of an array with a
    row for each site.
    """
    places = zip(of.own, of.mesh.devices, strict=True)
    if of.in_slabs:
        plane = len(values) // of.cut.shape[0]
        owned = ((b.spans[0].owned, device) for b, device in places)
        return [bring(values[n.start * plane : n.stop * plane], device) for n, device in owned]
    whole = to_host(values).reshape(of.cut.shape)
    return [bring(whole[b.place].reshape(-1), device) for b, device in places]


def sites_in_order(of: BoxCut, sites: Sequence[Any]) -> Whole | None:
    """The numbers in the box of some sites of all parts, one part after the other, from those of
    this process; None where the parts are slabs, whose sites lie in the order of the box.
    """
    if of.in_slabs:
        return None
    pairs = zip(of.own, sites, strict=True)
    mine = [block.in_box(to_host(some).astype(np.int64)) for block, some in pairs]
    return of.mesh.gather(np.concatenate(mine), of.mesh.lengths_of_all(mine))
