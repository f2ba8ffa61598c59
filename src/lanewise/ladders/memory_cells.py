"""A cell of the ladder of memory accesses: one function of a record under a layout and an access,
checked and timed.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

import lanewise as lw
from lanewise.advice.cost import ArrayUse, cost, memory_model
from lanewise.compiler.pipeline import Program, build_program
from lanewise.ir import nodes as ir
from lanewise.ir.names import COUNT, own
from lanewise.ir.verify import verify_kernel
from lanewise.ladders.run import one_thread
from lanewise.ladders.rung import Options
from lanewise.language.record import Record
from lanewise.language.types import F32, I32, I64
from lanewise.launch.arguments import bind_value_array
from lanewise.launch.executable import Executable, Launch, build_executable
from lanewise.launch.support import bind_record, index_type
from lanewise.passes import clocking, gathering, layout_lowering, thread_mapping
from lanewise.passes.clocking import CYCLES, WARP
from lanewise.passes.gathering import INDEX
from lanewise.patterns.elementwise.build import ElementwiseArguments, build_elementwise
from lanewise.sims.common.devices import array_module, bring, get_device, target_of, to_host

AccessName = Literal["streamed", "subset", "gathered"]
ACCESSES: tuple[AccessName, ...] = ("streamed", "subset", "gathered")
BLOCK = 256  # threads of a block
NO_READING = -1
Array = npt.NDArray[Any]


@lw.record
class Body:
    """The record of the paper: seven elements of four bytes."""

    position: lw.vec3
    mass: lw.f32
    velocity: lw.vec3


RECORD: Any = Body  # to type checkers a plain class


@lw.elementwise
def total(body: Body) -> lw.f32:
    """The sum of all elements of a record."""
    p, v = body.position, body.velocity
    return p.x + p.y + p.z + body.mass + v.x + v.y + v.z


@lw.elementwise
def hot_total(body: Body) -> lw.f32:
    """The sum of the elements that a force between bodies needs."""
    p = body.position
    return p.x + p.y + p.z + body.mass


@dataclass(frozen=True, slots=True)
class MemoryCell:
    """One measurement: how the records lie, and how they are read."""

    layout: lw.Layout
    access: AccessName

    @property
    def kernel(self) -> lw.Elementwise:
        return total if self.access == "streamed" else hot_total

    @property
    def elements(self) -> int:
        """Elements of four bytes that are read of a record."""
        return len(self.kernel.lowered.function.parameters)

    @property
    def record(self) -> Record:
        return RECORD.__record__


def predicted_seconds(cell: MemoryCell, device: str, count: int, *, cached: bool) -> float:
    """The time of a pass by the model of `choose_layout`: the records, and besides them sums and
    indices. On a CPU one thread runs. cached: whether all of that fits the last-level cache.
    """
    model = memory_model(device)
    leaves = tuple(p.name.removeprefix("body.") for p in cell.kernel.lowered.function.parameters)
    access = ArrayUse(
        cell.kernel.__name__, "gathered" if cell.access == "gathered" else "streamed", leaves, ()
    )
    records = cost(cell.layout.arrange(cell.record.leaves), access, model, count).seconds
    # a CPU reads a line before it stores
    beside = (4 if model.target.has_blocks else 8) + (4 if cell.access == "gathered" else 0)
    return records + count * beside / (model.cached_streamed if cached else model.streamed)


def cell_program(cell: MemoryCell, device: str) -> Program:
    """The kernel of a cell, shaped for a device: one record a thread, in the order of the records
    or of the indices.
    """
    target = target_of(device)
    arguments = ElementwiseArguments({"body": (cell.record, cell.layout)}, {}, {})
    reference = build_elementwise(cell.kernel.lowered, arguments, index_type(device))
    if cell.access == "gathered":
        reference = gathering.apply(reference, "body")
    return build_program(reference, lw.Plan(block=BLOCK).filled(lw.Plan.neutral()), target.pipeline)


def clocked_program(cell: MemoryCell, device: str) -> Program:
    """The same kernel with the clock round its loads; raises `PlanError` on a CPU."""
    program = cell_program(cell, device)
    mapped = (
        thread_mapping.apply(program.reference, BLOCK)
        if target_of(device).has_blocks
        else program.reference
    )
    return replace(program, kernels=(_lowered(clocking.apply(mapped)),))


def _lowered(kernel: ir.Kernel) -> ir.Kernel:
    verify_kernel(kernel)
    lowered = layout_lowering.apply(kernel, vector_loads=True)
    verify_kernel(lowered)
    return lowered


@dataclass(frozen=True, slots=True)
class Bodies:
    """The records of one size: as NumPy arrays, as float64 sums, and in the order in which they are
    gathered.
    """

    fields: dict[str, Array]
    order: Array

    def sums(self, access: AccessName) -> npt.NDArray[np.float64]:
        """What a cell has to find, in float64."""
        position, mass, velocity = (
            self.fields[n].astype(np.float64) for n in ("position", "mass", "velocity")
        )
        hot = position.sum(axis=1) + mass
        match access:
            case "streamed":
                return hot + velocity.sum(axis=1)
            case "subset":
                return hot
            case "gathered":
                return hot[self.order]

    def array(self, layout: lw.Layout, device: str) -> lw.RecordArray:
        return RECORD.array(**self.fields, layout=layout, device=device)


def make_bodies(count: int, seed: int) -> Bodies:
    """`count` bodies at random, and a random permutation of them."""
    rng = np.random.default_rng(seed)
    fields = {
        "position": rng.random((count, 3), np.float32),
        "mass": rng.random(count, np.float32),
        "velocity": rng.random((count, 3), np.float32),
    }
    return Bodies(fields, rng.permutation(count).astype(np.int32))


@dataclass(frozen=True, slots=True)
class BoundCell:
    """A compiled cell with its memory: `run` fills `result`, and `cycles` when it reads the
    clock.
    """

    run: Launch
    result: Any
    cycles: Any = None


def bind(
    executable: Executable, bodies: lw.RecordArray, order: Any, *, clocked: bool = False
) -> BoundCell:
    """Give a compiled cell its records, the array of indices, and fresh results full of
    not-a-number and -1.
    """
    module, count = array_module(bodies.device), len(bodies)
    result = module.full(count, np.nan, np.float32)
    bound = {"body": bind_record(bodies), own("result"): bind_value_array(result, F32)}
    if any(a.name == INDEX for a in executable.program.kernels[0].arrays):
        bound[INDEX] = bind_value_array(order, I32)
    if not clocked:
        return BoundCell(executable.tasks.bound(bound, {COUNT: count}), result)
    cycles = module.full(-(-count // WARP), NO_READING, np.int64)
    bound[CYCLES] = bind_value_array(cycles, I64)
    return BoundCell(executable.tasks.bound(bound, {COUNT: count}), result, cycles)


def compile_cell(cell: MemoryCell, device: str) -> Executable:
    """The cell without the clock."""
    return build_executable(cell_program(cell, device), device)


def _compile_clocked(cell: MemoryCell, device: str) -> Executable:
    """The cell with the clock, for a GPU."""
    return build_executable(clocked_program(cell, device), device)


TOLERANCE = 1e-6  # of a float32 sum of seven numbers, relative to the largest sum
ROUNDS, QUICK_ROUNDS = 15, 5
LEAST, QUICK_LEAST = 0.02, 0.005  # seconds of one timed run: short passes are repeated within it


@dataclass(frozen=True, slots=True)
class MeasuredPass:
    """A pass over all records: its error, its seconds, and the cycles of one record; or what is
    wrong with it.
    """

    error: float
    seconds: float = 0.0
    cycles: float = 0.0
    wrong: str | None = None


@dataclass
class MemoryMeasurer:
    """The records of one size in every layout, made when they are needed, and the measurements of
    their cells.
    """

    options: Options
    count: int
    bodies: Bodies = field(init=False)
    arrays: dict[lw.Layout, lw.RecordArray] = field(default_factory=dict[lw.Layout, lw.RecordArray])
    order: Any = None
    sums: dict[AccessName, npt.NDArray[np.float64]] = field(
        default_factory=dict[AccessName, npt.NDArray[np.float64]]
    )

    def __post_init__(self) -> None:
        self.bodies = make_bodies(self.count, self.options.seed)
        self.order = bring(self.bodies.order, self.options.device)

    def measure(self, cell: MemoryCell) -> MeasuredPass:
        """Check a cell against float64, then time it: only what is right has a time."""
        device = self.options.device
        if cell.layout not in self.arrays:
            self.arrays[cell.layout] = self.bodies.array(cell.layout, device)
        with one_thread():  # of a CPU
            plain = bind(compile_cell(cell, device), self.arrays[cell.layout], self.order)
            error = self.error(cell, plain)
            if not error <= TOLERANCE:
                return MeasuredPass(error, wrong=_wrong(error))
            seconds = self.time(plain)
        if not target_of(device).has_blocks:
            from lanewise.models import clock_hz

            return MeasuredPass(error, seconds, seconds * clock_hz() / self.count)
        return self.clocked(cell, error, seconds)

    def error(self, cell: MemoryCell, bound: BoundCell) -> float:
        """The largest difference from the float64 sums after one pass, over the largest of them."""
        bound.run()
        if cell.access not in self.sums:
            # of one access at a time: they are large
            self.sums = {cell.access: self.bodies.sums(cell.access)}
        exact = self.sums[cell.access]
        return float(np.max(np.abs(to_host(bound.result) - exact)) / np.max(np.abs(exact)))

    def time(self, bound: BoundCell) -> float:
        """The median time of a pass that follows another one."""
        least = QUICK_LEAST if self.options.quick else LEAST
        timed = get_device(self.options.device).seconds
        repeats = max(1, min(1000, round(least / timed(bound.run))))

        def passes() -> None:
            for _ in range(repeats):
                bound.run()

        passes()
        return statistics.median(timed(passes) for _ in range(self.rounds)) / repeats

    def clocked(self, cell: MemoryCell, error: float, seconds: float) -> MeasuredPass:
        """The median of the warps' cycles, from the kernel that reads the clock; its sums are
        checked too.
        """
        bound = bind(
            _compile_clocked(cell, self.options.device),
            self.arrays[cell.layout],
            self.order,
            clocked=True,
        )
        clocked_error = self.error(cell, bound)
        if not clocked_error <= TOLERANCE:
            return MeasuredPass(clocked_error, wrong=_wrong(clocked_error))
        medians: list[float] = []
        for _ in range(self.rounds):
            bound.run()
            readings = to_host(bound.cycles)
            if missing := int(np.count_nonzero(readings == NO_READING)):
                return MeasuredPass(
                    error, wrong=f"wrong: {missing} of {len(readings)} warps did not read the clock"
                )
            medians.append(float(np.median(readings)))
        return MeasuredPass(error, seconds, statistics.median(medians))

    @property
    def rounds(self) -> int:
        return QUICK_ROUNDS if self.options.quick else ROUNDS


def _wrong(error: float) -> str:
    return (
        f"wrong: the relative error against float64 is {error:.1e}, and {TOLERANCE:.0e} is allowed"
    )
