"""The meaning of the IR: a plain interpreter on NumPy scalars, the oracle of every test.

It runs a kernel at any stage: naive (`parallel for`), with blocks and lanes that meet at barriers, after the map to threads (all threads
of a block in turn, from barrier to barrier), and after layout lowering (loads and stores of buffers).
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

import numpy as np

from lanewise.errors import VerificationError
from lanewise.ir import nodes as ir
from lanewise.ir.evaluate import Environment, element_index, evaluate
from lanewise.ir.traverse import statements
from lanewise.layouts.base import Arrangement

MAX_STEPS = 10_000_000  # a loop that runs longer is taken for endless


class Signal(Enum):
    """How a block of statements ended."""

    NEXT = auto()
    BREAK = auto()
    CONTINUE = auto()
    RETURN = auto()


Outcome = tuple[Signal, list[Any]]
NEXT: Outcome = (Signal.NEXT, [])


@dataclass
class Memory:
    """The bytes of one array of records, addressed through its arrangement."""

    data: np.ndarray[Any, Any]
    arrangement: Arrangement
    count: int

    def read(self, leaf: str, index: int) -> Any:
        return self._view(leaf, index)[0]

    def write(self, leaf: str, index: int, value: Any) -> None:
        self._view(leaf, index)[0] = value

    def _view(self, leaf: str, index: int) -> Any:
        if not 0 <= index < self.count:
            raise VerificationError(f"access to {leaf} of element {index}, outside 0..{self.count - 1}")
        slot = self.arrangement.slot(leaf)
        address = self.arrangement.address(leaf, index, self.count)
        return self.data[address : address + slot.type.size].view(slot.type.dtype)


def call(function: ir.Function, arguments: Mapping[str, Any]) -> tuple[list[Any], Environment]:
    """Run a function; returns its results and its variables at the end (for mutable parameters)."""
    env: Environment = dict(arguments)
    with np.errstate(all="ignore"):
        _, results = _execute(function.body, env)
    return results, env


def _execute(block: ir.Block, env: Environment) -> Outcome:
    for s in block:
        outcome = _statement(s, env)
        if outcome[0] is not Signal.NEXT:
            return outcome
    return NEXT


def _statement(s: ir.Statement, env: Environment) -> Outcome:
    match s:
        case ir.Assign():
            env[s.name] = evaluate(s.value, env)
        case ir.DeclareArray():
            env[s.name] = np.zeros(s.type.length, s.type.element.dtype)
        case ir.SetElement():
            env[s.array][element_index(evaluate(s.index, env), env[s.array])] = evaluate(s.value, env)
        case ir.If():
            return _execute(s.then if evaluate(s.condition, env) else s.otherwise, env)
        case ir.For():
            return _for(s, env)
        case ir.While():
            return _while(s, env)
        case ir.Break():
            return Signal.BREAK, []
        case ir.Continue():
            return Signal.CONTINUE, []
        case ir.Return():
            return Signal.RETURN, [evaluate(v, env) for v in s.values]
        case ir.Apply():
            _apply(s, env)
        case _:
            raise VerificationError(f"{type(s).__name__} in a function")
    return NEXT


def _for(s: ir.For, env: Environment) -> Outcome:
    for i in _range(s, env):
        env[s.variable] = i
        outcome = _execute(s.body, env)
        if outcome[0] is Signal.RETURN:
            return outcome
        if outcome[0] is Signal.BREAK:
            break
    return NEXT


def _while(s: ir.While, env: Environment) -> Outcome:
    for _ in range(MAX_STEPS):
        if not evaluate(s.condition, env):
            return NEXT
        outcome = _execute(s.body, env)
        if outcome[0] is Signal.RETURN:
            return outcome
        if outcome[0] is Signal.BREAK:
            return NEXT
    raise VerificationError(f"the while loop at {s.location} ran {MAX_STEPS} times")


def _range(s: ir.For, env: Environment) -> list[Any]:
    kind = s.start.type.dtype.type
    return [kind(i) for i in range(int(evaluate(s.start, env)), int(evaluate(s.stop, env)), int(evaluate(s.step, env)))]


def _apply(s: ir.Apply, env: Environment) -> None:
    parameters = s.function.parameters
    results, inner = call(s.function, {p.name: evaluate(a, env) for p, a in zip(parameters, s.arguments, strict=True)})
    for p, a in zip(parameters, s.arguments, strict=True):
        if p.mutable and isinstance(a, ir.Local):
            env[a.name] = inner[p.name]
    env.update(zip(s.results, results, strict=True))


Shared = dict[str, Any]
Running = Generator[bool, None, None]  # a thread: yields True at each barrier


@dataclass
class Machine:
    """Runs a kernel. `arrays` hold the global arrays by name, `buffers` the lowered ones, `env` the uniforms and counts."""

    kernel: ir.Kernel
    env: Environment
    arrays: Mapping[str, Memory] = field(default_factory=dict[str, Memory])
    buffers: Mapping[str, np.ndarray[Any, Any]] = field(default_factory=dict[str, "np.ndarray[Any, Any]"])

    def run(self) -> None:
        """Run every element, or every thread of every block."""
        with np.errstate(all="ignore"):
            grid = self.kernel.grid
            if grid is None:
                _together([self._block(self.kernel.body, dict(self.env), {})])
                return
            blocks = -(-int(evaluate(grid.extent, self.env)) // grid.lanes)
            for part in range(grid.parts):
                for block in range(blocks):
                    place = {**self.env, "@block": block, "@part": part}
                    self._threads([{**place, "@thread": thread} for thread in range(grid.threads)], self.kernel.body)

    def _threads(self, places: list[Environment], body: ir.Block) -> None:
        """Run one block of threads on fresh shared memory, which holds garbage at first."""
        shared: Shared = {}
        for a in self.kernel.arrays:
            if a.space == "shared":
                shared[a.name] = Memory(
                    np.full(a.arrangement.nbytes(a.length), 0xFF, np.uint8), a.arrangement, a.length
                )
        for b in self.kernel.buffers:
            if b.space == "shared":
                shared[b.name] = np.full(b.length * b.type.size * b.lanes, 0xFF, np.uint8).view(b.type.dtype)
        _together([self._block(body, place, shared) for place in places])

    def _block(self, block: ir.Block, env: Environment, shared: Shared) -> Running:
        for s in block:
            match s:
                case ir.Barrier():
                    yield True
                case ir.If():
                    yield from self._block(s.then if evaluate(s.condition, env) else s.otherwise, env, shared)
                case ir.For():
                    for i in _range(s, env):
                        env[s.variable] = i
                        yield from self._block(s.body, env, shared)
                case ir.Parallel():
                    yield from self._parallel(s, env, shared)
                case ir.Fetch() | ir.Commit() | ir.Load() | ir.Store():
                    self._move(s, env, shared)
                case _:
                    _statement(s, env)

    def _parallel(self, s: ir.Parallel, env: Environment, shared: Shared) -> Running:
        """Elements one after the other; those with barriers of their own are the threads of one block, and run together."""
        kind = s.extent.type.dtype.type
        places = [{**env, s.variable: kind(i)} for i in range(int(evaluate(s.extent, env)))]
        own = [x for x in statements(s.body) if isinstance(x, ir.Parallel)]
        if not own and any(isinstance(x, ir.Barrier) for x in statements(s.body)):
            self._threads(places, s.body)
            return
        for place in places:
            yield from self._block(s.body, place, shared)

    def _move(self, s: ir.Fetch | ir.Commit | ir.Load | ir.Store, env: Environment, shared: Shared) -> None:
        index = int(evaluate(s.index, env))
        match s:
            case ir.Fetch():
                memory = self._memory(s.array, shared)
                env.update({variable: memory.read(leaf, index) for leaf, variable in s.reads})
            case ir.Commit():
                memory = self._memory(s.array, shared)
                for leaf, value in s.writes:
                    memory.write(leaf, index, evaluate(value, env))
            case ir.Load():
                lanes = self._lanes(s.buffer, index * len(s.names), len(s.names), shared)
                env.update({name: lanes[i] for i, name in enumerate(s.names) if name})
            case ir.Store():
                lanes = self._lanes(s.buffer, index * len(s.values), len(s.values), shared)
                lanes[:] = [evaluate(v, env) for v in s.values]

    def _memory(self, name: str, shared: Shared) -> Memory:
        memory: Memory = shared[name] if name in shared else self.arrays[name]
        return memory

    def _lanes(self, name: str, start: int, count: int, shared: Shared) -> Any:
        buffer = shared[name] if name in shared else self.buffers[name]
        if not 0 <= start <= len(buffer) - count:
            raise VerificationError(f"access to {name}[{start}:{start + count}], outside 0..{len(buffer) - 1}")
        return buffer[start : start + count]


def _together(threads: list[Running]) -> None:
    """Run threads from barrier to barrier until all end."""
    waiting = [next(t, None) for t in threads]
    while any(waiting):
        if not all(waiting):
            raise VerificationError("some threads of a block end before a barrier that others wait at")
        waiting = [next(t, None) for t in threads]
