"""What the ladder of memory accesses runs: one function of a record under a layout and an access, with or without the clock."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

import lanewise as lw
from lanewise.arrays import RecordArray
from lanewise.ir import nodes as ir
from lanewise.ir.names import COUNT, own
from lanewise.ir.verify import verify_kernel
from lanewise.launch.arguments import bind_value_array
from lanewise.launch.executable import Executable, Launch, build_executable
from lanewise.launch.support import bind_record, index_type
from lanewise.layouts import Layout
from lanewise.passes import clocking, gathering, layout_lowering, thread_mapping
from lanewise.passes.clocking import CYCLES, WARP
from lanewise.passes.gathering import INDEX
from lanewise.patterns.elementwise.build import ElementwiseArguments, build_elementwise
from lanewise.patterns.elementwise.kernel import Elementwise
from lanewise.pipeline import Program, build_program
from lanewise.plan import NEUTRAL, Plan
from lanewise.record import Record
from lanewise.runtime.memory import array_module
from lanewise.target import is_gpu
from lanewise.types import F32, I32, I64

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
class Cell:
    """One measurement: how the records lie, and how they are read."""

    layout: Layout
    access: AccessName

    @property
    def kernel(self) -> Elementwise:
        return total if self.access == "streamed" else hot_total

    @property
    def elements(self) -> int:
        """Elements of four bytes that are read of a record."""
        return len(self.kernel.lowered.function.parameters)

    @property
    def record(self) -> Record:
        return RECORD.__record__


def cell_program(cell: Cell, device: str) -> Program:
    """The kernel of a cell, shaped for a device: one record a thread, in the order of the records or of the indices."""
    kind = "cuda" if is_gpu(device) else "cpu"
    arguments = ElementwiseArguments({"body": (cell.record, cell.layout)}, {}, {})
    reference = build_elementwise(cell.kernel.lowered, arguments, index_type(device))
    if cell.access == "gathered":
        reference = gathering.apply(reference, "body")
    return build_program(reference, Plan(block=BLOCK).filled(NEUTRAL), kind)


def clocked_program(cell: Cell, device: str) -> Program:
    """The same kernel with the clock round its loads; raises `PlanError` on a CPU."""
    program = cell_program(cell, device)
    mapped = thread_mapping.apply(program.reference, BLOCK) if is_gpu(device) else program.reference
    return replace(program, kernels=(_lowered(clocking.apply(mapped)),))


def _lowered(kernel: ir.Kernel) -> ir.Kernel:
    verify_kernel(kernel)
    lowered = layout_lowering.apply(kernel, vector_loads=True)
    verify_kernel(lowered)
    return lowered


@dataclass(frozen=True, slots=True)
class Bodies:
    """The records of one size: as NumPy arrays, as float64 sums, and in the order in which they are gathered."""

    fields: dict[str, Array]
    order: Array

    def sums(self, access: AccessName) -> npt.NDArray[np.float64]:
        """What a cell has to find, in float64."""
        position, mass, velocity = (self.fields[n].astype(np.float64) for n in ("position", "mass", "velocity"))
        hot = position.sum(axis=1) + mass
        match access:
            case "streamed":
                return hot + velocity.sum(axis=1)
            case "subset":
                return hot
            case "gathered":
                return hot[self.order]

    def array(self, layout: Layout, device: str) -> RecordArray:
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
    """A compiled cell with its memory: `run` fills `result`, and `cycles` when it reads the clock."""

    run: Launch
    result: Any
    cycles: Any = None


def bind(executable: Executable, bodies: RecordArray, order: Any, *, clocked: bool = False) -> BoundCell:
    """Give a compiled cell its records, the array of indices, and fresh results full of not-a-number and -1."""
    module, count = array_module(bodies.device), len(bodies)
    result = module.full(count, np.nan, np.float32)
    bound = {"body": bind_record(bodies), own("result"): bind_value_array(result, F32)}
    if any(a.name == INDEX for a in executable.program.kernels[0].arrays):
        bound[INDEX] = bind_value_array(order, I32)
    if not clocked:
        return BoundCell(executable.prepare(bound, {COUNT: count}), result)
    cycles = module.full(-(-count // WARP), NO_READING, np.int64)
    bound[CYCLES] = bind_value_array(cycles, I64)
    return BoundCell(executable.prepare(bound, {COUNT: count}), result, cycles)


def compile_cell(cell: Cell, device: str) -> Executable:
    """The cell without the clock."""
    return build_executable(cell_program(cell, device), device)


def compile_clocked(cell: Cell, device: str) -> Executable:
    """The cell with the clock, for a GPU."""
    return build_executable(clocked_program(cell, device), device)
