"""A program made runnable on one device: interpreted, by Numba, or by CUDA."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lanewise._version import __version__
from lanewise.compiler.pipeline import Program
from lanewise.emit.cuda import emit_cuda
from lanewise.emit.numba import emit_numba
from lanewise.ir import nodes as ir
from lanewise.ir.interpreter import Interpreter, Memory
from lanewise.ir.names import COUNT, WORK, identifier, is_own, is_view
from lanewise.ir.printer import print_kernel
from lanewise.ir.series import launches, whole
from lanewise.language.target import ASYNCHRONOUS_COPIES, copies_asynchronously, is_compiled, is_gpu, target_of
from lanewise.layouts import Arrangement
from lanewise.passes.base import refuse
from lanewise.passes.uniform_parameters import UNIFORMS, packed
from lanewise.planning.plan import NEUTRAL, Decisions
from lanewise.runtime import cpu, cuda, memory
from lanewise.runtime.memory import allocate, on
from lanewise.runtime.nvrtc import Cubin, Switches, compile_cubin, cuda_core
from lanewise.runtime.prepared import ArrayPlace, Piece, Prepared, host_view
from lanewise.support.errors import PlanError

SLAB_SITES, MOST_SLABS = 32_768, 64  # of a lattice: enough work to hide a call, few enough to stay in a cache
MAX_GRID_ELEMENTS = 2**31 - 2**16  # indices on the GPU have 32 bits


@dataclass(frozen=True, slots=True)
class BoundArray:
    """An array that takes part in a launch: its bytes on the device and where its leaves lie in them.

    check: raises `ArgumentError` where the array is no longer what was bound, and brings it up to date; None for memory that cannot change.
    mark: says that the array is changed, for kernels that write it.
    """

    data: Any
    arrangement: Arrangement
    count: int
    check: Callable[[], None] | None = None
    mark: Callable[[], None] | None = None


def checks_of(arrays: Mapping[str, BoundArray], kernel: ir.Kernel) -> tuple[Callable[[], None], ...]:
    """What is asked and said before every launch of a kernel on these arrays: first what all of them hold, then what will have changed."""
    written = {a.name for a in kernel.arrays if a.written}
    checks = [b.check for b in arrays.values() if b.check is not None]
    return (*checks, *(b.mark for n, b in arrays.items() if b.mark is not None and n in written))


Arrays = Mapping[str, BoundArray]
Environment = Mapping[str, Any]
Launch = Callable[[], None]


@dataclass(frozen=True)
class Executable:
    """The compiled kernels of a program. `prepare` binds arrays and values, and gives a function that launches."""

    program: Program
    device: str
    cubins: tuple[Cubin, ...]
    kernels: tuple[Any, ...]

    @cached_property
    def source(self) -> str:
        """The generated text for people, with the user's files and lines; the compiled one has none (`generated_texts`)."""
        if not is_compiled(self.device):
            return print_kernel(self.program.reference)
        return "\n\n".join(generated_texts(self.program, self.device, locations=True))

    def prepare(self, arrays: Arrays, environment: Environment) -> Launch:
        match target_of(self.device).name:
            case "python":
                memories = {n: Memory(b.data, b.arrangement, b.count) for n, b in arrays.items()}
                interpreter, checks = (
                    Interpreter(self.program.reference, dict(environment), memories),
                    checks_of(arrays, self.program.reference),
                )
                return lambda: _checked_run(checks, interpreter.run)
            case "cpu":
                _check_apart(self.program, arrays)
                if self.program.reference.pattern.slabs and len(self.kernels) > 1:
                    return _slab_launch(self.program, self.kernels, arrays, environment)
                scratch = _scratch(self.program, self.device, environment)
                turns = cuda.turns(f"a bound call of {self.program.reference.name}", self.device) if scratch else None
                return Prepared(
                    tuple(
                        _cpu_piece(k, f, {**arrays, **scratch}, environment, _is_rigid(self.program, k))
                        for k, f in zip(self.program.kernels, self.kernels, strict=True)
                    ),
                    turns,
                    checks_of(arrays, self.program.reference),
                )
            case "cuda":
                _check_apart(self.program, arrays)
                scratch = _scratch(self.program, self.device, environment)
                complete = {**arrays, **scratch}
                turns = cuda.turns(f"a bound call of {self.program.reference.name}", self.device) if scratch else None
                values = [_uniforms(k, self.device, environment) for k in self.program.kernels]
                return Prepared(
                    tuple(
                        _cuda_piece(
                            self.program.kernels[n],
                            self.kernels[n],
                            {**complete, **values[n]},
                            counts,
                            _is_rigid(self.program, self.program.kernels[n]),
                        )
                        for n, counts in launches(self.program.kernels, environment)
                    ),
                    turns,
                    checks_of(arrays, self.program.reference),
                )
            case other:
                raise AssertionError(f"no device of kind {other}")


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
            raise refuse("SIMD width", program.reference, f"{problem}; choose a smaller vector_bits, or 0")
        texts = texts or generated_texts(program, device, locations=False)
        return Executable(
            program, device, (), tuple(cpu.load_kernel(x, k.name) for x, k in zip(texts, program.kernels, strict=True))
        )
    texts = texts or generated_texts(program, device, locations=False)
    target = arch or cuda.architecture(device)
    if program.plan.prefetch.startswith("async") and not copies_asynchronously(target):
        reason = f"asynchronous copies need architecture sm_{ASYNCHRONOUS_COPIES} or newer, and this is {target}"
        raise refuse("prefetching", program.reference, f"{reason}; choose prefetch='registers'")
    if arch is None:
        cuda_core()  # which loads them: imported while the compiler is at work
    asked = switches_of(program.plan)
    cubins = tuple(compile_cubin(x, k.name, target, asked) for x, k in zip(texts, program.kernels, strict=True))
    loaded: tuple[Any, ...] = ()
    if arch is None:
        loaded = tuple(
            cuda.CudaKernel(device, c, k.name, _grid(k).threads) for c, k in zip(cubins, program.kernels, strict=True)
        )
    return Executable(program, device, cubins, loaded)


def switches_of(plan: Decisions) -> Switches:
    """What a plan asks of the compiler of a GPU."""
    return Switches(fast_math=plan.fast_math, in_order=plan.schedule == "written")


def generated_texts(program: Program, device: str, *, locations: bool) -> list[str]:
    """The text of each kernel of a program: see `generated_text`."""
    return [generated_text(program.reference, program.plan, k, device, locations=locations) for k in program.kernels]


def generated_text(reference: ir.Kernel, plan: Decisions, kernel: ir.Kernel, device: str, *, locations: bool) -> str:
    """The text of a kernel that a plan made of a reference kernel.

    With `locations` it names the user's files and lines. What is compiled has none, so that machine code is found again whatever
    the file is called and wherever in it the function stands; a profiler's lines are those of the compiled text.
    """
    header = f"lanewise {__version__}: {reference.name}, {reference.pattern.name}\nplan: {plan.short()}"
    if is_gpu(device):
        return emit_cuda(kernel, header, locations=locations)
    fast, bits = plan.fast_math, plan.vector_bits
    return emit_numba(kernel, header, fast_math=fast, vector_bits=bits, locations=locations)


def _check_apart(program: Program, arrays: Arrays) -> None:
    """Several kernels in place of one read what earlier ones may have written: no array may lie in the memory of another."""
    fields = _parted(program)
    if not fields:
        return
    arrays = {
        n: b for n, b in arrays.items() if not is_view(n)
    }  # views have the memory of an array in common, and know it
    written = {
        a.name for k in (program.reference, *program.kernels) for a in k.arrays if a.written and a.name in arrays
    }
    for name in sorted(written):
        for other in sorted(arrays.keys() - {name}):
            if memory.overlap(arrays[name].data, arrays[other].data):
                both = " and ".join("the result" if is_own(n) else n for n in sorted((name, other), reverse=True))
                field, _, _ = fields[0].partition("=")
                raise PlanError(
                    f"Plan({', '.join(fields)}) of {program.reference.name}: {both} share memory, and one kernel would overwrite what "
                    f"another one reads; choose {field}={getattr(NEUTRAL, field)!r}, or give them memory of their own"
                )


def _parted(program: Program) -> list[str]:
    """The decisions by which several kernels stand in place of one."""
    if len(program.kernels) < 2:
        return []
    return [f"{n}={v!r}" for n, v in (("fission", True), ("branches", "apart")) if getattr(program.plan, n) == v]


def _grid(kernel: ir.Kernel) -> ir.Grid:
    assert kernel.grid is not None
    return kernel.grid


def _is_rigid(program: Program, kernel: ir.Kernel) -> bool:
    """Whether other arrays or values are more than other arguments: constant memory, packed values, arrays that must lie apart."""
    packed_values = any(a.name == UNIFORMS for a in kernel.arrays)
    return packed_values or any(b.constant for b in kernel.buffers) or bool(_parted(program))


def _scalars(kernel: ir.Kernel, environment: Environment) -> tuple[Any, ...]:
    return tuple(p.type.dtype.type(environment[p.name]) for p in kernel.counts + kernel.uniforms)


def _value_places(kernel: ir.Kernel, first: int) -> tuple[tuple[str, int], ...]:
    """The uniforms among the arguments, whose scalars begin at `first`."""
    behind = first + len(kernel.counts)
    return tuple((u.name, behind + n) for n, u in enumerate(kernel.uniforms))


def _array_place(b: ir.BufferArgument, bound: BoundArray, position: int) -> ArrayPlace:
    offset = bound.arrangement.starts(bound.count)[b.buffer]
    size = bound.arrangement.buffers[b.buffer].bytes_for(bound.count)
    return ArrayPlace(b.array, position, offset, size, b.type.dtype)


def _cpu_piece(
    kernel: ir.Kernel, function: cpu.RangeKernel, arrays: Arrays, environment: Environment, rigid: bool
) -> Piece:
    taken = tuple(b for b in kernel.buffers if b.space == "global")
    places = tuple(_array_place(b, arrays[b.array], n) for n, b in enumerate(taken))
    buffers = tuple(host_view(arrays[p.name].data, p) for p in places)
    arguments = buffers + tuple(int(x) if isinstance(x, np.integer) else x for x in _scalars(kernel, environment))
    (loop,) = kernel.body
    assert isinstance(loop, ir.Parallel)
    extent = whole(loop.extent, environment)
    grain = kernel.pattern.grain(int(environment[WORK if WORK in environment else kernel.counts[-1].name]))
    if kernel.pattern.over_items:  # a turn of the loop may have several cells
        grain = max(1, grain * extent // max(1, int(environment[kernel.counts[0].name])))
    cpu.prepare(function, (*arguments, 0, 0))  # Numba compiles at the first call; better now than within a timed run
    return Piece(
        cpu.RangeLaunch(function, extent, grain), arguments, places, _value_places(kernel, len(buffers)), rigid=rigid
    )


def _slab_launch(
    program: Program, functions: tuple[cpu.RangeKernel, ...], arrays: Arrays, environment: Environment
) -> Launch:
    """The kernels of parts of the sites, slab by slab: sites at faces and walls while their neighbours are in the caches."""
    count = int(environment[COUNT])
    slabs = max(1, min(MOST_SLABS, count // SLAB_SITES))
    units = np.linspace(0, -(-count // cpu.SLAB_UNIT), slabs + 1).astype(np.int64)
    work: list[cpu.Slabbed] = []
    for kernel, function in zip(program.kernels, functions, strict=True):
        buffers = tuple(host_view(arrays[b.array].data, _array_place(b, arrays[b.array], 0)) for b in kernel.buffers)
        arguments = buffers + tuple(int(x) if isinstance(x, np.integer) else x for x in _scalars(kernel, environment))
        listed = arrays[kernel.arrays[-1].name]  # spans, runs or sites, units of a slab in ascending order
        if not listed.count:
            continue
        first = listed.data.view(np.int64).reshape(listed.count, -1)[:, 0]
        cpu.prepare(function, (*arguments, 0, 0))
        work.append(cpu.Slabbed(function, arguments, [int(x) for x in np.searchsorted(first // cpu.SLAB_UNIT, units)]))
    return lambda: cpu.run_slabs(work)


def _cuda_piece(
    kernel: ir.Kernel, compiled: cuda.CudaKernel, arrays: Arrays, environment: Environment, rigid: bool
) -> Piece:
    constant = [b for b in kernel.buffers if b.constant]
    constants = [_constant(compiled, b, arrays[b.array]) for b in constant]
    taken = tuple(b for b in kernel.buffers if b.space == "global" and not b.constant)
    places = tuple(_array_place(b, arrays[b.array], n) for n, b in enumerate(taken))
    pointers = tuple(memory.address(arrays[p.name].data) + p.offset for p in places)
    arguments = pointers + _scalars(kernel, environment)
    grid = _grid(kernel)
    elements = whole(grid.extent, environment)
    shape = (-(-elements // grid.lanes), grid.parts)
    counted = [
        int(environment[c.name]) for c in kernel.counts if c.type.kind == "i"
    ]  # the others are no numbers of things
    if kernel.pattern.inlined:  # its indices are wide where an extent or a shape needs it
        counted = []
    if max([elements, *counted]) * grid.parts > MAX_GRID_ELEMENTS:
        raise PlanError(
            f"{kernel.name} has more than {MAX_GRID_ELEMENTS:,} elements; a launch on a GPU counts them with 32 bits"
        )

    def launch(bound: tuple[Any, ...]) -> None:
        if shape[0]:
            compiled.launch(shape, bound)

    def filled(bound: tuple[Any, ...]) -> None:
        with (
            compiled.constant_turns
        ):  # a loaded kernel has its constant memory once, for all calls that are bound to it
            for fill in constants:
                fill()
            launch(bound)

    kept = tuple(
        (b.array, arrays[b.array]) for b in (*taken, *constant)
    )  # a pointer does not keep the memory that it points to
    return Piece(
        filled if constants else launch, arguments, places, _value_places(kernel, len(pointers)), kept, rigid=rigid
    )


def _constant(compiled: cuda.CudaKernel, b: ir.BufferArgument, bound: BoundArray) -> Launch:
    """What brings an array into the constant memory of a kernel."""
    address, size = compiled.constant(identifier(b.name) + "_array")
    source = memory.address(bound.data) + bound.arrangement.starts(bound.count)[b.buffer]
    nbytes = min(size, bound.arrangement.buffers[b.buffer].bytes_for(bound.count))
    return lambda: cuda.copy_within(compiled.device, address, source, nbytes)


def scratch_bytes(program: Program, environment: Environment) -> int:
    """The memory in bytes that a program takes beside its arguments."""
    return sum(
        k.array(s.array).arrangement.nbytes(whole(s.length, environment)) for k in program.kernels for s in k.scratch
    )


def _scratch(program: Program, device: str, environment: Environment) -> dict[str, BoundArray]:
    """The memory that a program needs beside its arguments: partial sums, counters."""
    bound: dict[str, BoundArray] = {}
    for kernel in program.kernels:
        for s in kernel.scratch:
            a, count = kernel.array(s.array), whole(s.length, environment)
            if count > MAX_GRID_ELEMENTS:
                raise PlanError(
                    f"{kernel.name} keeps {count:,} partial sums, and a launch on a GPU counts at most {MAX_GRID_ELEMENTS:,} with 32 "
                    "bits; Plan(reciprocity='ordered') and fewer parts keep less"
                )
            data = allocate(device, a.arrangement.nbytes(count), f"partial sums of {kernel.name}")
            if s.zeroed:
                with on(device):
                    data[:] = 0
            bound[a.name] = BoundArray(data, a.arrangement, count)
    return bound


def _uniforms(kernel: ir.Kernel, device: str, environment: Environment) -> dict[str, BoundArray]:
    """The record of uniform arguments of a kernel that loads them from global memory."""
    record = packed(kernel, environment)
    if record is None:
        return {}
    array, values = record
    data = allocate(device, values.nbytes, f"the uniforms of {kernel.name}")
    data.set(values)
    return {array.name: BoundArray(data, array.arrangement, 1)}
