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
from lanewise.types import convert, holds, limits
from lanewise.values import SCALAR_FUNCTIONS

MAX_STEPS = 10_000_000  # a loop that runs longer is taken for endless


MEMORY = "@memory"  # among the variables of a function: how it reads the arrays of its kernel
Reader = Callable[[ir.Statement, dict[str, Any]], None]


class Signal(Enum):
    """What a block of statements was left with before its end, but for results."""

    BREAK = auto()
    CONTINUE = auto()


Environment = dict[str, Any]
Outcome = Signal | list[Any] | None
"""How a statement was left: with results, or None where the statements behind it come next."""

Step = Callable[[Environment], Outcome]
"""What a statement does with the variables."""

Meaning = Callable[[Environment], Any]
"""What gives the value of an expression, with the variables that it is evaluated with."""


def call(
    function: ir.Function, arguments: Mapping[str, Any], memory: Reader | None = None
) -> tuple[list[Any], Environment]:
    """Run a function; returns its results and its variables at the end (for mutable parameters). `memory` is what it may read."""
    env: Environment = dict(arguments)
    if memory is not None:
        env[MEMORY] = memory
    with np.errstate(all="ignore"):
        return _results(_body(function)(env)), env


def _results(outcome: Outcome) -> list[Any]:
    return outcome if isinstance(outcome, list) else []


# What expressions and functions do is looked up once, and kept by their identity: they live as long as their entries.
_MEANINGS: dict[int, tuple[ir.Expression, Meaning]] = {}
_WHOLES: dict[int, tuple[ir.Expression, Meaning]] = {}
_BODIES: dict[int, tuple[ir.Function, Step]] = {}
MOST_MEANINGS = 1 << 14  # then it starts anew


def _body(function: ir.Function) -> Step:
    entry = _BODIES.get(id(function))
    if entry is None:
        if len(_BODIES) >= MOST_MEANINGS:
            _BODIES.clear()
        _BODIES[id(function)] = entry = function, block_step(function.body, _read)
    return entry[1]


def _read(s: ir.Statement) -> Step | None:
    """Functions read arrays of their kernel, where it lets them."""
    if not isinstance(s, ir.LoadRecord | ir.Load):
        return None

    def read(env: Environment) -> Outcome:
        if MEMORY not in env:
            raise VerificationError(f"{type(s).__name__} in a function")
        env[MEMORY](s, env)

    return read


# ------------------------------------------------------------ statements

Others = Callable[[ir.Statement], Step | None]
"""What the statements do that move data between memory and variables; None for those that are none of them."""


def block_step(block: ir.Block, others: Others) -> Step:
    """One statement after the other, until one leaves the block."""
    steps = tuple(_step(s, others) for s in block)
    if len(steps) == 1:
        return steps[0]

    def run(env: Environment) -> Outcome:
        for step in steps:
            if (outcome := step(env)) is not None:
                return outcome
        return None

    return run


def _step(s: ir.Statement, others: Others) -> Step:
    match s:
        case ir.Assign():
            return _assign(s.name, _meaning(s.value))
        case ir.Apply():
            return _apply(s)
        case ir.DeclareArray():
            return _assign(s.name, lambda env: np.zeros(s.type.length, s.type.element.dtype))
        case ir.SetElement():
            return _set_element(s.array, _meaning(s.index), _meaning(s.value))
        case ir.If():
            return _if(_meaning(s.condition), block_step(s.then, others), block_step(s.otherwise, others))
        case ir.For():
            return _for(s, block_step(s.body, others))
        case ir.While():
            return _while(s, _meaning(s.condition), block_step(s.body, others))
        case ir.Break():
            return lambda env: Signal.BREAK
        case ir.Continue():
            return lambda env: Signal.CONTINUE
        case ir.Return():
            values = [_meaning(v) for v in s.values]
            return lambda env: [value(env) for value in values]
        case _:
            if (step := others(s)) is None:
                raise VerificationError(f"{type(s).__name__} in a function")
            return step


def _assign(name: str, value: Meaning) -> Step:
    def assign(env: Environment) -> Outcome:
        env[name] = value(env)

    return assign


def _set_element(array: str, index: Meaning, value: Meaning) -> Step:
    def set_element(env: Environment) -> Outcome:
        env[array][_element_index(index(env), env[array])] = value(env)

    return set_element


def _if(condition: Meaning, then: Step, otherwise: Step) -> Step:
    return lambda env: then(env) if condition(env) else otherwise(env)


def _for(s: ir.For, body: Step) -> Step:
    variable = s.variable

    def loop(env: Environment) -> Outcome:
        for i in loop_range(s, env):
            env[variable] = i
            if (outcome := body(env)) is not None and outcome is not Signal.CONTINUE:
                return None if outcome is Signal.BREAK else outcome
        return None

    return loop


def _while(s: ir.While, condition: Meaning, body: Step) -> Step:
    def loop(env: Environment) -> Outcome:
        for _ in range(MAX_STEPS):
            if not condition(env):
                return None
            if (outcome := body(env)) is not None and outcome is not Signal.CONTINUE:
                return None if outcome is Signal.BREAK else outcome
        raise VerificationError(f"the while loop at {s.location} ran {MAX_STEPS} times")

    return loop


def loop_range(s: ir.For, env: Environment) -> Iterator[Any]:
    """The values of a loop's variable; the bounds are those before its first round."""
    return map(s.start.type.dtype.type, range(*[whole(e, env) for e in (s.start, s.stop, s.step)]))


def _apply(s: ir.Apply) -> Step:
    function, parameters = s.function, s.function.parameters
    arguments = [(p.name, _meaning(a)) for p, a in zip(parameters, s.arguments, strict=True)]
    changed = [
        (a.name, p.name) for p, a in zip(parameters, s.arguments, strict=True) if p.mutable and isinstance(a, ir.Local)
    ]
    body, results = _body(function), s.results

    def apply(env: Environment) -> Outcome:
        inner = {name: value(env) for name, value in arguments}
        if MEMORY in env:
            inner[MEMORY] = env[MEMORY]
        outcome = body(inner)
        for name, parameter in changed:
            env[name] = inner[parameter]
        env.update(zip(results, _results(outcome), strict=True))

    return apply


# ------------------------------------------------------------ expressions

# Of NumPy's numbers the operators give what the functions of NumPy give, in a tenth of the time.
_COMPARE = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_BINARY = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv, "%": operator.mod,
    "&": operator.and_, "|": operator.or_, "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift,
}  # fmt: skip
_WHOLE = {"+": operator.add, "-": operator.sub, "*": operator.mul}


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


def whole(e: ir.Expression, env: Environment) -> int:
    """The value of an expression that is a whole number, as a number of Python's."""
    entry = _WHOLES.get(id(e))
    if entry is None:
        if len(_WHOLES) >= MOST_MEANINGS:
            _WHOLES.clear()
        _WHOLES[id(e)] = entry = e, _whole(e)
    return entry[1](env)


def _whole(e: ir.Expression) -> Meaning:
    """What gives the value of a whole number. Of the arithmetic of indices no number of NumPy is made on the way."""
    match e:
        case ir.Literal():
            number = int(e.value)
            return lambda env: number
        case ir.Builtin(name="thread" | "block" | "part" | "clock"):
            return itemgetter(f"@{e.name}")
        case ir.Binary(bounded=True, operator="+" | "-" | "*"):
            return _within(e, _whole(e.left), _whole(e.right))
        case ir.Cast(operand=x) if x.type.is_integer and e.type.is_integer and holds(e.type, x.type):
            return _whole(x)
        case _:
            value = _meaning(e)
            return lambda env: int(value(env))


def _meaning(e: ir.Expression) -> Meaning:
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
            number, own = _whole(e), e.type.dtype.type
            return lambda env: own(number(env))
        case ir.Binary():
            return _of_two(_BINARY[e.operator], _meaning(e.left), _meaning(e.right))
        case ir.Compare():
            return _of_two(_COMPARE[e.operator], _meaning(e.left), _meaning(e.right))
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
    kind = dtype.type

    def value(env: Environment) -> Any:
        result = intrinsic(*[a(env) for a in arguments])
        return result if type(result) is kind else np.asarray(result).astype(dtype)[()]

    return value


def _within(e: ir.Binary, left: Meaning, right: Meaning) -> Meaning:
    """The result of index arithmetic, which compilers take to fit, as a number of Python's."""
    compute, (low, high) = _WHOLE[e.operator], limits(e.type)

    def result(env: Environment) -> Any:
        a, b = left(env), right(env)
        number = compute(a, b)
        if not low <= number <= high:
            raise VerificationError(f"{a} {e.operator} {b} of an index is beyond {e.type}")
        return number

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
