"""The meaning of functions: a plain interpreter on NumPy scalars.

`ir/interpreter.py` runs kernels on it.

The value of an expression is the definition of what every operator and intrinsic means. Intrinsics
are the scalar functions of the
language: which operands they take, how wide they are. The emitters hold the spelling of each in
their own language.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache, lru_cache
from typing import Any, Literal, Never, TypeVar, assert_never

import numpy as np

from lanewise.ir import nodes as ir
from lanewise.ir.names import WHILE
from lanewise.language.scalar_functions import SCALAR_FUNCTIONS
from lanewise.language.types import Scalar, convert, holds, limits
from lanewise.support.errors import VerificationError

T = TypeVar("T")
M = TypeVar("M")
MAX_STEPS = 10_000_000  # a loop that runs longer is taken for endless


MEMORY = "@memory"  # among the variables of a function: how it reads the arrays of its kernel
TURNS = "@turns"  # what counts the rounds of loops, where they are counted
HANDED_ON = (MEMORY, TURNS)  # to the functions that a kernel or a function applies
Reader = Callable[[ir.Statement, dict[str, Any]], None]


class BeyondTypeError(VerificationError):
    """What a kernel counts does not fit into the type of its indices."""


class BlockExit(Enum):
    """What a block of statements was left with before its end, but for results."""

    BREAK = auto()
    CONTINUE = auto()


Environment = dict[str, Any]
Outcome = BlockExit | list[Any] | None
"""How a statement was left: with results, or None where the statements behind it come next."""

Step = Callable[[Environment], Outcome]
"""What a statement does with the variables."""

Meaning = Callable[[Environment], Any]
"""What gives the value of an expression, with the variables that it is evaluated with."""


def call(
    function: ir.Function, arguments: Mapping[str, Any], memory: Reader | None = None
) -> tuple[list[Any], Environment]:
    """Run a function; returns its results and its variables at the end (for mutable parameters).

    `memory` is what it may read.
    """
    env: Environment = dict(arguments)
    if memory is not None:
        env[MEMORY] = memory
    with np.errstate(all="ignore"):
        return _results(_body(function)(env)), env


def _results(outcome: Outcome) -> list[Any]:
    return outcome if isinstance(outcome, list) else []


# What expressions and functions do is looked up once, and kept by their identity: they live as long
# as their entries.
_MEANINGS: dict[int, tuple[ir.Expression, Meaning]] = {}
_WHOLES: dict[int, tuple[ir.Expression, Meaning]] = {}
_BODIES: dict[int, tuple[ir.Function, Step]] = {}
MOST_MEANINGS = 1 << 14  # then it starts anew


def _kept(table: dict[int, tuple[T, M]], thing: T, make: Callable[[], M]) -> M:
    """What was made of a thing, or is made now."""
    entry = table.get(id(thing))
    if entry is None:
        if len(table) >= MOST_MEANINGS:
            table.clear()
        table[id(thing)] = entry = thing, make()
    return entry[1]


def _body(function: ir.Function) -> Step:
    return _kept(_BODIES, function, lambda: block_step(function.body, _read))


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
"""What the statements do that move data between memory and variables.

None for those that are none of them.
"""


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
            return _assign(s.name, meaning_of(s.value))
        case ir.Apply():
            return _apply(s)
        case ir.DeclareArray():
            return _assign(s.name, lambda env: np.zeros(s.type.length, s.type.element.dtype))
        case ir.SetElement():
            return _set_element(s.array, meaning_of(s.index), meaning_of(s.value))
        case ir.If():
            return _if(
                meaning_of(s.condition), block_step(s.then, others), block_step(s.otherwise, others)
            )
        case ir.For():
            return _for(s, block_step(s.body, others))
        case ir.While():
            return _while(s, meaning_of(s.condition), block_step(s.body, others))
        case ir.Break():
            return lambda env: BlockExit.BREAK
        case ir.Continue():
            return lambda env: BlockExit.CONTINUE
        case ir.Return():
            values = [meaning_of(v) for v in s.values]
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
        for i in counted(variable, loop_range(s, env), env):
            env[variable] = i
            if (outcome := body(env)) is not None and outcome is not BlockExit.CONTINUE:
                return None if outcome is BlockExit.BREAK else outcome
        return None

    return loop


def _while(s: ir.While, condition: Meaning, body: Step) -> Step:
    def loop(env: Environment) -> Outcome:
        for _ in counted(WHILE, iter(range(MAX_STEPS)), env):
            if not condition(env):
                return None
            if (outcome := body(env)) is not None and outcome is not BlockExit.CONTINUE:
                return None if outcome is BlockExit.BREAK else outcome
        raise VerificationError(f"the while loop at {s.location} ran {MAX_STEPS} times")

    return loop


def counted(name: str, rounds: Iterator[Any], env: Environment) -> Iterator[Any]:
    """The rounds of a loop, through what counts them, if a run does."""
    turns = env.get(TURNS)
    return rounds if turns is None else turns(name, rounds)


def loop_range(s: ir.For, env: Environment) -> Iterator[Any]:
    """The values of a loop's variable; the bounds are those before its first round."""
    return map(s.start.type.dtype.type, range(*[whole(e, env) for e in (s.start, s.stop, s.step)]))


def _apply(s: ir.Apply) -> Step:
    function, parameters = s.function, s.function.parameters
    arguments = [(p.name, meaning_of(a)) for p, a in zip(parameters, s.arguments, strict=True)]
    changed = [
        (a.name, p.name)
        for p, a in zip(parameters, s.arguments, strict=True)
        if p.mutable and isinstance(a, ir.Local)
    ]
    body, results = _body(function), s.results

    def apply(env: Environment) -> Outcome:
        inner = {name: value(env) for name, value in arguments}
        inner.update((n, env[n]) for n in HANDED_ON if n in env)
        outcome = body(inner)
        for name, parameter in changed:
            env[name] = inner[parameter]
        env.update(zip(results, _results(outcome), strict=True))

    return apply


# ------------------------------------------------------------ expressions


def evaluate(e: ir.Expression, env: Environment) -> Any:
    """The value of an expression: a NumPy scalar of its type.

    Coordinates of the running thread stand in `env` as `@thread`.

    Kernels evaluate the same expressions again and again: what each of them does is looked up once.
    """
    return meaning_of(e)(env)


def meaning_of(e: ir.Expression) -> Meaning:
    """What evaluates an expression."""
    return _kept(_MEANINGS, e, lambda: _Python().function(e))


def whole(e: ir.Expression, env: Environment) -> int:
    """The value of an expression that is an integer, as a number of Python's."""
    return whole_of(e)(env)


def whole_of(e: ir.Expression) -> Callable[[Environment], int]:
    """What evaluates an expression that is an integer."""
    return _kept(_WHOLES, e, lambda: _Python().function(e, whole=True))


DEEP = 32  # levels of an expression in one function: Python reads 200 parentheses within each other


@lru_cache(1 << 14)
def _with_shape(text: str, count: int) -> Callable[..., Meaning]:
    """What makes a function of an expression from its names, numbers and helpers: expressions of
    one shape share it.
    """
    parameters = ", ".join(f"p{n}" for n in range(count))
    return eval(f"lambda {parameters}: lambda env: {text}")


class _Python:
    """An expression as one of Python's, whose operators of NumPy's numbers give what the functions
    of NumPy give.
    """

    def __init__(self) -> None:
        self.parameters: list[Any] = []

    def function(self, e: ir.Expression, *, whole: bool = False) -> Meaning:
        text = self.whole(e, 0) if whole else self.value(e, 0)
        return _with_shape(text, len(self.parameters))(*self.parameters)

    def own(self, thing: Any) -> str:
        """The name of something that belongs to this expression alone."""
        self.parameters.append(thing)
        return f"p{len(self.parameters) - 1}"

    def value(self, e: ir.Expression, depth: int) -> str:
        if depth == DEEP:
            return f"{self.own(meaning_of(e))}(env)"
        depth += 1
        match e:
            case ir.Literal():
                return self.own(e.type.dtype.type(e.value))
            case ir.Local():
                return f"env[{self.own(e.name)}]"
            case ir.Builtin(name="phase" | "read_phase" | "far"):
                return self.own(e.type.dtype.type(0))
            case ir.Builtin():
                return f"{self.own(e.type.dtype.type)}(env[{self.own(f'@{e.name}')}])"
            case ir.Unary(operator="not"):
                return f"{self.own(np.bool_)}(not {self.value(e.operand, depth)})"
            case ir.Unary():
                return f"({e.operator}{self.value(e.operand, depth)})"
            case ir.Binary(bounded=True, operator="+" | "-" | "*"):
                return f"{self.own(e.type.dtype.type)}({self.whole(e, depth)})"
            case ir.Binary() | ir.Compare() | ir.Logical():
                return f"({self.value(e.left, depth)} {e.operator} {self.value(e.right, depth)})"
            case ir.Select():
                chosen, other = self.value(e.if_true, depth), self.value(e.if_false, depth)
                return f"({chosen} if {self.value(e.condition, depth)} else {other})"
            case ir.Cast():
                return f"{self.own(convert)}({self.value(e.operand, depth)}, {self.own(e.type)})"
            case ir.Call():
                arguments = ", ".join(self.value(a, depth) for a in e.arguments)
                function = self.own(_called(INTRINSICS[e.intrinsic].evaluate, e.type.dtype))
                return f"{function}({arguments})"
            case ir.Element():
                array = f"env[{self.own(e.array)}]"
                return f"{array}[{self.own(_element_index)}({self.value(e.index, depth)}, {array})]"
            case _:
                assert_never(e)

    def whole(self, e: ir.Expression, depth: int) -> str:
        """The same of an integer.

        Of the arithmetic of indices no number of NumPy is made on the way.
        """
        if depth == DEEP:
            return f"{self.own(whole_of(e))}(env)"
        depth += 1
        match e:
            case ir.Literal():
                return self.own(int(e.value))
            case ir.Builtin(name="thread" | "block" | "part" | "clock"):
                return f"env[{self.own(f'@{e.name}')}]"
            case ir.Binary(bounded=True, operator="+" | "-" | "*"):
                return (
                    f"{self.own(_within(e.operator, e.type))}({self.whole(e.left, depth)}, "
                    f"{self.whole(e.right, depth)})"
                )
            case ir.Cast(operand=x) if (
                x.type.is_integer and e.type.is_integer and holds(e.type, x.type)
            ):
                return self.whole(x, depth)
            case _:
                return f"{self.own(int)}({self.value(e, depth)})"


@cache
def _called(intrinsic: Callable[..., Any], dtype: np.dtype[Any]) -> Callable[..., Any]:
    """A function of numbers, with the result in a type."""
    kind = dtype.type

    def value(*arguments: Any) -> Any:
        result = intrinsic(*arguments)
        return result if type(result) is kind else np.asarray(result).astype(dtype)[()]

    return value


@cache
def _within(sign: str, kind: Scalar) -> Callable[[int, int], int]:
    """Arithmetic of indices, which compilers take to fit."""
    low, high = limits(kind)

    def beyond(a: int, b: int) -> Never:
        raise BeyondTypeError(f"{a} {sign} {b} of an index is beyond {kind}")

    match sign:
        case "+":
            return lambda a, b: number if low <= (number := a + b) <= high else beyond(a, b)
        case "-":
            return lambda a, b: number if low <= (number := a - b) <= high else beyond(a, b)
        case _:
            return lambda a, b: number if low <= (number := a * b) <= high else beyond(a, b)


def _element_index(index: Any, array: Any) -> int:
    """The index into a local array, checked."""
    if not 0 <= index < len(array):
        raise VerificationError(f"index {index} outside a local array of {len(array)}")
    return int(index)


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """`domain` "float" converts integers to floats first, "number" keeps them; `predicate` results
    are bool.
    """

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
            name,
            number.get(name, several.get(name, 1)),
            "number" if name in number else "float",
            name in predicates,
            evaluate,
        )
        for name, evaluate in SCALAR_FUNCTIONS.items()
    }


INTRINSICS = _table()
