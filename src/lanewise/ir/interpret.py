"""The meaning of the IR: a plain interpreter on NumPy scalars, the oracle of every test.

It runs a kernel at any stage: naive (`parallel for`), after the map to threads (all threads of a block in turn, from barrier to
barrier), and after layout lowering (loads and stores of buffers).
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, assert_never

import numpy as np

from lanewise.errors import VerificationError
from lanewise.ir import nodes as ir
from lanewise.ir.intrinsics import INTRINSICS
from lanewise.layouts.base import Arrangement

Environment = dict[str, Any]
MAX_STEPS = 10_000_000  # a loop that runs longer is taken for endless


class Signal(Enum):
    """How a block of statements ended."""

    NEXT = auto()
    BREAK = auto()
    CONTINUE = auto()
    RETURN = auto()


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


def evaluate(e: ir.Expression, env: Environment) -> Any:
    """The value of an expression: a NumPy scalar of its type."""
    match e:
        case ir.Literal():
            return e.type.dtype.type(e.value)
        case ir.Local():
            return env[e.name]
        case ir.Builtin():
            return e.type.dtype.type(env[f"%{e.name}"])
        case ir.Unary():
            value = evaluate(e.operand, env)
            return np.bool_(not value) if e.operator == "not" else -value if e.operator == "-" else ~value
        case ir.Binary():
            return _binary(e, evaluate(e.left, env), evaluate(e.right, env))
        case ir.Compare():
            return np.bool_(_COMPARE[e.operator](evaluate(e.left, env), evaluate(e.right, env)))
        case ir.Logical():
            left = evaluate(e.left, env)
            decided = not left if e.operator == "and" else bool(left)
            return left if decided else evaluate(e.right, env)
        case ir.Select():
            return evaluate(e.if_true if evaluate(e.condition, env) else e.if_false, env)
        case ir.Cast():
            return np.asarray(evaluate(e.operand, env)).astype(e.type.dtype)[()]
        case ir.Call():
            result = INTRINSICS[e.intrinsic].evaluate(*(evaluate(a, env) for a in e.arguments))
            return np.asarray(result).astype(e.type.dtype)[()]
        case ir.Element():
            return env[e.array][_index(evaluate(e.index, env), env[e.array])]
        case _:
            assert_never(e)


_COMPARE = {"==": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
_BINARY = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "//": np.floor_divide, "%": np.mod, "&": np.bitwise_and,
    "|": np.bitwise_or, "^": np.bitwise_xor, "<<": np.left_shift, ">>": np.right_shift,
}  # fmt: skip


def _binary(e: ir.Binary, left: Any, right: Any) -> Any:
    return _BINARY[e.operator](left, right)


def _index(index: Any, array: Any) -> int:
    if not 0 <= index < len(array):
        raise VerificationError(f"index {index} outside a local array of {len(array)}")
    return int(index)


def call(function: ir.Function, arguments: Mapping[str, Any]) -> tuple[list[Any], Environment]:
    """Run a function; returns its results and its variables at the end (for mutable parameters)."""
    env: Environment = dict(arguments)
    with np.errstate(all="ignore"):
        signal, results = _execute(function.body, env)
    del signal
    return results, env


def _execute(block: ir.Block, env: Environment) -> tuple[Signal, list[Any]]:
    for s in block:
        signal, results = _statement(s, env)
        if signal is not Signal.NEXT:
            return signal, results
    return Signal.NEXT, []


def _statement(s: ir.Statement, env: Environment) -> tuple[Signal, list[Any]]:
    match s:
        case ir.Assign():
            env[s.name] = evaluate(s.value, env)
        case ir.DeclareArray():
            env[s.name] = np.zeros(s.type.length, s.type.element.dtype)
        case ir.SetElement():
            env[s.array][_index(evaluate(s.index, env), env[s.array])] = evaluate(s.value, env)
        case ir.If():
            return _execute(s.then if evaluate(s.condition, env) else s.otherwise, env)
        case ir.For():
            for i in _range(s, env):
                env[s.variable] = i
                signal, results = _execute(s.body, env)
                if signal is Signal.RETURN:
                    return signal, results
                if signal is Signal.BREAK:
                    break
        case ir.While():
            for step in range(MAX_STEPS + 1):
                if not evaluate(s.condition, env):
                    break
                if step == MAX_STEPS:
                    raise VerificationError(f"the while loop at {s.location} ran {MAX_STEPS} times")
                signal, results = _execute(s.body, env)
                if signal is Signal.RETURN:
                    return signal, results
                if signal is Signal.BREAK:
                    break
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
    return Signal.NEXT, []


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
                for _ in self._block(self.kernel.body, dict(self.env), {}):
                    raise VerificationError("a barrier outside a block of threads")
                return
            blocks = -(-int(evaluate(grid.extent, self.env)) // grid.lanes)
            for part in range(grid.parts):
                for block in range(blocks):
                    self._run_block(grid, block, part)

    def _run_block(self, grid: ir.Grid, block: int, part: int) -> None:
        shared: dict[str, Any] = {}
        for a in self.kernel.arrays:
            if a.space == "shared":
                shared[a.name] = Memory(np.full(a.arrangement.nbytes(a.length), 0xFF, np.uint8), a.arrangement, a.length)
        for b in self.kernel.buffers:
            if b.space == "shared":
                shared[b.name] = np.full(b.length * b.type.size * b.lanes, 0xFF, np.uint8).view(b.type.dtype)
        threads = [
            self._block(self.kernel.body, {**self.env, "%thread": thread, "%block": block, "%part": part}, shared)
            for thread in range(grid.threads)
        ]
        waiting = [next(t, None) for t in threads]
        while any(waiting):
            if not all(waiting):
                raise VerificationError("some threads of a block end before a barrier that others wait at")
            waiting = [next(t, None) for t in threads]

    def _block(self, block: ir.Block, env: Environment, shared: dict[str, Any]) -> Generator[bool, None, None]:
        """Run statements of a kernel; yields True at each barrier."""
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
                    kind = s.extent.type.dtype.type
                    for i in range(int(evaluate(s.extent, env))):
                        yield from self._block(s.body, {**env, s.variable: kind(i)}, shared)
                case ir.Fetch():
                    memory, index = self._memory(s.array, shared), int(evaluate(s.index, env))
                    env.update({variable: memory.read(leaf, index) for leaf, variable in s.reads})
                case ir.Commit():
                    memory, index = self._memory(s.array, shared), int(evaluate(s.index, env))
                    for leaf, value in s.writes:
                        memory.write(leaf, index, evaluate(value, env))
                case ir.Load():
                    start = int(evaluate(s.index, env)) * len(s.names)
                    lanes = self._lanes(s.buffer, start, len(s.names), shared)
                    env.update({name: lanes[i] for i, name in enumerate(s.names) if name})
                case ir.Store():
                    start = int(evaluate(s.index, env)) * len(s.values)
                    self._lanes(s.buffer, start, len(s.values), shared)[:] = [evaluate(v, env) for v in s.values]
                case _:
                    _statement(s, env)

    def _memory(self, name: str, shared: dict[str, Any]) -> Memory:
        memory: Memory = shared[name] if name in shared else self.arrays[name]
        return memory

    def _lanes(self, name: str, start: int, count: int, shared: dict[str, Any]) -> Any:
        buffer = shared[name] if name in shared else self.buffers[name]
        if not 0 <= start <= len(buffer) - count:
            raise VerificationError(f"access to {name}[{start}:{start + count}], outside 0..{len(buffer) - 1}")
        return buffer[start : start + count]
