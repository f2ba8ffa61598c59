"""A program made runnable on one device: interpreted, by Numba, or by CUDA."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from lanewise._version import __version__
from lanewise.compiler.pipeline import Program
from lanewise.emit.cuda import emit_cuda
from lanewise.emit.numba import emit_numba
from lanewise.ir import nodes as ir
from lanewise.ir.interpreter import ArrayMemory, Interpreter
from lanewise.ir.names import COUNT, is_own, is_view
from lanewise.ir.printer import print_kernel
from lanewise.ir.series import launches, whole
from lanewise.language.target import (
    ASYNCHRONOUS_COPIES,
    copies_asynchronously,
    is_compiled,
    is_gpu,
    target_of,
)
from lanewise.launch.forms import (
    BesideForm,
    DeviceForm,
    HostForm,
    Shape,
    beside_forms,
    device_form,
    host_form,
)
from lanewise.launch.own_memory import OwnMemory, nothing
from lanewise.launch.tasks import Sequence as Tasks
from lanewise.launch.tasks import program_sequence
from lanewise.layouts import Arrangement
from lanewise.passes.base import refuse
from lanewise.passes.uniform_parameters import UNIFORMS, packed
from lanewise.planning.plan import NEUTRAL, Decisions
from lanewise.runtime import cpu, cuda, memory
from lanewise.runtime.memory import allocate
from lanewise.runtime.nvrtc import Cubin, Switches, compile_cubin, cuda_core
from lanewise.runtime.prepared import Flat, Piece, Places, Prepared, Views, host_views
from lanewise.support.errors import PlanError

# of a lattice: enough work to hide a call, few enough to stay in a cache
SLAB_SITES, MOST_SLABS = 32_768, 64


@dataclass(frozen=True, slots=True)
class BoundArray:
    """An array that takes part in a launch: its bytes on the device and where its leaves lie in
    them.

    check: raises `ArgumentError` where the array is no longer what was bound, and brings it up to
    date; None for memory that cannot change.
    mark: says that the array is changed, for kernels that write it.
    """

    data: Any
    arrangement: Arrangement
    count: int
    check: Callable[[], None] | None = None
    mark: Callable[[], None] | None = None


def checks_of(
    arrays: Mapping[str, BoundArray], kernel: ir.Kernel
) -> tuple[Callable[[], None], ...]:
    """What is asked and said before every launch of a kernel on these arrays: first what all of
    them hold, then what will have changed.
    """
    written = {a.name for a in kernel.arrays if a.written}
    checks = [b.check for b in arrays.values() if b.check is not None]
    return (*checks, *(b.mark for n, b in arrays.items() if b.mark is not None and n in written))


Arrays = Mapping[str, BoundArray]
Environment = Mapping[str, Any]
Launch = Callable[[], None]


@dataclass(frozen=True)
class Executable:
    """The compiled kernels of a program.

    `prepare` binds arrays and values, and gives a function that launches.
    """

    program: Program
    device: str
    cubins: tuple[Cubin, ...]
    kernels: tuple[Any, ...]

    @cached_property
    def source(self) -> str:
        """The generated text for people, with the user's files and lines; the compiled one has none
        (`generated_texts`).
        """
        if not is_compiled(self.device):
            return print_kernel(self.program.reference)
        return "\n\n".join(generated_texts(self.program, self.device, locations=True))

    @cached_property
    def sequence(self) -> Tasks:
        """What a call runs, as tasks over named buffers."""
        return program_sequence(self.program)

    @cached_property
    def forms(self) -> tuple[HostForm, ...] | tuple[DeviceForm, ...]:
        """The kernels as launches for any number of elements."""
        pairs = zip(self.sequence.launches, self.kernels, strict=True)
        if is_gpu(self.device):
            return tuple(device_form(launch, compiled) for launch, compiled in pairs)
        return tuple(host_form(launch, function) for launch, function in pairs)

    @cached_property
    def resizable(self) -> bool:
        """Whether other arrays and values are but other arguments: they are not packed, and need
        not lie apart.
        """
        packed_values = any(a.name == UNIFORMS for k in self.program.kernels for a in k.arrays)
        return bool(self.kernels) and not packed_values and not _parted(self.program)

    def own_memory(self, grown: Callable[[], None] = nothing) -> OwnMemory | None:
        """Room for what the launches have beside their arguments, if they have anything. grown: see
        `OwnMemory`.
        """
        return (
            OwnMemory(f"a bound call of {self.program.reference.name}", self.device, grown)
            if self._beside
            else None
        )

    def sized(
        self, environment: Environment, shapes: Mapping[str, Shape], own: OwnMemory | None
    ) -> Flat:
        """The launches for these counts and these shapes of arrays.

        They wait for the arrays and for values that are not known.

        own: memory that they share with launches of other sizes, see `own_memory`.
        """
        if own is None:
            return Flat(
                tuple(
                    [self.forms[n].piece(counts, shapes) for n, counts in self._order(environment)]
                ),
                None,
            )
        reserved = {b.buffer.name: b.reserve(environment, own) for b in self._beside}
        shapes = {**shapes, **{n: shape for n, (shape, _) in reserved.items()}}
        kept, names = tuple((n, data) for n, (_, data) in reserved.items()), frozenset(reserved)
        views = views_of_memory(dict(kept), self.device)
        made = (self.forms[n].piece(counts, shapes) for n, counts in self._order(environment))
        return Flat(tuple(p.holding(views, names, kept) for p in made), own.turns)

    def _order(self, environment: Environment) -> Iterable[tuple[int, Environment]]:
        """The number of the kernel of each launch, with its counts."""
        if self._in_turns:
            return launches(self.program.kernels, environment)
        return [(n, environment) for n in range(len(self.forms))]

    @cached_property
    def _ready(self) -> list[bool]:
        """Whether its kernels were compiled for arguments of their types: not empty then."""
        return []

    @cached_property
    def _beside(self) -> tuple[BesideForm, ...]:
        return beside_forms(self.sequence)

    @cached_property
    def _in_turns(self) -> bool:
        return any(k.series for k in self.program.kernels)

    def prepare(self, arrays: Arrays, environment: Environment) -> Launch:
        match target_of(self.device).name:
            case "python":
                memories = {
                    n: ArrayMemory(b.data, b.arrangement, b.count) for n, b in arrays.items()
                }
                interpreter, checks = (
                    Interpreter(self.program.reference, dict(environment), memories),
                    checks_of(arrays, self.program.reference),
                )
                return lambda: _checked_run(checks, interpreter.run)
            case "cpu":
                _check_apart(self.program, arrays)
                if self.program.reference.pattern.slabs and len(self.kernels) > 1:
                    return _slab_launch(self.sequence, self.kernels, arrays, environment)
                prepared = self._bound(arrays, environment)
                # Numba compiles at the first call; better now than within a timed run
                if not self._ready:
                    for piece, function in zip(prepared.pieces, self.kernels, strict=True):
                        cpu.prepare(function, (*piece.arguments, 0, 0))
                    self._ready.append(True)
                return prepared
            case "cuda":
                _check_apart(self.program, arrays)
                return self._bound(arrays, environment)
            case other:
                raise AssertionError(f"no device of kind {other}")

    def _bound(self, arrays: Arrays, environment: Environment) -> Prepared:
        """The launches on these arrays, with these values."""
        flat = self.sized(
            environment, {n: (b.arrangement, b.count) for n, b in arrays.items()}, self.own_memory()
        )
        packed_values = [_uniforms(k, self.device, environment) for k in self.program.kernels]
        pieces: list[Piece] = []
        for (n, _), p in zip(self._order(environment), flat.pieces, strict=True):
            taken = {**arrays, **packed_values[n]}
            arguments = p.filled(
                views_of_memory({m: b.data for m, b in taken.items()}, self.device), {}
            )
            # A pointer does not keep the memory that it points to.
            kept = tuple((a, taken[a]) for a, _, _ in p.arrays) if is_gpu(self.device) else ()
            uniforms = self.forms[n].scalars.uniforms
            pieces.append(replace(p, arguments=arguments, values=uniforms, kept=(*p.kept, *kept)))
        return Prepared(
            tuple(pieces), flat.turns, checks_of(arrays, self.program.reference), not self.resizable
        )


def views_of_memory(data: Mapping[str, Any], device: str) -> Views:
    """The arguments of launches for bytes by name."""
    if is_gpu(device):

        def addresses(name: str, places: Places) -> list[Any]:
            base = memory.address(data[name])
            return [base + start for start in places.starts]

        return addresses
    return lambda name, places: host_views(data[name], places)


def _checked_run(checks: tuple[Callable[[], None], ...], run: Launch) -> None:
    for check in checks:
        check()
    run()


def build_executable(
    program: Program, device: str, arch: str | None = None, texts: Sequence[str] | None = None
) -> Executable:
    """Emit and compile a program; with `texts` those, which `generated_texts` made of it before.

    With `arch` it is compiled for that GPU architecture and not loaded: no GPU is needed.
    """
    kind = target_of(device).name
    if kind == "python":
        return Executable(program, device, (), ())
    if not is_gpu(kind):
        bits = program.plan.vector_bits
        if problem := cpu.width_problem(bits):
            raise refuse(
                "SIMD width", program.reference, f"{problem}; choose a smaller vector_bits, or 0"
            )
        texts = texts or generated_texts(program, device, locations=False)
        return Executable(
            program,
            device,
            (),
            tuple(cpu.load_kernel(x, k.name) for x, k in zip(texts, program.kernels, strict=True)),
        )
    texts = texts or generated_texts(program, device, locations=False)
    target = arch or cuda.architecture(device)
    if program.plan.prefetch.startswith("async") and not copies_asynchronously(target):
        reason = (
            f"asynchronous copies need architecture sm_{ASYNCHRONOUS_COPIES} or newer, and this is "
            f"{target}"
        )
        raise refuse("prefetching", program.reference, f"{reason}; choose prefetch='registers'")
    if arch is None:
        cuda_core()  # which loads them: imported while the compiler is at work
    asked = switches_of(program.plan)
    cubins = tuple(
        compile_cubin(x, k.name, target, asked) for x, k in zip(texts, program.kernels, strict=True)
    )
    loaded: tuple[Any, ...] = ()
    if arch is None:
        loaded = tuple(
            cuda.CudaKernel(device, c, k.name, _grid(k).threads)
            for c, k in zip(cubins, program.kernels, strict=True)
        )
    return Executable(program, device, cubins, loaded)


def switches_of(plan: Decisions) -> Switches:
    """What a plan asks of the compiler of a GPU."""
    return Switches(fast_math=plan.fast_math, in_order=plan.schedule == "written")


def generated_texts(program: Program, device: str, *, locations: bool) -> list[str]:
    """The text of each kernel of a program: see `generated_text`."""
    return [
        generated_text(program.reference, program.plan, k, device, locations=locations)
        for k in program.kernels
    ]


def generated_text(
    reference: ir.Kernel, plan: Decisions, kernel: ir.Kernel, device: str, *, locations: bool
) -> str:
    """The text of a kernel that a plan made of a reference kernel.

    With `locations` it names the user's files and lines. What is compiled has none, so that machine
    code is found again whatever the file is called and wherever in it the function stands; a
    profiler's lines are those of the compiled text.
    """
    header = (
        f"lanewise {__version__}: {reference.name}, {reference.pattern.name}\nplan: {plan.short()}"
    )
    if is_gpu(device):
        return emit_cuda(kernel, header, locations=locations)
    fast, bits = plan.fast_math, plan.vector_bits
    return emit_numba(kernel, header, fast_math=fast, vector_bits=bits, locations=locations)


def _check_apart(program: Program, arrays: Arrays) -> None:
    """Several kernels in place of one read what earlier ones may have written: no array may lie in
    the memory of another.
    """
    fields = _parted(program)
    if not fields:
        return
    # views have the memory of an array in common, and know it
    arrays = {n: b for n, b in arrays.items() if not is_view(n)}
    written = {
        a.name
        for k in (program.reference, *program.kernels)
        for a in k.arrays
        if a.written and a.name in arrays
    }
    for name in sorted(written):
        for other in sorted(arrays.keys() - {name}):
            if memory.overlap(arrays[name].data, arrays[other].data):
                both = " and ".join(
                    "the result" if is_own(n) else n for n in sorted((name, other), reverse=True)
                )
                field, _, _ = fields[0].partition("=")
                raise PlanError(
                    f"Plan({', '.join(fields)}) of {program.reference.name}: {both} share memory, "
                    "and one kernel would overwrite what "
                    f"another one reads; choose {field}={getattr(NEUTRAL, field)!r}, or give them "
                    "memory of their own"
                )


def _parted(program: Program) -> list[str]:
    """The decisions by which several kernels stand in place of one."""
    if len(program.kernels) < 2:
        return []
    return [
        f"{n}={v!r}"
        for n, v in (("fission", True), ("branches", "apart"))
        if getattr(program.plan, n) == v
    ]


def _grid(kernel: ir.Kernel) -> ir.Grid:
    assert kernel.grid is not None
    return kernel.grid


def _slab_launch(
    sequence: Tasks,
    functions: tuple[cpu.RangeKernel, ...],
    arrays: Arrays,
    environment: Environment,
) -> Launch:
    """The kernels of parts of the sites, slab by slab: sites at faces and walls while their
    neighbours are in the caches.
    """
    count = int(environment[COUNT])
    slabs = max(1, min(MOST_SLABS, count // SLAB_SITES))
    units = np.linspace(0, -(-count // cpu.SLAB_UNIT), slabs + 1).astype(np.int64)
    work: list[cpu.Slabbed] = []
    views = views_of_memory({n: b.data for n, b in arrays.items()}, "cpu")
    shapes = {n: (b.arrangement, b.count) for n, b in arrays.items()}
    for launch, function in zip(sequence.launches, functions, strict=True):
        kernel = launch.kernel
        # spans, runs or sites, units of a slab in ascending order
        listed = arrays[kernel.arrays[-1].name]
        if not listed.count:
            continue
        arguments = host_form(launch, function).piece(environment, shapes).filled(views, {})
        first = listed.data.view(np.int64).reshape(listed.count, -1)[:, 0]
        cpu.prepare(function, (*arguments, 0, 0))
        work.append(
            cpu.Slabbed(
                function,
                arguments,
                [int(x) for x in np.searchsorted(first // cpu.SLAB_UNIT, units)],
            )
        )
    return lambda: cpu.run_slabs(work)


def scratch_bytes(program: Program, environment: Environment) -> int:
    """The memory in bytes that a program takes beside its arguments."""
    beside = program_sequence(program).beside
    return sum(
        b.arrangement.nbytes(whole(b.count, environment)) for b in beside if b.count is not None
    )


def _uniforms(kernel: ir.Kernel, device: str, environment: Environment) -> dict[str, BoundArray]:
    """The record of uniform arguments of a kernel that loads them from global memory."""
    record = packed(kernel, environment)
    if record is None:
        return {}
    array, values = record
    data = allocate(device, values.nbytes, f"the uniforms of {kernel.name}")
    data.set(values)
    return {array.name: BoundArray(data, array.arrangement, 1)}
