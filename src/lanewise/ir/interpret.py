"""The meaning of functions: a plain interpreter on NumPy scalars. `ir/interpreter.py` runs kernels on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Enum, auto
from typing import Any

import numpy as np

from lanewise.errors import VerificationError
from lanewise.ir import nodes as ir
from lanewise.ir.evaluate import Environment, element_index, evaluate

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
            env[s.array][element_index(evaluate(s.index, env), env[s.array])] = evaluate(s.value, env)
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
    given = {p.name: evaluate(a, env) for p, a in zip(parameters, s.arguments, strict=True)}
    results, inner = call(s.function, given, env.get(MEMORY))
    for p, a in zip(parameters, s.arguments, strict=True):
        if p.mutable and isinstance(a, ir.Local):
            env[a.name] = inner[p.name]
    env.update(zip(s.results, results, strict=True))
