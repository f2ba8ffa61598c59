"""pairwise: for every target, the sum of a function over all sources.

The pattern of sums over pairs: on a CPU sources in SIMD lanes, on a GPU tiles of them, or each pair
computed once for both sides. Its default plans are rules of thumb, each from a measurement
(bench/results).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from itertools import product

from lanewise.compiler.lengths import with_fewer_copies
from lanewise.frontend.function import Lowered
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.itself import find_itself, itself_uniforms
from lanewise.ir.names import count_of, identifier, own
from lanewise.ir.pattern import HostCode, Pattern, Work, bits_of_rows
from lanewise.ir.reductions import Place
from lanewise.ir.values import load_used, record_array, uniform_leaves, value_array
from lanewise.language import types as t
from lanewise.language.array_types import ArrayType
from lanewise.language.record import Record
from lanewise.language.target import WARP, Machine
from lanewise.language.types import Scalar
from lanewise.layouts import Layout
from lanewise.passes.reciprocity.groups import part_counts
from lanewise.passes.reciprocity.shape import SCRATCH_BYTES
from lanewise.passes.reciprocity.sizes import ALWAYS, too_many
from lanewise.passes.thread_mapping import MAX_SHARED_BYTES
from lanewise.patterns.results import accumulators, check_results, result_arrays, stores
from lanewise.patterns.tables.arguments import Tables, numbers, table_arrays, table_lengths
from lanewise.planning.plan import DECLARED, NEUTRAL, CompletePlan, Plan

# targets of a loop on a CPU: enough for its overhead, and their states stay in the first cache
SIDE_BY_SIDE = 256
LEAST_SIDE_BY_SIDE = 32  # targets: fewer do not fill the registers
NOTHING = Plan()  # nothing is requested
# decisions that want other loops
_NOT_SIDE_BY_SIDE = ("targets", "tile", "accumulate", "self_term")


def default_plan(machine: Machine, work: Work, requested: Plan) -> CompletePlan:
    """Every field decided: defaults that agree with the requested plan."""
    if not machine.target.has_blocks:
        # SIMD lanes run over sources, where compilers may regroup what they give; else over
        # targets, also where functions branch: whatever a branch computes for lanes that do not
        # take it, a compiler does not run sources of such a reduction side by side. One target a
        # loop is fastest when a load brings a whole register of sources; sources that have to be
        # gathered first should serve four (bench/results/cpu_gravity.md).
        lanes = not work.regrouped and work.targets >= LEAST_SIDE_BY_SIDE
        if lanes and all(
            getattr(requested, n) in (None, getattr(NEUTRAL, n)) for n in _NOT_SIDE_BY_SIDE
        ):
            widest = 512 if machine.vector_bits == 512 else 0
            bits = bits_of_rows(machine, work.estimates, widest)
            return Plan(across=SIDE_BY_SIDE, vector_bits=bits).filled(NEUTRAL)
        # who wishes targets side by side wants none merged
        targets = 4 if work.strided and not requested.across else 1
        bits = bits_of_rows(machine, work.estimates and bool(requested.across))
        return Plan(targets=targets, vector_bits=bits).filled(NEUTRAL)
    if _reciprocal(machine, work, requested):
        return _reciprocal_plan(machine, work, requested)
    plan = _one_sided_plan(machine, work, requested)
    # Who wants no tiles wants nothing that divides them.
    return Plan(slices=1, parts=1).filled(plan) if requested.tile == 0 else plan


def plan_class(machine: Machine, work: Work, targets: int) -> Hashable:
    """What of a number of targets decides about that plan, where nothing is requested."""
    if not machine.target.has_blocks:
        return targets >= LEAST_SIDE_BY_SIDE
    work = replace(work, targets=targets)
    if _reciprocal(machine, work, NOTHING):
        most = _targets(machine, work)
        return most, _grouped_targets(work, most), _fits_scratch(work, most)
    return _one_sided_shape(machine, work, NOTHING)


# ---------------------------------------------------------------- one side of a pair


def _one_sided_shape(machine: Machine, work: Work, requested: Plan) -> tuple[int, int, int, int]:
    """Threads of a block, slices, targets per thread, parts of the sources."""
    single = requested.targets in (None, 1)
    shapes, waits = _SHAPES, not work.wide and single and _waits(work)
    if work.wide:
        shapes = [s for s in _SHAPES if s[0] == 256 and s[2] <= 2]
    elif waits:
        shapes = _SINGLE_SHAPES
    shapes = [s for s in shapes if _shared_bytes(work, s[0], s[1]) <= MAX_SHARED_BYTES] or [
        _SMALLEST
    ]
    if requested.tile:  # its sources are staged by all threads of a block, the same number by each
        shapes = [s for s in shapes if requested.tile % s[0] == 0] or shapes

    def rate(shape: tuple[int, int, int]) -> float:
        found = _throughput(machine, work.targets, *shape)
        return found * (1 - _MEETING / shape[0]) if waits else found

    block, slices, merged = max(shapes, key=rate)
    blocks = -(-work.targets // (block // slices * merged))
    return block, slices, merged, min(64, max(1, machine.multiprocessors // blocks))


def _one_sided_plan(machine: Machine, work: Work, requested: Plan) -> CompletePlan:
    block, slices, merged, parts = _one_sided_shape(machine, work, requested)
    unroll, lengthy = 4 if work.wide else 16, work.lengthy and not requested.fast_math
    return Plan(
        targets=merged,
        tile=block,
        slices=slices,
        parts=parts,
        unroll=min(unroll, _COPIES // merged) if lengthy else unroll,
        block=block,
        fma=work.rearranged,
    ).filled(NEUTRAL)


# (threads of a block, slices, targets per thread) that were best at some size on an NVIDIA H200:
# bench/results/sweep_gpu_gravity.md
_SHAPES = [
    (block, slices, merged)
    for block, slices, merged in product((256, 512, 1024), (1, 2, 4, 8, 16), (1, 2, 4))
    if block // slices >= WARP and (block < 1024 or slices == 16)
]
_SMALLEST = (32, 1, 1)
# A thread with one target leaves registers for many warps, and with 1,024 sources in a tile they
# meet less often; 8 slices keep sums as short, and so as exact, as those of 4 targets. Functions
# that wait take 0.83 to 1.00 of the time of 4 targets in blocks of 256 (nine kernels of the zoo,
# 131,072 targets, NVIDIA H200: design/0064).
_SINGLE_SHAPES = [
    (block, slices, 1)
    for block, slices in product((1024, 512, 256), (8, 16))
    if block // slices >= WARP
]
_MEETING = 15  # sources that such a thread could look at while it waits for others of its block
LIGHT_STATE = 4  # bytes


def _waits(work: Work) -> bool:
    """Whether what a pair takes makes warps wait: divisions, exponentials and the like, or choices,
    and more than one number that they change.

    Plain sums keep 4 targets to a load, and so do choices among states that do not fit next to a
    tile of the largest blocks.
    """
    if work.state_bytes <= LIGHT_STATE or not (work.sequences or work.chooses):
        return False
    block, slices, _ = _SINGLE_SHAPES[-1 if work.sequences else 0]
    return _shared_bytes(work, block, slices) <= MAX_SHARED_BYTES


# of a function with sines in a loop: four times as many took 1.7 times as long, as they had to be
# fetched (NVIDIA H100)
_COPIES = 16
# share of the best rate with this many targets to every load of a source
_REUSE = {1: 0.88, 2: 0.97, 4: 1.0}


def _shared_bytes(work: Work, block: int, slices: int) -> int:
    """A tile of sources, and the states of slices."""
    return block * (work.source_bytes + (work.state_bytes if slices > 1 else 0))


def _throughput(machine: Machine, targets: int, block: int, slices: int, merged: int) -> float:
    """A relative rate of a shape.

    It knows how evenly blocks fill the multiprocessors, how many warps hide latency, how often a
    source is used.
    """
    per_block = block // slices * merged
    blocks = -(-targets // per_block)
    rounds = -(-blocks // machine.multiprocessors)  # blocks on the busiest multiprocessor
    balance = targets / (rounds * machine.multiprocessors * per_block)
    warps = min(rounds * block // WARP, 2048 // WARP)
    hiding = warps / (warps + 2.5)
    # the slices of a block meet once for each target
    meeting = 1 - 0.0015 * (slices - 1) * merged / max(rounds, 1)
    return balance * hiding * _REUSE[merged] * meeting


# ---------------------------------------------------------------- both sides of a pair

LIGHT = 32  # operations for both directions, up to which threads have registers for many targets
# Targets a thread, and the tasks on every multiprocessor from which they pay: fewer targets make
# more tasks, and a task alone takes the longer the more targets it has (measured on an NVIDIA H200,
# 2,048 to 524,288 elements).
_TASKS_FLOAT64 = {6: 200, 4: 4, 2: 4}
_TASKS_LONG = {4: 40, 2: 12}
_TASKS_SHORT = {6: 200, 4: 40, 2: 12}  # of few operations, among them such sequences
_TASKS_LIGHT = {12: 1000, 8: 12, 4: 4}
_TASKS_CONVERTING = {8: 200, 4: 12, 2: 4}
# Where a task belongs to a group it knows more, and 12 targets leave no register for that: a step
# of gravity takes 5.6 to 6.0 % longer than without groups, and as long with 10 or 11 (2^18 and 2^20
# bodies, NVIDIA H200). 11 are for what has too many tasks of 10.
_GROUPED = {12: (10, 11)}


def _reciprocal(machine: Machine, work: Work, requested: Plan) -> bool:
    """Whether pairs are computed once: requested, or possible, not in the way of other requests,
    and of use.
    """
    if requested.reciprocity is not None:
        return requested.reciprocity != "off"
    if not work.exchanges or any(
        getattr(requested, n) not in (None, v) for n, v in DECLARED["reciprocity"].needs
    ):
        return False
    if requested.self_term == "loops":
        return False
    if _targets(machine, work) == 1 or work.targets <= ALWAYS:
        return _targets(machine, work) > 1
    plan = requested.filled(_reciprocal_plan(machine, work, requested))
    # what becomes of it: with fewer targets per thread there are more tasks
    plan = with_fewer_copies(plan, requested, work.length)
    return unfit(machine, work, plan) is None


def unfit(machine: Machine, work: Work, plan: CompletePlan) -> str | None:
    """Why a launch cannot count the tasks of a plan, or None.

    A function that has no reciprocity is refused by the pass, with better reasons.
    """
    mode, targets = plan.reciprocity, plan.targets
    if not machine.target.has_blocks or mode == "off" or not work.both_ways:
        return None
    reason = too_many(work.targets, targets, mode)
    return f"Plan(reciprocity={mode!r}, targets={targets}): {reason}" if reason else None


def _tasks(work: Work) -> dict[int, int]:
    if work.wide:
        return _TASKS_FLOAT64
    if work.sequences and not work.lengthy and work.both_ways <= LIGHT:
        return _TASKS_SHORT
    if _is_long(work):
        return _TASKS_LONG
    return _TASKS_CONVERTING if work.converts else _TASKS_LIGHT


def _is_long(work: Work) -> bool:
    return work.sequences or work.both_ways > LIGHT


def _targets(machine: Machine, work: Work) -> int:
    """As many targets per thread as pay; 1 where none do."""
    for targets, least in _tasks(work).items():
        tiles = -(-work.targets // (WARP * targets))
        tasks = tiles * (tiles + 1) // 2
        if tasks >= least * machine.multiprocessors:
            return targets
    return 1


def _grouped_targets(work: Work, targets: int) -> int:
    """Of tasks in groups, where others have so many."""
    fewer = (n for n in _GROUPED.get(targets, ()) if not too_many(work.targets, n, "grouped"))
    return next(fewer, targets)


def _reciprocal_plan(machine: Machine, work: Work, requested: Plan) -> CompletePlan:
    targets = _targets(machine, work)
    grouped = requested.reciprocity == "grouped"
    if grouped:
        targets = _grouped_targets(work, targets)
    scratch = _fits_scratch(work, targets) and not grouped
    rolled = (
        targets == 8 or _is_long(work) if scratch else work.wide or work.converts or _is_long(work)
    )
    if scratch and targets == 2:
        rolled = False
    # few copies of code so long that more have to be fetched: 0.88 of the time
    few = work.lengthy and not requested.fast_math and not scratch
    return Plan(
        targets=targets,
        block=WARP,
        unroll=2 if few else 4 if rolled else 8,
        fma=work.rearranged,
        registers=0 if requested.min_blocks else _registers(work, targets, scratch),
        reciprocity="scratch" if scratch else "grouped" if grouped else "ordered",
    ).filled(NEUTRAL)


def _fits_scratch(work: Work, targets: int) -> bool:
    """Whether there is room for the sums of every pair of tiles."""
    return work.targets * -(-work.targets // (WARP * targets)) * work.result_bytes <= SCRATCH_BYTES


def _registers(work: Work, targets: int, scratch: bool) -> int:
    """A cap that lets the compiler take more registers than it does for a block of one warp by
    itself (measured).
    """
    if scratch:
        return 168 if work.wide else 128
    # one number that is chosen, or a count, with 8 targets: 0.93 of the time with the cap
    single = work.chooses and work.state_bytes <= LIGHT_STATE and not work.sequences
    return 128 if targets >= (8 if single else 10) else 0


@dataclass(frozen=True, slots=True)
class PairwiseArguments:
    """The two records (parameter name, record, layout), the uniforms, whether both are the same
    array, and the tables.

    parts: whether both are different parts of one array, so that an element of one may be an
    element of the other. shared: whether the parts of a mesh share the pairs.
    """

    target: tuple[str, Record, Layout]
    source: tuple[str, Record, Layout]
    uniforms: dict[str, t.ValueType]
    identical: bool
    tables: Tables = field(default_factory=dict[str, ArrayType])
    parts: bool = False
    shared: bool = False


def build_pairwise(lowered: Lowered, arguments: PairwiseArguments, index: Scalar) -> ir.Kernel:
    """The reference kernel: one target at a time, all sources in order.

    Raises `CompileError` for results that cannot be summed.
    """
    check_results(lowered)
    f = lowered.function
    i, j = ir.Local(own("i"), index), ir.Local(own("j"), index)
    target, load_target = _record(f, arguments.target, i)
    source, load_source = _record(f, arguments.source, j)
    target_count, source_count = (ir.Parameter(count_of(a.name), index) for a in (target, source))
    results = [ir.Local(own(r.name), r.type) for r in f.results]
    reduced = [a for group in accumulators(lowered) for a in group]
    # A thread of a GPU whose target is past the end computes along, with the last one's values: so
    # with its index as well.
    inside = build.minimum(i, build.subtract(ir.Local(target_count.name, index), 1))
    index_of = numbers(lowered, {target.name: inside, source.name: j})
    parameters: list[ir.Expression] = [
        index_of.get(p.name, ir.Local(p.name, p.type)) for p in f.parameters
    ]
    find: ir.Block = ()
    if lowered.uses_same:  # the last parameter
        parameters[-1] = build.equal(i, j) if arguments.identical else build.FALSE
        if arguments.parts:
            find, itself = find_itself(i, ir.Local(source_count.name, index))
            parameters[-1] = build.equal(itself, j)
    place = Place(j if index == t.I32 else ir.Cast(j, t.I32))
    takes = tuple(s for a in reduced for s in a.take(place))
    body: ir.Block = (
        *load_source,
        ir.Apply(f, tuple(parameters), tuple(r.name for r in results)),
        *takes,
    )
    zero, one = ir.Literal(0, index), ir.Literal(1, index)
    loop = ir.For(j.name, zero, ir.Local(source_count.name, index), one, body, role="sources")
    starts = tuple(s for a in reduced for s in a.start())
    outputs = [value_array(name, kind, written=True) for name, kind in result_arrays(lowered)]
    parallel = ir.Parallel(
        i.name,
        ir.Local(target_count.name, index),
        (*load_target, *find, *starts, loop, *stores(lowered, i)),
    )
    uniforms = uniform_leaves(f, {**arguments.uniforms, **table_lengths(arguments.tables)})
    if find:
        uniforms = (*uniforms, *itself_uniforms())
    parts = part_counts(index) if arguments.shared else ()
    return ir.Kernel(
        identifier(f.name),
        PAIRWISE,
        (target, source, *table_arrays(arguments.tables, apart=True), *outputs),
        uniforms,
        (target_count, source_count, *parts),
        (parallel,),
        identical=arguments.identical,
        reductions=tuple(reduced),
        location=f.location,
    )


def _record(
    f: ir.Function, argument: tuple[str, Record, Layout], index: ir.Local
) -> tuple[ir.ArrayArgument, ir.Block]:
    """The array of one of the two records, and the load of what the function uses of it."""
    name, record, layout = argument
    array = record_array(name, record.leaves, layout, written=False)
    return array, load_used(f, name, record, index)


GRAIN_WORK = 262_144  # element-source pairs worth handing to another thread: about 70 microseconds


def grain(sources: int) -> int:
    """Targets worth handing to another thread."""
    return max(1, GRAIN_WORK // max(1, sources))


PAIRWISE = Pattern(
    "pairwise",
    over_pairs=True,
    host=HostCode(reassociate=True),
    default_plan=default_plan,
    plan_class=plan_class,
    unfit=unfit,
    grain=grain,
)
