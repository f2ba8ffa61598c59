"""Tasks in groups, each with its own sums, so that the devices of a mesh can share them.

Task (d, a) has the tiles a and a + d. Groups are ranges of d, as many for every number of devices;
each device takes some groups that follow each other, and leaves for each of them the sums of all
elements. These are added in the order of groups. So bits depend on the number of elements and the
size of tiles, and not on how many devices there are. Within a group tiles take what tasks give in
the order of tasks, as "ordered" does.
"""

from __future__ import annotations

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.language.record import Leaf
from lanewise.language.target import WARP
from lanewise.language.types import I32, Scalar
from lanewise.layouts import SoA
from lanewise.passes.reciprocity.shape import PairShape, number_of_tasks

# Shared evenly by 1, 2, 3, 4, 6, 8, 12 and 24 devices. More would be more sums to bring together.
GROUPS = 24
PART, PARTS = own("mesh.part"), own("mesh.parts")  # which device of how many this is
NUMBERS = own("numbers")
LEAVES = ("turn.a", "turn.b", "turns.begin", "turns.all", "base")
GROUP, FIRST, START, STOP = (own(f"groups.{n}") for n in ("own", "first", "start", "stop"))


def part_counts(index: Scalar) -> tuple[ir.Parameter, ...]:
    """The numbers that say which groups a device has; kernels without them have all."""
    return ir.Parameter(PART, index), ir.Parameter(PARTS, index)


def part_values(part: int, parts: int) -> dict[str, int]:
    """Them, by name."""
    return {PART: part, PARTS: parts}


def groups_of_part(count: int, targets: int, part: int, parts: int) -> range:
    """The groups of a device, of so many elements with so many targets per thread."""
    tiles = -(-count // (targets * WARP))
    groups = min(tiles // 2 + 1, GROUPS)
    return range(part * groups // parts, (part + 1) * groups // parts)


# ------------------------------------------------------------ numbers, as expressions


def _distances(tiles: ir.Expression) -> ir.Expression:
    """How many values of d there are."""
    return build.add(build.divide(tiles, 2), 1)


def number_of_groups(tiles: ir.Expression) -> ir.Expression:
    """None of them without tasks."""
    return build.minimum(_distances(tiles), GROUPS)


def _first_distance(tiles: ir.Expression, group: ir.Expression) -> ir.Expression:
    """The first d of a group."""
    groups = number_of_groups(tiles)
    whole = build.add(build.multiply(group, _distances(tiles)), build.subtract(groups, 1))
    return build.divide(whole, groups)


def _turns_before(tiles: ir.Expression, distance: ir.Expression) -> ir.Expression:
    """How many contributions a tile takes of smaller d."""
    twice = build.subtract(build.multiply(distance, 2), 1)
    return build.minimum(build.maximum(twice, 0), tiles)


def _tasks_before(tiles: ir.Expression, distance: ir.Expression) -> ir.Expression:
    return build.minimum(build.multiply(distance, tiles), number_of_tasks(tiles))


def _of_part(shape: PairShape, *, after: int) -> ir.Expression:
    """The first group of the device, or of the one after it."""
    groups, names = number_of_groups(shape.tile_count), {p.name for p in shape.kernel.counts}
    if PART not in names:
        return groups if after else ir.Literal(0, shape.type)
    part, parts = ir.Local(PART, shape.type), ir.Local(PARTS, shape.type)
    return build.divide(build.multiply(build.add(part, after), groups), parts)


def tasks_of_part(shape: PairShape) -> ir.Expression:
    """How many tasks the device has, from counts."""
    tiles = shape.tile_count
    ends = (_first_distance(tiles, _of_part(shape, after=n)) for n in (0, 1))
    before, until = (_tasks_before(tiles, d) for d in ends)
    return build.subtract(until, before)


def sums_of_part(shape: PairShape) -> ir.Expression:
    """How many sums it leaves, from counts."""
    groups = build.subtract(_of_part(shape, after=1), _of_part(shape, after=0))
    return build.multiply(groups, shape.n)


# ------------------------------------------------------------ in the kernel


def _local(shape: PairShape, name: str) -> ir.Local:
    return ir.Local(name, shape.type)


def find_part(shape: PairShape) -> ir.Block:
    """The groups of the device, and which tasks that are."""
    start, stop = (_first_distance(shape.tiles, _of_part(shape, after=n)) for n in (0, 1))
    return (
        ir.Assign(FIRST, _of_part(shape, after=0)),
        ir.Assign(START, start),
        ir.Assign(STOP, stop),
    )


def first_task(shape: PairShape) -> ir.Expression:
    """The first task of the device."""
    return _tasks_before(shape.tiles, _local(shape, START))


def last_task(shape: PairShape) -> ir.Expression:
    """The one after the last."""
    return _tasks_before(shape.tiles, _local(shape, STOP))


def set_numbers_aside(shape: PairShape, turn_a: ir.Expression, turn_b: ir.Expression) -> ir.Block:
    """What is known of a task when it begins and wanted when it gives, in shared memory between:
    in registers it would take room from the pairs. There is one place for all lanes of a warp, so
    that compilers see that they go the same way: with a place for each, NVRTC 13.0 made a loop over
    pairs that waits 1.3 times as long. Turns are counted from the device's first.
    """
    tiles, begun = shape.tiles, _turns_before(shape.tiles, _local(shape, START))
    group, groups = _local(shape, GROUP), number_of_groups(tiles)
    begins = _turns_before(tiles, _first_distance(tiles, group))
    turns = _turns_before(tiles, _local(shape, STOP))
    base = build.multiply(build.subtract(group, _local(shape, FIRST)), shape.n)
    found = build.divide(build.multiply(shape.offset, groups), _distances(tiles))
    values = (*(build.subtract(x, begun) for x in (turn_a, turn_b, begins, turns)), base)
    kept = tuple((leaf, build.cast(x, I32)) for leaf, x in zip(LEAVES, values, strict=True))
    first_lane = build.equal(shape.lane, ir.Literal(0, shape.type))
    store = ir.StoreRecord(NUMBERS, shape.mine(ir.Literal(0, shape.type), 1), kept)
    return (ir.Assign(GROUP, found), ir.If(first_lane, (store,)), ir.Barrier("warp"))


def take_numbers(shape: PairShape) -> ir.LoadRecord:
    """Them again."""
    place = shape.mine(ir.Literal(0, shape.type), 1)
    return ir.LoadRecord(NUMBERS, place, tuple((x, own(x)) for x in LEAVES))


def numbers_array(shape: PairShape) -> ir.ArrayArgument:
    """Where they are meanwhile: those of each warp."""
    leaves = tuple(Leaf(x, I32) for x in LEAVES)
    lies = SoA().arrange(leaves)
    return ir.ArrayArgument(NUMBERS, leaves, lies, written=True, space="shared", length=shape.warps)


def own_turns(shape: PairShape) -> ir.Expression:
    """How many contributions a tile takes from the device."""
    return shape.local("turns.all")


def is_first(shape: PairShape, turn: ir.Expression) -> ir.Expression:
    """Whether this turn's contribution is the first of its group."""
    return build.equal(turn, shape.local("turns.begin"))


def place_in_group(shape: PairShape, index: ir.Expression) -> ir.Expression:
    """Where the sums of an element lie."""
    return build.add(shape.local("base"), index)
