"""The meaning of functions: a plain interpreter on NumPy scalars. `ir/interpreter.py` runs kernels on it.

The value of an expression is the definition of what every operator and intrinsic means. Intrinsics are the scalar functions of the
language: which operands they take, how wide they are. The emitters hold the spelling of each in their own language.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Literal, assert_never

import numpy as np

from lanewise.errors import VerificationError
from lanewise.ir import nodes as ir
from lanewise.types import convert, limits
from lanewise.values import SCALAR_FUNCTIONS

MAX_STEPS = 10_000_000  # a loop that runs longer is taken for endless


MEMORY = "@memory"  # among the variables of a function: how it reads the arrays of its kernel
Reader = Callable[[ir.Statement, dict[str, Any]], None]


class Signal(Enum):
    """How a block of statements ended."""

    NEXT = auto()
    BREAK = auto()
    CONTINUE = auto()
    RETURN = auto()


Outcome = tuple[Signal, list[Any]]
NEXT: Outcome = (Signal.NEXT, [])


def call(
    function: ir.Function, arguments: Mapping[str, Any], memory: Reader | None = None
) -> tuple[list[Any], Environment]:
    """Run a function; returns its results and its variables at the end (for mutable parameters). `memory` is what it may read."""
    env: Environment = dict(arguments)
    if memory is not None:
        env[MEMORY] = memory
    with np.errstate(all="ignore"):
        _, results = execute(function.body, env)
    return results, env


def execute(block: ir.Block, env: Environment) -> Outcome:
    for s in block:
        outcome = run_statement(s, env)
        if outcome[0] is not Signal.NEXT:
            return outcome
    return NEXT


def run_statement(s: ir.Statement, env: Environment) -> Outcome:
    match s:
        case ir.Assign():
            env[s.name] = evaluate(s.value, env)
        case ir.DeclareArray():
            env[s.name] = np.zeros(s.type.length, s.type.element.dtype)
        case ir.SetElement():
            env[s.array][_element_index(evaluate(s.index, env), env[s.array])] = evaluate(s.value, env)
        case ir.If():
            return execute(s.then if evaluate(s.condition, env) else s.otherwise, env)
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
        case ir.LoadRecord() | ir.Load() if MEMORY in env:
            env[MEMORY](s, env)
        case _:
            raise VerificationError(f"{type(s).__name__} in a function")
    return NEXT


def _for(s: ir.For, env: Environment) -> Outcome:
    for i in loop_range(s, env):
        env[s.variable] = i
        outcome = execute(s.body, env)
        if outcome[0] is Signal.RETURN:
            return outcome
        if outcome[0] is Signal.BREAK:
            break
    return NEXT


def _while(s: ir.While, env: Environment) -> Outcome:
    for _ in range(MAX_STEPS):
        if not evaluate(s.condition, env):
            return NEXT
        outcome = execute(s.body, env)
        if outcome[0] is Signal.RETURN:
            return outcome
        if outcome[0] is Signal.BREAK:
            return NEXT
    raise VerificationError(f"the while loop at {s.location} ran {MAX_STEPS} times")


def loop_range(s: ir.For, env: Environment) -> Iterator[Any]:
    """The values of a loop's variable; the bounds are those before its first round."""
    kind, bounds = s.start.type.dtype.type, [int(evaluate(e, env)) for e in (s.start, s.stop, s.step)]
    return map(kind, range(*bounds))


def _apply(s: ir.Apply, env: Environment) -> None:
    parameters = s.function.parameters
    arguments = {p.name: evaluate(a, env) for p, a in zip(parameters, s.arguments, strict=True)}
    results, inner = call(s.function, arguments, env.get(MEMORY))
    for p, a in zip(parameters, s.arguments, strict=True):
        if p.mutable and isinstance(a, ir.Local):
            env[a.name] = inner[p.name]
    env.update(zip(s.results, results, strict=True))


Environment = dict[str, Any]

_COMPARE = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
_BINARY = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "//": np.floor_divide, "%": np.mod, "&": np.bitwise_and,
    "|": np.bitwise_or, "^": np.bitwise_xor, "<<": np.left_shift, ">>": np.right_shift,
}  # fmt: skip


def evaluate(e: ir.Expression, env: Environment) -> Any:
    """The value of an expression: a NumPy scalar of its type. Coordinates of the running thread stand in `env` as `@thread`."""
    match e:
        case ir.Literal():
            return e.type.dtype.type(e.value)
        case ir.Local():
            return env[e.name]
        case ir.Builtin():
            return e.type.dtype.type(env[f"@{e.name}"])
        case ir.Unary():
            value = evaluate(e.operand, env)
            return np.bool_(not value) if e.operator == "not" else -value if e.operator == "-" else ~value
        case ir.Binary(bounded=True, operator="+" | "-" | "*"):
            return _within(e, evaluate(e.left, env), evaluate(e.right, env))
        case ir.Binary():
            return _BINARY[e.operator](evaluate(e.left, env), evaluate(e.right, env))
        case ir.Compare():
            return np.bool_(_COMPARE[e.operator](evaluate(e.left, env), evaluate(e.right, env)))
        case ir.Logical():
            left = evaluate(e.left, env)
            decided = not left if e.operator == "and" else bool(left)
            return left if decided else evaluate(e.right, env)
        case ir.Select():
            return evaluate(e.if_true if evaluate(e.condition, env) else e.if_false, env)
        case ir.Cast():
            return convert(evaluate(e.operand, env), e.type)
        case ir.Call():
            result = INTRINSICS[e.intrinsic].evaluate(*(evaluate(a, env) for a in e.arguments))
            return np.asarray(result).astype(e.type.dtype)[()]
        case ir.Element():
            return env[e.array][_element_index(evaluate(e.index, env), env[e.array])]
        case _:
            assert_never(e)


def _within(e: ir.Binary, left: Any, right: Any) -> Any:
    """The result of index arithmetic, which compilers take to fit."""
    a, b = int(left), int(right)
    result = a + b if e.operator == "+" else a - b if e.operator == "-" else a * b
    low, high = limits(e.type)
    if not low <= result <= high:
        raise VerificationError(f"{a} {e.operator} {b} of an index is beyond {e.type}")
    return e.type.dtype.type(result)


def _element_index(index: Any, array: Any) -> int:
    """The index into a local array, checked."""
    if not 0 <= index < len(array):
        raise VerificationError(f"index {index} outside a local array of {len(array)}")
    return int(index)


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """`domain` "float" converts integers to floats first, "number" keeps them; `predicate` results are bool."""

    name: str
    arity: int
    domain: Literal["float", "number"]
    predicate: bool
    evaluate: Callable[..., Any]


def _table() -> dict[str, Intrinsic]:
    number = {"min": 2, "max": 2, "clamp": 3, "abs": 1}
    several = {"atan2": 2, "pow": 2, "hypot": 2, "mix": 3, "fma": 3}
    predicates = {"isnan", "isinf", "isfinite"}
    return {
        name: Intrinsic(
            name, number.get(name, several.get(name, 1)), "number" if name in number else "float", name in predicates, evaluate
        )
        for name, evaluate in SCALAR_FUNCTIONS.items()
    }  # fmt: skip


INTRINSICS = _table()
