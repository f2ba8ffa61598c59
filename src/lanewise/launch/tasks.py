"""A call as data: tasks over named buffers, in the order in which they run.

    Sequence: buffers (argument, result, temporary, kept) and tasks
        Launch: a kernel, what it reads and writes, how many elements it runs over
        Copy: bytes of one buffer to another one
        Exchange: rows of the parts of a mesh to the memory of others
        Primitive: code written by hand (`primitives/`), what it reads and writes
        Host: a function of the host that waits for the device, and may refuse what follows
Addresses, values and counts are open: one sequence stands for calls of all sizes. The engine makes
flat lists of launches of it (`launch/task_list.py`), `launch/task_verifier.py` says whether it is
sound, and explanations list it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Any, NamedTuple

from lanewise.compiler.pipeline import Program
from lanewise.ir import nodes as ir
from lanewise.ir.functions import functions
from lanewise.ir.names import is_own, is_view
from lanewise.ir.traverse import loads, statements, stores
from lanewise.launch.sent import Law
from lanewise.layouts import Arrangement
from lanewise.passes.uniform_parameters import UNIFORMS


class Role(Enum):
    """Whose memory a buffer is, and how long it holds what."""

    ARGUMENT = "argument"  # the caller's, filled before
    RESULT = "result"  # the caller's, filled by the call
    TEMPORARY = "temporary"  # the call's, of any contents before and after it
    KEPT = "kept"  # the call's, which keeps its contents from run to run


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory by name.

    arrangement: None where no kernel says how it lies. count: of its elements; None: as many as
    the caller's array has, or as its owner made it. clean: zero before and after a run.
    what: it is, for errors; "" for partial sums of kernels.
    """

    name: str
    role: Role
    arrangement: Arrangement | None = None
    count: ir.Expression | None = None
    clean: bool = False
    what: str = ""


class Access(NamedTuple):
    """What a task does with a buffer."""

    buffer: str
    reads: bool
    writes: bool


@dataclass(frozen=True)
class Launch:
    """A kernel over so many elements.

    It is launched once, or for each turn of its series (`ir/series.py`). names: of buffers of the
    call, by those that its kernel has for them, where these are others.
    """

    kernel: ir.Kernel
    names: Mapping[str, str] = field(default_factory=dict[str, str])

    @cached_property
    def accesses(self) -> tuple[Access, ...]:
        """What it does with the memory of the device.

        It is read off its statements on demand.
        """
        return _named(accesses_of(self.kernel), self.names)

    @property
    def name(self) -> str:
        return self.kernel.name

    @property
    def extent(self) -> ir.Expression:
        """How many elements, or blocks of them."""
        if self.kernel.grid is not None:
            return self.kernel.grid.extent
        (loop,) = self.kernel.body
        assert isinstance(loop, ir.Parallel)
        return loop.extent


@dataclass(frozen=True, slots=True)
class Copy:
    """The first bytes of a buffer, as many as fit, to the constant memory of a kernel."""

    source: str
    target: str

    @property
    def name(self) -> str:
        return f"copy of {self.source}"

    @property
    def accesses(self) -> tuple[Access, ...]:
        return Access(self.source, reads=True, writes=False), Access(
            self.target, reads=False, writes=True
        )


@dataclass(frozen=True, slots=True)
class Exchange:
    """What the parts of a mesh need of each other: columns of some buffers, to others.

    run: puts the copies in order with the streams of all devices (`runtime/exchange.py`). nbytes:
    that it writes. laws: what it copies.
    """

    name: str
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    run: Callable[[], object]
    nbytes: int = 0
    laws: tuple[Law, ...] = ()

    @property
    def accesses(self) -> tuple[Access, ...]:
        return *reading(*self.sources), *writing(*self.targets)


@dataclass(frozen=True, slots=True)
class Primitive:
    """Code that is written by hand, on the device of the call.

    run: takes what `read` makes of memory, then the memory of the buffers `takes`, as arrays in
    one row each, and behind them the numbers of the call that `counts` names. read: arrays of
    records, each with what makes of its memory what `run` takes; memory is bytes on the host, an
    address on a GPU. waits: whether the host takes part, so that no graph can hold it.
    """

    name: str
    run: Callable[..., object]
    accesses: tuple[Access, ...] = ()
    takes: tuple[str, ...] = ()
    counts: tuple[str, ...] = ()
    waits: bool = False
    read: tuple[tuple[str, Callable[[Any], Any]], ...] = ()


@dataclass(frozen=True, slots=True)
class Host:
    """A function of the host, which waits for the device. gate: it raises where what follows must
    not run.
    """

    name: str
    run: Callable[..., object]
    accesses: tuple[Access, ...] = ()
    takes: tuple[str, ...] = ()
    gate: bool = False

    @property
    def counts(self) -> tuple[str, ...]:
        return ()

    @property
    def read(self) -> tuple[()]:
        return ()

    @property
    def waits(self) -> bool:
        return True


Task = Launch | Copy | Exchange | Primitive | Host


def reading(*buffers: str) -> tuple[Access, ...]:
    """Buffers that a task reads."""
    return tuple(Access(n, reads=True, writes=False) for n in buffers)


def writing(*buffers: str) -> tuple[Access, ...]:
    """Buffers that a task writes, whatever they held."""
    return tuple(Access(n, reads=False, writes=True) for n in buffers)


def changing(*buffers: str) -> tuple[Access, ...]:
    """Buffers that a task reads and writes."""
    return tuple(Access(n, reads=True, writes=True) for n in buffers)


@dataclass(frozen=True, slots=True)
class Sequence:
    """Tasks in their order, and the buffers that they touch.

    changed: arguments that a call may write. counts: numbers that a call knows besides those that
    its kernels take.
    """

    name: str
    buffers: Mapping[str, Buffer]
    tasks: tuple[Task, ...]
    changed: frozenset[str] = frozenset()
    counts: frozenset[str] = frozenset()

    @property
    def launches(self) -> tuple[Launch, ...]:
        """The kernels among the tasks."""
        return tuple(task for task in self.tasks if isinstance(task, Launch))

    @property
    def beside(self) -> tuple[Buffer, ...]:
        """What a call needs besides its arguments and results, and allocates by counts."""
        return tuple(b for b in self.buffers.values() if b.count is not None)


def renamed(sequence: Sequence, names: Mapping[str, str]) -> Sequence:
    """The same with other names of buffers, as a call has them of which it is a part."""

    def task_of(task: Task) -> Task:
        match task:
            case Launch():
                behind = {n: names.get(there, there) for n, there in task.names.items()}
                return Launch(task.kernel, {**names, **behind})
            case Copy():
                source, target = task.source, task.target
                return Copy(names.get(source, source), names.get(target, target))
            case Exchange():
                sources = tuple(names.get(n, n) for n in task.sources)
                targets = tuple(names.get(n, n) for n in task.targets)
                return replace(task, sources=sources, targets=targets)
            case Primitive():
                read = tuple([(names.get(n, n), make) for n, make in task.read])
                accesses, takes = _named(task.accesses, names), others(task.takes)
                return Primitive(
                    task.name, task.run, accesses, takes, task.counts, task.waits, read
                )
            case Host():
                accesses, takes = _named(task.accesses, names), others(task.takes)
                return Host(task.name, task.run, accesses, takes, task.gate)

    def others(buffers: tuple[str, ...]) -> tuple[str, ...]:
        return tuple([names.get(n, n) for n in buffers])

    # made for every structure of a query: `replace` would take as long as its launches
    buffers = {
        (name := names.get(n, n)): Buffer(name, b.role, b.arrangement, b.count, b.clean, b.what)
        for n, b in sequence.buffers.items()
    }
    changed = frozenset(others(tuple(sequence.changed)))
    tasks = tuple(map(task_of, sequence.tasks))
    return Sequence(sequence.name, buffers, tasks, changed, sequence.counts)


def _named(accesses: tuple[Access, ...], names: Mapping[str, str]) -> tuple[Access, ...]:
    """What is done with buffers by other names, of which several may be one."""
    if not names:
        return accesses
    found: dict[str, Access] = {}
    for a in accesses:
        name = names.get(a.buffer, a.buffer)
        before = found.get(name, Access(name, reads=False, writes=False))
        found[name] = Access(name, before.reads or a.reads, before.writes or a.writes)
    return tuple(found.values())


def constant_of(kernel: str, array: str) -> str:
    """The name of a kernel's constant memory for an array."""
    return f"{array} in constant memory of {kernel}"


def program_sequence(program: Program) -> Sequence:
    """The tasks of a compiled program: its kernels, and copies to constant memory before them."""
    reference, tasks = program.reference, list[Task]()
    buffers: dict[str, Buffer] = {}
    scratch = {s.array: s for kernel in program.kernels for s in kernel.scratch}
    results = {
        a.name for a in reference.arrays if a.written and is_own(a.name) and not is_view(a.name)
    }
    for kernel in program.kernels:
        constants = {b.array for b in kernel.buffers if b.constant}
        for array in kernel.arrays:
            if array.space == "shared" or array.name in buffers:
                continue
            if (s := scratch.get(array.name)) is not None:
                role = Role.KEPT if s.zeroed else Role.TEMPORARY
                buffers[array.name] = Buffer(
                    array.name, role, array.arrangement, s.length, s.zeroed
                )
            elif array.name == UNIFORMS:
                buffers[array.name] = Buffer(array.name, Role.KEPT, array.arrangement)
            else:
                role = Role.RESULT if array.name in results else Role.ARGUMENT
                buffers[array.name] = Buffer(array.name, role, array.arrangement)
        for name in sorted(constants):
            there = constant_of(kernel.name, name)
            buffers[there] = Buffer(there, Role.TEMPORARY, buffers[name].arrangement)
            tasks.append(Copy(name, there))
        tasks.append(Launch(kernel))
    views = (a for k in program.kernels for a in k.arrays if a.written and is_view(a.name))
    changed = frozenset(a.name for a in (*reference.arrays, *views) if a.written)
    return Sequence(reference.name, buffers, tuple(tasks), changed)


def reference_sequence(reference: ir.Kernel) -> Sequence:
    """The only task of a kernel that is interpreted."""
    buffers = {
        a.name: Buffer(
            a.name,
            Role.RESULT if a.written and is_own(a.name) else Role.ARGUMENT,
            a.arrangement,
        )
        for a in reference.arrays
    }
    changed = frozenset(a.name for a in reference.arrays if a.written)
    return Sequence(reference.name, buffers, (Launch(reference),), changed)


def accesses_of(kernel: ir.Kernel) -> tuple[Access, ...]:
    """What a kernel reads and writes of the device's memory, in the order of its arguments."""
    shared = {a.name for a in kernel.arrays if a.space == "shared"}
    arrays = {b.name: b.array for b in kernel.buffers} | {a.name: a.name for a in kernel.arrays}
    constants = {b.array for b in kernel.buffers if b.constant}
    reads, writes = set[str](), set[str]()
    for body in (kernel.body, *(f.body for f in functions(kernel.body))):
        for s in statements(body):
            reads |= {arrays[n] for n in loads(s)}
            writes |= {arrays[n] for n in stores(s)}
    names = dict.fromkeys(
        a.name for a in kernel.arrays if a.name in reads | writes and a.name not in shared
    )
    return tuple(
        Access(constant_of(kernel.name, n) if n in constants else n, n in reads, n in writes)
        for n in names
    )
