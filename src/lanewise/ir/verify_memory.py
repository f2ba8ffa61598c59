"""Statements that touch memory, and those of several threads: what is wrong with them."""

from __future__ import annotations

from lanewise.ir import nodes as ir
from lanewise.ir.traverse import expressions, loads, statements, stores
from lanewise.ir.warps import divided_around
from lanewise.language.target import WARP
from lanewise.language.types import BOOL, F32, F64, I64, Scalar


def memory_problem(s: ir.Statement, kernel: ir.Kernel, parallel: int) -> str:
    """What is wrong with a statement that only kernels have; "" for a sound one. parallel: loops
    around it.
    """
    match s:
        case ir.LoadRecord() | ir.StoreRecord():
            return _access(s, kernel)
        case ir.Load() | ir.Store():
            return _move(s, kernel)
        case ir.LoadElement() | ir.StoreElement():
            return _element(s, kernel)
        case ir.ScatterElement() | ir.Scatter():
            return _scatter(s, kernel)
        case ir.PrefetchElement() | ir.Prefetch():
            return _prefetch(s, kernel)
        case ir.CopyAsync():
            return _copy(s, kernel)
        case ir.CopyElement():
            return _copy_element(s, kernel)
        case ir.CopyLanes():
            return _copy_lanes(s, kernel)
        case ir.Barrier() | ir.CommitAsync() | ir.WaitAsync():
            return "" if kernel.grid is not None or parallel else "a barrier without threads"
        case _:
            if isinstance(s, ir.Cooperation):
                return _cooperate(s, kernel, parallel)
            return f"{type(s).__name__} is not expected"


def type_in(kernel: ir.Kernel, name: str, leaf: str) -> Scalar:
    """The type of a leaf of an array, or with "" of a buffer or of an array's only leaf."""
    for b in kernel.buffers if not leaf else ():
        if b.name == name:
            return b.type
    return next(x.type for x in kernel.array(name).leaves if leaf in ("", x.name))


def is_written(s: ir.LoadRecord | ir.Load, kernel: ir.Kernel) -> bool:
    """Whether the kernel writes what this statement reads."""
    if isinstance(s, ir.LoadRecord):
        return kernel.array(s.array).written
    return next(b.written for b in kernel.buffers if b.name == s.buffer)


def _cooperate(s: ir.Cooperation, kernel: ir.Kernel, parallel: int) -> str:
    """What the threads of a warp do together."""
    # the lanes of a SIMD register
    hosted = isinstance(s, ir.OfLanes) and parallel > 1
    if not hosted and (kernel.grid is None or kernel.grid.threads % WARP):
        return f"{type(s).__name__} without blocks of whole warps"
    arrays = {a.name for a in kernel.arrays if a.written}
    arrays |= {b.name for b in kernel.buffers if b.written}
    if unknown := [n for n in (*loads(s), *stores(s)) if n not in arrays]:
        return f"no written array {unknown[0]}"
    match s:
        case ir.Least() if not s.value.type.is_float:
            return f"the least of {s.value.type}"
        case ir.Least() if other := next((x for x in s.others if x.type != s.value.type), None):
            return f"the least of {s.value.type} and {other.type}"
        case ir.Least() if divided := divided_around(kernel.body, s):
            return f"not all threads of a warp come here: it depends on {divided[0]}"
        case ir.Shuffle():
            groups = (2, 4, 8, 16, 32, 64) if hosted else (2, 4, 8, 16, 32)
            least = 0 if hosted else -s.group
            fits = s.group in groups and least <= s.distance < s.group
            return "" if fits else f"a distance of {s.distance} in groups of {s.group}"
        case _:
            return ""


def _access(s: ir.LoadRecord | ir.StoreRecord, kernel: ir.Kernel) -> str:
    array = next((a for a in kernel.arrays if a.name == s.array), None)
    if array is None or not s.index.type.is_integer:
        return f"no array {s.array}" if array is None else f"an index of type {s.index.type}"
    types = {leaf.name: leaf.type for leaf in array.leaves}
    leaves = [leaf for leaf, _ in (s.reads if isinstance(s, ir.LoadRecord) else s.writes)]
    if unknown := [leaf for leaf in leaves if leaf not in types]:
        return f"{array.name} has no leaf {unknown[0]}"
    each = len(leaves) // s.across
    if s.across > 1 and leaves != leaves[:each] * s.across:
        return f"the leaves are not those of {s.across} records, one after the other"
    if isinstance(s, ir.StoreRecord) and (
        not array.written or any(types[leaf] != value.type for leaf, value in s.writes)
    ):
        return f"the writes do not fit {array.name}"
    return ""


def _element(s: ir.LoadElement | ir.StoreElement, kernel: ir.Kernel) -> str:
    """An access to an array with a shape: an index for each dimension, and the type of its
    elements.
    """
    array = next((a for a in kernel.arrays if a.name == s.array), None)
    if array is None or not array.shape:
        return f"no array {s.array} that has a shape"
    if len(s.indices) != len(array.shape) or not all(i.type.is_integer for i in s.indices):
        return (
            f"{array.name} needs {len(array.shape)} integers, found "
            f"{[str(i.type) for i in s.indices]}"
        )
    kind = array.leaves[0].type
    across = 1 + len(s.more)
    last = array.shape[-1]
    if across not in (1, 2, 4) or (
        last % across if isinstance(last, int) else array.multiple % across
    ):
        return f"{across} elements at once do not fit the rows of {array.name}"
    if isinstance(s, ir.StoreElement) and (
        not array.written or any(v.type != kind for v in s.values)
    ):
        return f"{s.value.type} does not fit {array.name}, or the kernel does not write it"
    return ""


def _prefetch(s: ir.PrefetchElement | ir.Prefetch, kernel: ir.Kernel) -> str:
    """Global memory, and an index for each dimension."""
    if not all(i.type.is_integer for i in expressions(s)):
        return "a place that is not an integer"
    if isinstance(s, ir.Prefetch):
        if not any(b.name == s.buffer and b.space == "global" for b in kernel.buffers):
            return f"no buffer {s.buffer} in global memory"
        return ""
    array = next((a for a in kernel.arrays if a.name == s.array and a.space == "global"), None)
    if array is None or len(array.shape) != len(s.indices):
        return (
            f"no array {s.array} in global memory with {len(s.indices)} "
            f"dimension{'s' if len(s.indices) != 1 else ''}"
        )
    return ""


def _scatter(s: ir.ScatterElement | ir.Scatter, kernel: ir.Kernel) -> str:
    """Integers are added, numbers compared; nothing but scatters of this operation touches
    the array.
    """
    name = s.array if isinstance(s, ir.ScatterElement) else s.buffer
    indices = s.indices if isinstance(s, ir.ScatterElement) else (s.index,)
    places: dict[str, tuple[Scalar, bool, int]] = {}
    if isinstance(s, ir.ScatterElement):
        for a in kernel.arrays:
            places[a.name] = (a.leaves[0].type, a.written and a.space == "global", len(a.shape))
    else:
        for b in kernel.buffers:
            places[b.name] = (b.type, b.written and b.space == "global" and b.lanes == 1, 1)
    kind, written, rank = places.get(name, (s.value.type, False, 1))
    if not written or len(indices) != rank or not all(i.type.is_integer for i in indices):
        return f"no written array {name} in global memory with {len(indices)} dimensions"
    if s.operation == "sum":  # the words of exact sums replace the array
        fits = kind == I64 and s.value.type in (F32, F64)
    else:
        fits = s.value.type == kind != BOOL
    if not fits:
        return f"{s.operation} of {s.value.type} does not fit {name} of {kind}"
    if any(
        name in (*loads(x), *stores(x)) and getattr(x, "operation", "") != s.operation
        for x in statements(kernel.body)
    ):
        return f"{name} is also touched in another way"
    return ""


def _copy(s: ir.CopyAsync, kernel: ir.Kernel) -> str:
    to, source = (
        next((a for a in kernel.arrays if a.name == n), None) for n in (s.array, s.source)
    )
    if (
        to is None
        or source is None
        or not (s.index.type.is_integer and s.source_index.type.is_integer)
    ):
        return "no such arrays, or not an integer as an index"
    if (to.space, source.space) != ("shared", "global"):
        return f"a copy from {source.space} to {to.space} memory"
    kinds, others = ({x.name: x.type for x in a.leaves} for a in (to, source))
    for leaf in s.leaves:
        if leaf not in kinds or kinds[leaf] != others.get(leaf) or kinds[leaf].size < 4:
            return f"{leaf} of {source.name} does not fit {to.name}"
    return ""


def _copy_element(s: ir.CopyElement, kernel: ir.Kernel) -> str:
    to, source = (
        next((a for a in kernel.arrays if a.name == n), None) for n in (s.array, s.source)
    )
    if to is None or source is None or not to.shape or not source.shape:
        return "no such arrays that have a shape"
    if (to.space, source.space) != ("shared", "global"):
        return f"a copy from {source.space} to {to.space} memory"
    for a, indices in ((to, s.indices), (source, s.source_indices)):
        if len(indices) != len(a.shape) or not all(i.type.is_integer for i in indices):
            return f"{a.name} needs {len(a.shape)} integers, found {[str(i.type) for i in indices]}"
        last = a.shape[-1]
        if last % s.across if isinstance(last, int) else a.multiple % s.across:
            return f"{s.across} elements at once do not fit the rows of {a.name}"
    kind = to.leaves[0].type
    if kind != source.leaves[0].type or kind.size * s.across not in (4, 8, 16):
        return f"a copy of {s.across} {source.leaves[0].type} to {kind}, not of 4, 8 or 16 bytes"
    if s.there is not None and s.there.type != BOOL:
        return f"a condition of type {s.there.type}"
    return ""


def _copy_lanes(s: ir.CopyLanes, kernel: ir.Kernel) -> str:
    to, source = (
        next((b for b in kernel.buffers if b.name == n), None) for n in (s.buffer, s.source)
    )
    if (
        to is None
        or source is None
        or not (s.index.type.is_integer and s.source_index.type.is_integer)
    ):
        return "no such buffers, or not an integer as an index"
    if (to.space, source.space) != ("shared", "global") or to.type != source.type:
        return f"a copy of {source.type} from {source.space} to {to.type} in {to.space} memory"
    for buffer, lane in ((to, s.lane), (source, s.source_lane)):
        if lane % s.lanes or lane + s.lanes > buffer.lanes:
            return f"{s.lanes} lanes from {lane} on do not fit {buffer.name}"
    if s.lanes * to.type.size not in (4, 8, 16):
        return f"a copy of {s.lanes * to.type.size} bytes"
    return ""


def _move(s: ir.Load | ir.Store, kernel: ir.Kernel) -> str:
    buffer = next((b for b in kernel.buffers if b.name == s.buffer), None)
    if buffer is None or not s.index.type.is_integer:
        return f"no buffer {s.buffer}" if buffer is None else f"an index of type {s.index.type}"
    if isinstance(s, ir.Load):
        if len(s.names) != buffer.lanes:
            return f"{buffer.name} has {buffer.lanes} lanes"
    elif (
        not buffer.written
        or len(s.values) != buffer.lanes
        or any(v.type != buffer.type for v in s.values)
    ):
        return f"the values do not fit {buffer.name}"
    return ""
