"""The meaning of functions: a plain interpreter on NumPy scalars. `ir/interpreter.py` runs kernels on it.

The value of an expression is the definition of what every operator and intrinsic means. Intrinsics are the scalar functions of the
language: which operands they take, how wide they are. The emitters hold the spelling of each in their own language.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from operator import itemgetter
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
_WHOLE = {"+": operator.add, "-": operator.sub, "*": operator.mul}


Meaning = Callable[[Environment], Any]

_MEANINGS: dict[
    int, tuple[ir.Expression, Meaning]
] = {}  # by the identity of the expression, which lives as long as its entry
MOST_MEANINGS = 1 << 14  # then it starts anew


def evaluate(e: ir.Expression, env: Environment) -> Any:
    """The value of an expression: a NumPy scalar of its type. Coordinates of the running thread stand in `env` as `@thread`.

    Kernels evaluate the same expressions again and again: what each of them does is looked up once.
    """
    entry = _MEANINGS.get(id(e))
    if entry is None:
        if len(_MEANINGS) >= MOST_MEANINGS:
            _MEANINGS.clear()
        _MEANINGS[id(e)] = entry = e, _meaning(e)
    return entry[1](env)


def _meaning(e: ir.Expression) -> Meaning:
    """What gives the value of an expression, with the variables that it is evaluated with."""
    match e:
        case ir.Literal():
            value = e.type.dtype.type(e.value)
            return lambda env: value
        case ir.Local():
            return itemgetter(e.name)
        case ir.Builtin(name="phase"):
            zero = e.type.dtype.type(0)
            return lambda env: zero
        case ir.Builtin():
            kind, name = e.type.dtype.type, f"@{e.name}"
            return lambda env: kind(env[name])
        case ir.Unary():
            return _unary(e.operator, _meaning(e.operand))
        case ir.Binary(bounded=True, operator="+" | "-" | "*"):
            return _within(e, _meaning(e.left), _meaning(e.right))
        case ir.Binary():
            return _of_two(_BINARY[e.operator], _meaning(e.left), _meaning(e.right))
        case ir.Compare():
            compared = _of_two(_COMPARE[e.operator], _meaning(e.left), _meaning(e.right))
            return lambda env: np.bool_(compared(env))
        case ir.Logical():
            return _logical(e.operator, _meaning(e.left), _meaning(e.right))
        case ir.Select():
            return _select(_meaning(e.condition), _meaning(e.if_true), _meaning(e.if_false))
        case ir.Cast():
            operand, to = _meaning(e.operand), e.type
            return lambda env: convert(operand(env), to)
        case ir.Call():
            return _call(INTRINSICS[e.intrinsic].evaluate, [_meaning(a) for a in e.arguments], e.type.dtype)
        case ir.Element():
            array, index = e.array, _meaning(e.index)
            return lambda env: env[array][_element_index(index(env), env[array])]
        case _:
            assert_never(e)


def _unary(sign: ir.UnaryOperator, operand: Meaning) -> Meaning:
    match sign:
        case "not":
            return lambda env: np.bool_(not operand(env))
        case "-":
            return lambda env: -operand(env)
        case "~":
            return lambda env: ~operand(env)


def _of_two(operation: Callable[[Any, Any], Any], left: Meaning, right: Meaning) -> Meaning:
    return lambda env: operation(left(env), right(env))


def _logical(word: str, left: Meaning, right: Meaning) -> Meaning:
    """The right side is evaluated where the left one does not decide."""

    def both(env: Environment) -> Any:
        value = left(env)
        return right(env) if value else value

    def either(env: Environment) -> Any:
        value = left(env)
        return value if value else right(env)

    return both if word == "and" else either


def _select(condition: Meaning, if_true: Meaning, if_false: Meaning) -> Meaning:
    return lambda env: (if_true if condition(env) else if_false)(env)


def _call(intrinsic: Callable[..., Any], arguments: list[Meaning], dtype: np.dtype[Any]) -> Meaning:
    return lambda env: np.asarray(intrinsic(*[a(env) for a in arguments])).astype(dtype)[()]


def _within(e: ir.Binary, left: Meaning, right: Meaning) -> Meaning:
    """The result of index arithmetic, which compilers take to fit."""
    compute, kind, (low, high) = _WHOLE[e.operator], e.type.dtype.type, limits(e.type)

    def result(env: Environment) -> Any:
        a, b = int(left(env)), int(right(env))
        whole = compute(a, b)
        if not low <= whole <= high:
            raise VerificationError(f"{a} {e.operator} {b} of an index is beyond {e.type}")
        return kind(whole)

    return result


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
