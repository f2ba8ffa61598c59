"""Values of index arithmetic for a sample of threads at once: how often loops run, which branches
are taken, what is accessed.

A sample has the shape (warps, lanes). A value that depends on memory or on an unknown argument is
None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from lanewise.ir import nodes as ir
from lanewise.ir.interpret import INTRINSICS
from lanewise.language.target import WARP

Sample = np.ndarray[Any, Any]
Known = dict[str, Sample | None]
BLOCKS, WARPS, PARTS = 4, 4, 2  # how many of each are looked at, spread evenly
SCATTERED = 64  # blocks of an index space, of which a few in a hundred have an edge
NEIGHBOURS = 8  # of their warps, which lie side by side
GOLDEN = 0.6180339887498949

_BINARY: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "//": np.floor_divide,
    "%": np.mod,
    "&": np.bitwise_and,
    "|": np.bitwise_or,
    "^": np.bitwise_xor,
    "<<": np.left_shift,
    ">>": np.right_shift,
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "and": np.logical_and,
    "or": np.logical_or,
}


# Where arrays lie, which only a call knows: at the beginning of a line, and in the caches.
PLACES: Known = {"phase": np.asarray(0), "read_phase": np.asarray(0), "far": np.asarray(False)}


def sample_threads(threads: int, blocks: int, parts: int, *, in_rows: bool = False) -> Known:
    """The coordinates of some warps of a launch, by the names of the IR: `@thread`, `@block`,
    `@part`. in_rows: the blocks are those of an index space, whose rows begin and end at edges.
    """
    block, part, warp = np.meshgrid(
        _scattered(blocks) if in_rows else _spread(blocks, BLOCKS),
        _spread(parts, PARTS),
        sample_warps(threads, in_rows=in_rows),
        indexing="ij",
    )
    lanes = np.arange(min(threads, WARP), dtype=np.int64)
    column = (-1, 1)
    return {
        "@thread": warp.reshape(column) * WARP + lanes,
        "@block": block.reshape(column),
        "@part": part.reshape(column),
    }


def sample_warps(threads: int, *, in_rows: bool) -> Sample:
    """The warps of a block that are looked at: for an index space side by side, so that what
    several of them read is seen.
    """
    warps = -(-threads // WARP)
    if not in_rows:
        return _spread(warps, WARPS)
    taken = min(warps, NEIGHBOURS)
    return (warps - taken) // 2 + np.arange(taken)


def sample_range(extent: int) -> Sample:
    """Some places of a range, each a warp of one lane."""
    return _spread(extent, BLOCKS * WARPS).reshape(-1, 1)


def _spread(count: int, most: int) -> Sample:
    """At most `most` integers below `count`, each from the middle of an equal share."""
    taken = max(1, min(count, most))
    return np.array([(2 * k + 1) * max(count, 1) // (2 * taken) for k in range(taken)], np.int64)


def _scattered(count: int) -> Sample:
    """Some integers below `count`, one from each equal share, now early and now late in it: at
    equal distances they would all lie at one place of their rows.
    """
    if count <= SCATTERED:
        return np.arange(max(1, count))
    shares = np.arange(SCATTERED)
    return ((shares + (shares + 0.5) * GOLDEN % 1) * count / SCATTERED).astype(np.int64)


def value_of(e: ir.Expression, samples: Known) -> Sample | None:
    """The value of an expression for every thread of the sample; integers do not overflow."""
    with np.errstate(all="ignore"):
        return _value(e, samples)


def _value(e: ir.Expression, samples: Known) -> Sample | None:
    match e:
        case ir.Literal():
            return np.asarray(e.value)
        case ir.Local():
            return samples.get(e.name)
        case ir.Builtin():
            return samples.get(f"@{e.name}", PLACES.get(e.name))
        case ir.Unary():
            x = _value(e.operand, samples)
            return (
                None
                if x is None
                else np.logical_not(x)
                if e.operator == "not"
                else -x
                if e.operator == "-"
                else ~x
            )
        case ir.Binary() | ir.Compare() | ir.Logical():
            left, right = _value(e.left, samples), _value(e.right, samples)
            return None if left is None or right is None else _BINARY[e.operator](left, right)
        case ir.Select():
            parts = [_value(x, samples) for x in (e.condition, e.if_true, e.if_false)]
            return None if any(p is None for p in parts) else np.where(*parts)  # type: ignore[arg-type]
        case ir.Cast():
            x = _value(e.operand, samples)
            return x if x is None or not e.type.is_integer else np.asarray(x).astype(np.int64)
        case ir.Call():
            arguments = [_value(a, samples) for a in e.arguments]
            return (
                None
                if any(a is None for a in arguments)
                else np.asarray(INTRINSICS[e.intrinsic].evaluate(*arguments))
            )
        case _:  # an element of a local array
            return None


def middle(start: Sample, stop: Sample, step: Sample) -> tuple[Sample, Sample]:
    """How often `range(start, stop, step)` runs, and the loop variable half way: exact on average
    for linear bounds.
    """
    step = np.where(step == 0, 1, step)
    trips = np.maximum(0, -(-(stop - start) // step))
    return trips, start + np.maximum(trips - 1, 0) // 2 * step
