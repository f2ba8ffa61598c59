"""A program made runnable on one device: interpreted, by LLVM, or by CUDA."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from lanewise._version import __version__
from lanewise.compiler.pipeline import Program
from lanewise.emit.cuda import emit_cuda
from lanewise.emit.llvm import emit_llvm
from lanewise.ir import nodes as ir
from lanewise.ir.names import is_own, is_view
from lanewise.ir.printer import print_kernel
from lanewise.ir.series import launches
from lanewise.language.target import (
    ASYNCHRONOUS_COPIES,
    copies_asynchronously,
    is_compiled,
    is_gpu,
    target_of,
)
from lanewise.launch.forms import (
    Form,
    HostForm,
    InterpreterForm,
    Shape,
    device_form,
    host_form,
)
from lanewise.launch.scattering import PartedLaunch, ScatterLaunch
from lanewise.launch.slabs import SlabLaunch, slab_piece
from lanewise.launch.task_list import Arrays, TaskList, views_of_memory
from lanewise.launch.tasks import Sequence, program_sequence, reference_sequence
from lanewise.passes.base import refuse
from lanewise.passes.uniform_parameters import UNIFORMS, packed
from lanewise.planning.plan import NEUTRAL, CompletePlan
from lanewise.runtime import cpu, memory
from lanewise.runtime.device import get_device
from lanewise.runtime.memory import allocate
from lanewise.runtime.nvrtc import Cubin, Switches, compile_cubin, cuda_core
from lanewise.runtime.prepared import Piece
from lanewise.support.errors import PlanError

Environment = Mapping[str, Any]
Launch = Callable[[], None]


@dataclass(frozen=True)
class Executable:
    """The compiled kernels of a program.

    `prepare` binds arrays and values, and gives a function that launches. capped: the plan that
    was chosen, where its cap of registers was lifted, as the compiler would have spilled them.
    """

    program: Program
    device: str
    cubins: tuple[Cubin, ...]
    kernels: tuple[Any, ...]
    capped: CompletePlan | None = None

    @cached_property
    def source(self) -> str:
        """The generated text for people, with the user's files and lines; the compiled one has none
        (`generated_texts`).
        """
        if not is_compiled(self.device):
            return print_kernel(self.program.reference)
        return "\n\n".join(generated_texts(self.program, self.device, locations=True))

    @property
    def sequence(self) -> Sequence:
        return self._sequence

    @cached_property
    def _sequence(self) -> Sequence:
        """What a call of its kernels runs, as tasks over named buffers."""
        if target_of(self.device).name == "python":
            return reference_sequence(self.program.reference)
        return program_sequence(self.program)

    @cached_property
    def tasks(self) -> TaskList:
        """A call of its kernels, and nothing besides."""
        return TaskList(self.program.reference.name, self.device, (self,))

    @cached_property
    def forms(self) -> tuple[Form, ...]:
        """The kernels as launches for any number of elements."""
        if target_of(self.device).name == "python":
            return (InterpreterForm(self.program.reference),)
        pairs = zip(self.sequence.launches, self.kernels, strict=True)
        if is_gpu(self.device):
            there = get_device(self.device)
            return tuple(device_form(launch, there, compiled) for launch, compiled in pairs)
        return tuple(host_form(launch, function) for launch, function in pairs)

    @property
    def resizable(self) -> bool:
        """Whether other arrays and values are but other arguments: they are not packed, and need
        not lie apart.
        """
        return bool(self.kernels) and not self._packs and not _parted(self.program)

    @cached_property
    def _packs(self) -> bool:
        """Whether kernels read values from memory."""
        return any(a.name == UNIFORMS for k in self.program.kernels for a in k.arrays)

    def pieces(self, environment: Environment, shapes: Mapping[str, Shape]) -> list[Piece]:
        """The launches for these counts and these shapes of arrays.

        They wait for the arrays, and for values that are not known.
        """
        if self._slabs:
            lists = [kernel.arrays[-1].name for kernel in self.program.kernels]
            name = self.program.reference.name
            return [slab_piece(name, self._slabs, lists, environment, shapes)]
        if self._in_turns:
            turns = launches(self.program.kernels, environment)
            made = [(n, self.forms[n].piece(counts, shapes)) for n, counts in turns]
            return [self._packed(n, p, environment) for n, p in made]
        pieces = [form.piece(environment, shapes) for form in self.forms]
        if not self._packs:
            return pieces
        return [self._packed(n, p, environment) for n, p in enumerate(pieces)]

    def _packed(self, number: int, piece: Piece, environment: Environment) -> Piece:
        """The launch of a kernel with its values in memory, if it reads them there."""
        if not self._packs:
            return piece
        data = _uniforms(self.program.kernels[number], self.device, environment)
        filled = piece.bound(views_of_memory(data, self.device), data)
        return replace(filled, values=piece.values)

    @cached_property
    def _ready(self) -> list[bool]:
        """Whether its kernels were compiled for arguments of their types: not empty then."""
        return []

    @cached_property
    def _slabs(self) -> tuple[HostForm, ...]:
        """The kernels, where they run one slab of sites after the other."""
        if not self._on_cpu or len(self.kernels) < 2 or not self.program.reference.pattern.slabs:
            return ()
        return tuple(form for form in self.forms if isinstance(form, HostForm))

    @cached_property
    def _in_turns(self) -> bool:
        return any(k.series for k in self.program.kernels)

    def check(self, arrays: Arrays) -> None:
        """Raise `PlanError` for arrays that share memory and must not."""
        if self.kernels:
            _check_apart(self.program, arrays)

    @property
    def _on_cpu(self) -> bool:
        return target_of(self.device).name == "cpu"

    def compile(self, pieces: Iterable[Piece]) -> None:
        """On a CPU LLVM compiles at the first call; better now than within a timed run."""
        if not self._on_cpu or self._ready:
            return
        for piece in pieces:
            assert isinstance(
                piece.run, cpu.RangeLaunch | ScatterLaunch | PartedLaunch | SlabLaunch
            )
            piece.run.prepare()
        # of slabs, those kernels take part whose lists hold something: others the next time
        self._ready.extend(() if self._slabs else (True,))


def build_executable(
    program: Program, device: str, arch: str | None = None, texts: Iterable[str] | None = None
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
    there = get_device(device)
    target = arch or there.architecture()
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
            there.load_cubin(c, k.name, _grid(k).threads)
            for c, k in zip(cubins, program.kernels, strict=True)
        )
    return Executable(program, device, cubins, loaded)


def switches_of(plan: CompletePlan) -> Switches:
    """What a plan asks of the compiler of a GPU."""
    return Switches(fast_math=plan.fast_math, in_order=plan.schedule == "written")


def generated_texts(program: Program, device: str, *, locations: bool) -> list[str]:
    """The text of each kernel of a program: see `generated_text`."""
    return [
        generated_text(program.reference, program.plan, k, device, locations=locations)
        for k in program.kernels
    ]


def generated_text(
    reference: ir.Kernel, plan: CompletePlan, kernel: ir.Kernel, device: str, *, locations: bool
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
    return emit_llvm(kernel, header, fast_math=fast, vector_bits=bits, locations=locations)


def _check_apart(program: Program, arrays: Arrays) -> None:
    """Several kernels that replace one read what earlier ones may have written: no array may lie in
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
                    "their own memory"
                )


def _parted(program: Program) -> list[str]:
    """The decisions by which several kernels replace one."""
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


def _uniforms(kernel: ir.Kernel, device: str, environment: Environment) -> dict[str, Any]:
    """The record of uniform arguments of a kernel that loads them from global memory."""
    record = packed(kernel, environment)
    if record is None:
        return {}
    array, values = record
    data = allocate(device, values.nbytes, f"the uniforms of {kernel.name}")
    data.set(values)
    return {array.name: data}
