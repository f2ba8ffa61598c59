"""What the parameters of a kernel are in a made-up call, and how large its arrays are.

A user names sizes by the names of a call's arguments (`--shape a=512x512`, `--shape
grid=512x512`); what is not named is made up and said to be:

    elements, records   `count` of them
    an array            the shape that was given of arrays of as many dimensions, if it is one; else
                        every dimension is of one length: the longest that was given, or that with
                        which the array of the most dimensions has about `count` elements
    a grid              each index runs over the shortest dimension that it indexes by itself
    lists               32 items each: 16 lists next to records of a dense axis, `count` without
    a row of an item    16 values
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import assert_never

from lanewise.analysis.bounds import sites
from lanewise.frontend.function import Signature
from lanewise.ir import nodes as ir
from lanewise.language import types as t
from lanewise.language.array_types import ArrayType
from lanewise.language.record import Record
from lanewise.patterns.elementwise.kernel import Elementwise
from lanewise.patterns.pairwise.kernel import Pairwise
from lanewise.patterns.segmentwise.kernel import Segmentwise
from lanewise.patterns.threadwise.build import one_thread
from lanewise.patterns.threadwise.kernel import Threadwise
from lanewise.support.attributes import near
from lanewise.support.errors import InputError

Kernel = Pairwise | Elementwise | Segmentwise | Threadwise
Shape = tuple[int, ...]
GRID = "grid"  # the argument of a call that says how many values each index has
LISTS, ITEMS, ROW = 16, 32, 16  # where the number is not given


@dataclass(frozen=True, slots=True)
class Roles:
    """What the parameters of a kernel are in a call: records, arrays of values, uniform arguments,
    arrays with indices, lists of items, rows of values of an item, indices of threads.
    """

    records: dict[str, Record]
    arrays: dict[str, t.ValueType]
    uniforms: dict[str, t.ValueType]
    indexed: dict[str, ArrayType] = field(default_factory=dict[str, ArrayType])
    lists: dict[str, Record] = field(default_factory=dict[str, Record])
    rows: dict[str, t.ValueType] = field(default_factory=dict[str, t.ValueType])
    indices: tuple[str, ...] = ()

    @property
    def sized(self) -> tuple[str, ...]:
        """The arguments that have sizes."""
        parts = (self.records, self.arrays, self.indexed, self.lists, self.rows)
        return (*(n for part in parts for n in part), *((GRID,) if self.indices else ()))


@dataclass(frozen=True, slots=True)
class Shapes:
    """The sizes of the arrays of a call by parameter, and those of its grid; of lists how many
    there are of each level, and how many items each has. invented: what was not requested.
    """

    sizes: Mapping[str, Shape]
    invented: tuple[str, ...] = ()

    @property
    def made_up(self) -> dict[str, Shape]:
        """The sizes that were not requested."""
        return {n: self.sizes[n] for n in self.invented}


def sample_roles(
    kernel: Kernel,
    values: Mapping[str, float] | None = None,
    shapes: Mapping[str, Shape] | None = None,
) -> Roles:
    """The parameters of a kernel by role; what is named in `values` is uniform, what is named in
    `shapes` an array.
    """
    chosen, asked, signature = dict(values or {}), dict(shapes or {}), kernel.signature
    if both := [n for n in chosen if n in asked]:
        raise InputError(
            f"{kernel.__name__}: {both[0]!r} has a value and a shape; wanted one of them: a value "
            "for all, or an array"
        )
    records = {n: k for n, k in signature.parameters.items() if isinstance(k, Record)}
    others: dict[str, t.ValueType] = {
        n: k for n, k in signature.parameters.items() if not isinstance(k, Record)
    }
    match kernel:
        case Pairwise():
            return Roles(records, {}, others, signature.arrays)
        case Elementwise():
            arrays = _element_arrays(kernel, records, others, chosen, asked)
            uniforms = {n: k for n, k in others.items() if n not in arrays}
            return Roles(records, arrays, uniforms, signature.arrays)
        case Segmentwise():
            item = list(records)[-1]
            lists = {item: records.pop(item)}
            return Roles(records, {}, others, {}, lists, signature.rows)
        case Threadwise():
            return Roles({}, {}, others, signature.arrays, indices=signature.indices)
        case _:
            assert_never(kernel)


def _element_arrays(
    kernel: Elementwise,
    records: Mapping[str, Record],
    others: Mapping[str, t.ValueType],
    chosen: Mapping[str, float],
    asked: Mapping[str, Shape],
) -> dict[str, t.ValueType]:
    """The values that an elementwise kernel has one an element of."""
    open_names = [n for n in others if n not in chosen]
    arrays = {n: others[n] for n in open_names if n in asked or isinstance(others[n], t.Vector)}
    if not records and not arrays:
        arrays = {n: others[n] for n in open_names[:1]}
    if not records and not arrays:
        raise InputError(
            f"{kernel.__name__}: a value was given for every parameter; at least one is an array"
        )
    return arrays


def sample_shapes(
    kernel: Kernel, roles: Roles, count: int, asked: Mapping[str, Shape] | None = None
) -> Shapes:
    """The sizes of a made-up call of about `count` elements.

    Raises `InputError` for a name that has no sizes, `CompileError` (with the parameter's place)
    for too few or too many of them, and for an index of which nothing says how far it runs.
    """
    if count < 1:
        raise InputError(f"{count} elements requested; wanted at least 1")
    given = dict(asked or {})
    _check_names(kernel, roles, given)
    _check_sizes(kernel.signature, roles, given)
    elements = [*roles.records, *roles.arrays]
    whole = next((given[n] for n in elements if n in given), (count,))
    pairs = isinstance(kernel, Pairwise)
    sizes = {n: given.get(n, (count,) if pairs else whole) for n in elements}
    indexed = shapes_of_arrays(roles.indexed, given, count)
    lists = {n: given.get(n, (LISTS if roles.records else count, ITEMS)) for n in roles.lists}
    rows = {n: given.get(n, (ROW,)) for n in roles.rows}
    sizes |= indexed | lists | rows
    made_up = [n for n in (*indexed, *lists, *rows) if n not in given]
    if isinstance(kernel, Threadwise):
        sizes[GRID] = given[GRID] if GRID in given else grid_of(kernel, sizes)
        made_up += [] if GRID in given else [GRID]
    return Shapes(sizes, tuple(made_up))


def shapes_of_arrays(
    kinds: Mapping[str, ArrayType], given: Mapping[str, Shape], count: int
) -> dict[str, Shape]:
    """The shapes of arrays that are read or written by index. given: of some of them."""
    alike: dict[int, set[Shape]] = {}
    for n in kinds:
        if n in given:
            alike.setdefault(len(given[n]), set()).add(given[n])
    most = max((k.rank for k in kinds.values()), default=1)
    known = [n for shapes in alike.values() for shape in shapes for n in shape]
    side = max(known, default=_root(count, most))
    agreed = {rank: next(iter(shapes)) for rank, shapes in alike.items() if len(shapes) == 1}
    return {n: given.get(n, agreed.get(k.rank, (side,) * k.rank)) for n, k in kinds.items()}


def _root(count: int, rank: int) -> int:
    """The side of a square or a cube of about so many elements."""
    return max(1, round(count ** (1 / rank)))


def grid_of(kernel: Threadwise, shapes: Mapping[str, Shape]) -> Shape:
    """A grid whose indices stay inside of arrays with these shapes, as far as they are indices by
    themselves.

    Raises `CompileError` for an index that is nowhere one by itself.
    """
    signature = kernel.signature
    reached: dict[str, list[int]] = {i: [] for i in signature.indices}
    for access in sites(one_thread(kernel.lowered.function)):
        lengths = shapes.get(access.array, ())  # none of an array of the thread's own
        for place, length in zip(access.indices, lengths, strict=False):
            if isinstance(place, ir.Local) and place.name in reached:
                reached[place.name].append(length)
    for name, found in reached.items():
        if not found:
            raise signature.source.error(
                f"nothing says how many values {name!r} has",
                _parameter(signature, name),
                found=f"no element of an array whose index is {name} itself, and no grid",
                wanted=f"--shape {GRID}={_example(len(reached))}, with the sizes of a call's grid=",
            )
    return tuple(min(found) for found in reached.values())


# ------------------------------------------------------------ what was requested


def _check_names(kernel: Kernel, roles: Roles, given: Mapping[str, Shape]) -> None:
    for name in given:
        if name in roles.sized:
            continue
        if name in roles.uniforms:
            raise InputError(
                f"{kernel.__name__}: {name!r} is one {roles.uniforms[name]} for all, which --set "
                f"{name}=VALUE gives; it has no shape"
            )
        has = ", ".join(roles.sized) or "no array"
        raise InputError(
            f"{kernel.__name__} has no array {name!r} to give a shape"
            f"{near(name, roles.sized) or ';'} it has {has}"
        )


def _check_sizes(signature: Signature, roles: Roles, given: Mapping[str, Shape]) -> None:
    """How many sizes each argument has."""
    for name, shape in given.items():
        wanted = _wanted(roles, name)
        if wanted.fits(len(shape)):
            continue
        node = signature.source.tree.args.args[0] if name == GRID else _parameter(signature, name)
        raise signature.source.error(
            f"{name!r} {wanted.what}",
            node,
            found=f"--shape {name}={text_of(shape)}",
            wanted=f"{wanted.sizes}: --shape {name}={wanted.example}",
        )


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the sizes of an argument are: what it is, how many there are, and an example."""

    what: str
    sizes: str
    example: str
    fits: Callable[[int], bool]


def _wanted(roles: Roles, name: str) -> Wanted:
    if name == GRID and roles.indices:
        names = ", ".join(roles.indices)
        return _dimensions(f"says how many values {names} have", len(roles.indices))
    if name in roles.indexed:
        return wanted_of_array(roles.indexed[name])
    if name in roles.lists:
        return Wanted(
            f"is lw.ragged(...) of {roles.lists[name].name}",
            "how many lists each level has, and how many items each of them",
            "1000x90",
            lambda sizes: sizes >= 2,
        )
    if name in roles.rows:
        what = f"is a row of lw.{roles.rows[name]} of each item"
        return Wanted(what, "how many values each row has", "16", lambda sizes: sizes == 1)
    if name in roles.records:
        what = f"is an array of {roles.records[name].name}"
        return Wanted(what, "how many there are", "16384", lambda sizes: sizes == 1)
    kind = roles.arrays[name]
    if roles.records:
        what = f"is one lw.{kind} for each record"
        return Wanted(what, "how many records there are", "16384", lambda sizes: sizes == 1)
    return Wanted(f"is an array of lw.{kind}", "its shape", "16384", lambda sizes: sizes >= 1)


def wanted_of_array(kind: ArrayType) -> Wanted:
    """What the sizes of an array with indices are."""
    return _dimensions(f"is an lw.Array{kind.rank}[lw.{kind.element}]", kind.rank)


def _dimensions(what: str, rank: int) -> Wanted:
    sizes = "one size" if rank == 1 else f"{rank} sizes"
    return Wanted(what, sizes, _example(rank), lambda found: found == rank)


def _example(rank: int) -> str:
    return text_of(({1: 16384, 2: 512, 3: 64}[rank],) * rank)


def _parameter(signature: Signature, name: str) -> ast.arg:
    return next(a for a in signature.source.tree.args.args if a.arg == name)


# ------------------------------------------------------------ in words


def text_of(shape: Shape) -> str:
    """As a user writes it."""
    return "x".join(map(str, shape))
