"""The kernels of a program as launches for any number of elements.

    Form (a kernel), counts, where arrays begin -> Piece (a launch that waits for addresses,
    numbers)
What follows from sizes is computed when they are known. Expressions of sizes become Python
functions once, so that another size costs some microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np

from lanewise.ir import nodes as ir
from lanewise.ir.interpret import whole_of
from lanewise.ir.interpreter import ArrayMemory, Interpreter
from lanewise.ir.names import WORK, identifier
from lanewise.ir.traverse import reads, rewrite
from lanewise.language.types import I32, I64
from lanewise.launch.own_memory import OwnMemory
from lanewise.launch.scattering import PartedLaunch, ScatterLaunch, own_copies, summed_in_order
from lanewise.launch.tasks import Buffer, Launch, Sequence
from lanewise.layouts import Arrangement
from lanewise.passes.uniform_parameters import UNIFORMS
from lanewise.primitives.own_copies import OwnCopy
from lanewise.primitives.sums_in_parts import edges
from lanewise.runtime import cpu
from lanewise.runtime.device import Device, LoadedKernel
from lanewise.runtime.prepared import Arguments, Piece, Places
from lanewise.support.errors import PlanError

MAX_GRID_ELEMENTS = 2**31 - 2**16  # indices on the GPU have 32 bits

Environment = Mapping[str, Any]
Shape = tuple[Arrangement, int]
"""How an array lies in memory, and how many elements it has."""


def whole_of_array(arrangement: Arrangement, count: int) -> Places:
    """All bytes of an array of that shape as one buffer."""
    end = max(arrangement.ends(arrangement.starts(count), count), default=0)
    return Places((0,), (end,), (np.uint8,))


@dataclass(frozen=True, slots=True)
class Group:
    """Neighbouring arguments of a kernel that are buffers of one array.

    own: its shape, where no call has another one.
    """

    array: str
    buffers: tuple[int, ...]
    dtypes: tuple[Any, ...]
    where: slice
    own: Shape | None = None

    def places(self, shapes: Mapping[str, Shape]) -> Places:
        """Where they lie in an array of that shape."""
        arrangement, count = self.own or shapes[self.array]
        starts = arrangement.starts(count)
        ends, buffers = arrangement.ends(starts, count), self.buffers
        return Places(
            tuple([starts[b] for b in buffers]), tuple([ends[b] for b in buffers]), self.dtypes
        )


def groups_of(
    kernel: ir.Kernel, buffers: tuple[ir.BufferArgument, ...], first: int = 0
) -> tuple[Group, ...]:
    """The arguments from position `first` on, array by array."""
    own = {a.name: (a.arrangement, 1) for a in kernel.arrays if a.name == UNIFORMS}
    groups: list[Group] = []
    for array, members in groupby(buffers, key=lambda b: b.array):
        same = tuple(members)
        dtypes = tuple(b.type.dtype for b in same)
        where = slice(first, first + len(same))
        groups.append(Group(array, tuple(b.buffer for b in same), dtypes, where, own.get(array)))
        first += len(same)
    return tuple(groups)


Number = Callable[[Any], Any]
Extent = Callable[[Environment], int]


def _wide(e: ir.Expression) -> ir.Expression:
    """An index in 64 bits: who counts with it refuses what is too large, in words."""
    return replace(e, type=I64) if e.type == I32 else e


def extent_of(e: ir.Expression) -> Extent:
    """What gives a number of elements or blocks from counts, in 64 bits: so nothing overflows."""
    if isinstance(e, ir.Local):
        name = e.name
        return lambda environment: int(environment[name])
    names, number, int64 = tuple(dict.fromkeys(reads(e))), whole_of(rewrite(e, _wide)), np.int64

    def extent(environment: Environment) -> int:
        values = {n: environment[n] for n in names}
        return number({n: int64(v) if isinstance(v, int) else v for n, v in values.items()})

    return extent


@dataclass(frozen=True, slots=True)
class Scalars:
    """The counts and uniforms of a kernel, behind its buffers: `first` is the position of the first
    of them.
    """

    first: int
    numbers: tuple[tuple[str, int, Number], ...]
    uniforms: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, kernel: ir.Kernel, first: int, *, host: bool) -> Scalars:
        scalars = [*enumerate(kernel.counts + kernel.uniforms, first)]
        numbers = tuple((p.name, n, _number(p.type.dtype, host=host)) for n, p in scalars)
        return cls(first, numbers, tuple((p.name, n) for n, p in scalars[len(kernel.counts) :]))

    def fill(self, arguments: list[Any], environment: Environment) -> tuple[tuple[str, int], ...]:
        """Put the numbers among the arguments that are known; the names and positions of the
        others.
        """
        unknown: list[tuple[str, int]] = []
        for name, position, number in self.numbers:
            if name in environment:
                arguments[position] = number(environment[name])
            else:
                unknown.append((name, position))
        return tuple(unknown)


def _number(dtype: np.dtype[Any], *, host: bool) -> Number:
    """Generated Python takes integers as Python's."""
    kind: Any = dtype.type
    return (lambda x: int(kind(x))) if host and dtype.kind in "iu" else kind


# ------------------------------------------------------------ interpreted


@dataclass(frozen=True, slots=True)
class InterpreterForm:
    """A kernel that the interpreter runs."""

    kernel: ir.Kernel

    def piece(self, environment: Environment, shapes: Mapping[str, Shape]) -> Piece:
        """A run with these counts and values. It waits for the arrays, which it takes as bytes."""
        names = [a.name for a in self.kernel.arrays]
        kernel, values = self.kernel, dict(environment)

        def run(arguments: Arguments) -> None:
            memories = {
                n: ArrayMemory(data, *shapes[n]) for n, data in zip(names, arguments, strict=True)
            }
            Interpreter(kernel, values, memories).run()

        none: Arguments = (None,) * len(names)
        places = [(name, whole_of_array(*shapes[name])) for name in names]
        arrays = tuple([(name, at, slice(n, n + 1)) for n, (name, at) in enumerate(places)])
        return Piece(run, none, arrays, (), name=kernel.name)


# ------------------------------------------------------------ on a CPU


@dataclass(frozen=True, slots=True)
class HostForm:
    """A kernel for a CPU: it runs over `extent` elements, of which other threads take pieces that
    are worth it.

    copies: what each thread has for itself. summed: arguments to which floats are added in order,
    each in so many `parts`.
    """

    name: str
    function: cpu.RangeKernel
    groups: tuple[Group, ...]
    scalars: Scalars
    extent: Extent
    grain: Callable[[Environment, int], int]
    copies: tuple[OwnCopy, ...] = ()
    parts: int = 1
    summed: tuple[int, ...] = ()

    def piece(self, environment: Environment, shapes: Mapping[str, Shape]) -> Piece:
        """A launch with these counts.

        It waits for the arrays, and for the uniforms that are not known.
        """
        scalars = self.scalars
        arguments: list[Any] = [None] * (scalars.first + len(scalars.numbers))
        unknown = scalars.fill(arguments, environment)
        extent = self.extent(environment)
        grain = self.grain(environment, extent)
        run: PartedLaunch | ScatterLaunch | cpu.RangeLaunch
        spans = edges(extent, self.parts) if self.summed and self.parts > 1 else ()
        if len(spans) > 1:
            run = PartedLaunch(self.function, spans, self.summed, self.copies)
        elif self.copies:
            run = ScatterLaunch(self.function, extent, grain, self.copies)
        else:
            run = cpu.RangeLaunch(self.function, extent, grain)
        arrays = tuple([(g.array, g.places(shapes), g.where) for g in self.groups])
        return Piece(run, tuple(arguments), arrays, unknown, (), scalars.uniforms, self.name)


def host_form(launch: Launch, function: cpu.RangeKernel) -> HostForm:
    """The form of a compiled kernel."""
    kernel = launch.kernel
    taken = tuple(b for b in kernel.buffers if b.space == "global")
    pattern, counts = kernel.pattern, kernel.counts
    first, last = (counts[0].name, counts[-1].name) if counts else (WORK, WORK)
    summed = summed_in_order(kernel, taken)

    def grain(environment: Environment, extent: int) -> int:
        if summed:
            return max(1, extent)
        least = pattern.grain(int(environment[WORK if WORK in environment else last]))
        if pattern.over_items:  # a turn of the loop may have several cells
            least = max(1, least * extent // max(1, int(environment[first])))
        return least

    scalars = Scalars.of(kernel, len(taken), host=True)
    groups, extent = groups_of(kernel, taken), extent_of(launch.extent)
    copies = own_copies(kernel, taken)
    return HostForm(
        kernel.name, function, groups, scalars, extent, grain, copies, kernel.parts, summed
    )


# ------------------------------------------------------------ on a GPU


@dataclass(frozen=True, slots=True)
class DeviceForm:
    """A kernel for a GPU.

    constants: arrays that are brought into its constant memory first, whose addresses are the last
    arguments.
    """

    kernel: ir.Kernel
    device: Device
    compiled: LoadedKernel
    groups: tuple[Group, ...]
    scalars: Scalars
    elements: Extent
    lanes: int
    parts: int
    counted: tuple[str, ...]
    constants: tuple[ir.BufferArgument, ...]

    @property
    def name(self) -> str:
        return self.kernel.name

    def piece(self, environment: Environment, shapes: Mapping[str, Shape]) -> Piece:
        """A launch with these counts.

        It waits for the arrays, and for the uniforms that are not known.

        Raises `PlanError` where there are more elements than a launch counts.
        """
        scalars = self.scalars
        end = scalars.first + len(scalars.numbers)
        arguments: list[Any] = [None] * (end + len(self.constants))
        unknown = scalars.fill(arguments, environment)
        elements = self.elements(environment)
        # Each part has results of all elements, and its own share of what is counted.
        counts = (int(environment[n]) for n in self.counted)
        if max([elements * self.parts, *counts]) > MAX_GRID_ELEMENTS:
            raise PlanError(
                f"{self.kernel.name} has more than {MAX_GRID_ELEMENTS:,} elements; a launch on a "
                "GPU counts them with 32 bits"
            )
        blocks = -(-elements // self.lanes)
        grid, compiled = (blocks, self.parts), self.compiled

        def launch(bound: Arguments) -> None:
            if blocks:
                compiled.launch(grid, bound)

        run = self._behind_constants(launch, end, shapes) if self.constants else launch
        arrays = tuple([(g.array, g.places(shapes), g.where) for g in self.groups])
        return Piece(run, tuple(arguments), arrays, unknown, (), scalars.uniforms, self.name)

    def _behind_constants(
        self, launch: Callable[[Arguments], None], end: int, shapes: Mapping[str, Shape]
    ) -> Callable[[Arguments], None]:
        """Fill constant memory, then launch.

        A loaded kernel has it once, for all calls that are bound to it.
        """
        compiled, copy = self.compiled, self.device.copy_at
        fills = [self._constant(b, shapes[b.array]) for b in self.constants]

        def run(bound: Arguments) -> None:
            with compiled.constant_lease:
                for (to, nbytes), source in zip(fills, bound[end:], strict=True):
                    copy(to, source, nbytes)
                launch(bound[:end])

        return run

    def _constant(self, b: ir.BufferArgument, shape: Shape) -> tuple[int, int]:
        """Where an array goes in the constant memory of the kernel, and how many bytes of it."""
        arrangement, count = shape
        address, size = self.compiled.constant(identifier(b.name) + "_array")
        return address, min(size, arrangement.buffers[b.buffer].bytes_for(count))


Form = InterpreterForm | HostForm | DeviceForm


def device_form(launch: Launch, device: Device, compiled: LoadedKernel) -> DeviceForm:
    """The form of a loaded kernel."""
    kernel = launch.kernel
    grid = kernel.grid
    assert grid is not None
    taken = tuple(b for b in kernel.buffers if b.space == "global" and not b.constant)
    constants = tuple(b for b in kernel.buffers if b.constant)
    scalars = Scalars.of(kernel, len(taken), host=False)
    # Counts of other types are no numbers of things; a pattern that is inlined has wide indices
    # where it needs them.
    counted = (
        () if kernel.pattern.inlined else tuple(c.name for c in kernel.counts if c.type.kind == "i")
    )
    behind = groups_of(kernel, constants, len(taken) + len(scalars.numbers))
    return DeviceForm(
        kernel,
        device,
        compiled,
        groups_of(kernel, taken) + behind,
        scalars,
        extent_of(launch.extent),
        grid.lanes,
        grid.parts,
        counted,
        constants,
    )


# ------------------------------------------------------------ besides the arguments


@dataclass(frozen=True, slots=True)
class BesideForm:
    """A buffer that a call has besides its arguments."""

    name: str
    buffer: Buffer
    arrangement: Arrangement
    length: Extent

    def nbytes(self, environment: Environment) -> int:
        """What it takes for these counts."""
        return self.arrangement.nbytes(self.length(environment))

    @property
    def what(self) -> str:
        """It is, in words."""
        return self.buffer.what or f"partial sums of {self.name}"

    def reserve(self, environment: Environment, own: OwnMemory) -> tuple[Shape, Any]:
        """Its shape for these counts, and room for it."""
        count, buffer = self.length(environment), self.buffer
        if count > MAX_GRID_ELEMENTS and not buffer.what:
            raise PlanError(
                f"{self.name} keeps {count:,} partial sums, and a launch on a GPU counts at most "
                f"{MAX_GRID_ELEMENTS:,} with 32 "
                "bits; Plan(reciprocity='ordered') and fewer parts keep less"
            )
        nbytes = self.nbytes(environment)
        return (self.arrangement, count), own.reserve(
            buffer.name, nbytes, self.what, zeroed=buffer.clean
        )


def beside_forms(sequence: Sequence) -> tuple[BesideForm, ...]:
    """What a call has besides its arguments."""
    forms: list[BesideForm] = []
    for buffer in sequence.beside:
        assert buffer.count is not None
        assert buffer.arrangement is not None
        length = extent_of(buffer.count)
        forms.append(BesideForm(sequence.name, buffer, buffer.arrangement, length))
    return tuple(forms)
