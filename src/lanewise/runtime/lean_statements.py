"""Numba's statements of generated text, made fewer before types are inferred.

- A literal such as `f32(0.5)` becomes a constant. Numba would type a name, a number and a call for
  each.
- A function is looked up once, at the beginning.
- What Python's stack copies from a variable, and into one, is not copied: half of the statements
  are such.
"""

from __future__ import annotations

import operator
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping
from itertools import chain
from typing import Any

import numpy as np
from numba.core import ir, types
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.ir_utils import build_definitions, replace_vars_stmt

_NUMBERS: dict[Any, Any] = {
    types.int32: np.int32, types.uint32: np.uint32, types.int64: np.int64, types.uint64: np.uint64,
    types.float32: np.float32, types.float64: np.float64,
}  # fmt: skip
_COMPARISONS = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)
# of statements
_KINDS = (ir.Assign, ir.SetItem, ir.StaticSetItem, ir.Branch, ir.Jump, ir.Return, ir.PopBlock)
_SEVERAL = -1  # no block
# what may be given to a variable as it is computed
_COMPUTED = ("call", "binop", "unary", "getitem", "static_getitem")


@register_pass(mutates_CFG=False, analysis_only=False)
class FewerStatements(FunctionPass):
    """Literals, functions and copies, as above; comparisons are no longer asked whether they are
    true.
    """

    _name = "lanewise_fewer_statements"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> Any:
        blocks: dict[int, Any] = state.func_ir.blocks
        _fold_literals(blocks)
        _drop_copies(blocks)
        state.func_ir._definitions = build_definitions(blocks)
        return True


def _fold_literals(blocks: Mapping[int, Any]) -> None:
    # what the temporaries of Python's stack hold: each is assigned once
    values: dict[str, Any] = {}
    # assignments of functions to variables that the first block begins with
    shared: dict[Any, Any] = {}
    for block in blocks.values():
        for s in block.body:
            if isinstance(s, ir.Assign):
                if isinstance(s.value, ir.Expr) and s.value.op == "call":
                    _fold(s, values, shared)
                if s.target.name.startswith("$") and isinstance(
                    s.value, ir.Global | ir.Const | ir.Expr
                ):
                    values[s.target.name] = s.value
    first = blocks[min(blocks)]
    first.body = [*shared.values(), *first.body]


def _fold(s: Any, values: dict[str, Any], shared: dict[Any, Any]) -> None:
    """Simplify the call on the right side of an assignment."""
    call = s.value
    called = values.get(call.func.name)
    if not isinstance(called, ir.Global):
        return
    argument = values.get(call.args[0].name) if len(call.args) == 1 else None
    if (
        isinstance(argument, ir.Const)
        and (constant := constant_of(called.value, argument.value)) is not None
    ):
        s.value = ir.Const(constant, s.loc, use_literal_type=False)
    elif (
        called.value is bool
        and isinstance(argument, ir.Expr)
        and argument.op == "binop"
        and argument.fn in _COMPARISONS
    ):
        s.value = call.args[0]
    else:
        if called.name not in shared:
            scope = s.target.scope
            shared[called.name] = ir.Assign(
                called, scope.redefine(f"$lanewise.{called.name}", called.loc), called.loc
            )
        call.func = shared[called.name].target


def constant_of(kind: Any, value: Any) -> Any:
    """The number that a type makes of a literal, or None where the two are something else or the
    number does not fit.
    """
    number = _NUMBERS.get(kind) if isinstance(kind, types.Type) else None
    if number is None or type(value) not in (int, float):
        return None
    if issubclass(number, np.integer):
        limits = np.iinfo(number)
        return number(value) if type(value) is int and limits.min <= value <= limits.max else None
    return number(value) if abs(value) <= float(np.finfo(number).max) else None


def _drop_copies(blocks: Mapping[int, Any]) -> None:
    assigned = Counter(
        s.target.name for b in blocks.values() for s in b.body if isinstance(s, ir.Assign)
    )
    reads = {place: [_read(s) for s in block.body] for place, block in blocks.items()}
    homes: dict[str, int] = {}  # the block that reads a variable, if it is one
    for place, names in reads.items():
        for name in chain.from_iterable(names):
            homes[name] = place if homes.get(name, place) == place else _SEVERAL
    own: defaultdict[int, set[str]] = defaultdict(set)
    for place, block in blocks.items():
        for s in block.body:
            if (
                isinstance(s, ir.Assign)
                and (name := s.target.name)[0] == "$"
                and assigned[name] == 1
            ):
                own[homes.get(name, place)].add(name)
    for place, block in blocks.items():
        block.body = _computed_in_place(
            _without_loads(block.body, reads[place], own[place]), own[place]
        )
    used = {n for b in blocks.values() for s in b.body for n in _read(s)}
    for block in blocks.values():
        block.body = [s for s in block.body if not _unread(s, used)]


def _without_loads(body: list[Any], reads: list[list[str]], own: set[str]) -> list[Any]:
    """A block whose statements read variables and not the copies that Python's stack holds of them.

    own: what is assigned once and read in this block alone. A copy stays where its variable changes
    before it was read for the last time.
    """
    if not all(isinstance(s, _KINDS) for s in body):
        return body
    last = {name: at for at, names in enumerate(reads) for name in names}
    changes: defaultdict[str, list[int]] = defaultdict(list)
    for at, s in enumerate(body):
        if isinstance(s, ir.Assign):
            changes[s.target.name].append(at)
    copied: dict[str, Any] = {}  # variables by the names of their copies
    left: list[Any] = []
    for at, (s, names) in enumerate(zip(body, reads, strict=True)):
        if any(n in copied for n in names):
            replace_vars_stmt(s, copied)
        if isinstance(s, ir.Assign) and isinstance(s.value, ir.Var) and s.target.name in own:
            later = changes[s.value.name]
            after = bisect_right(later, at)
            if after == len(later) or later[after] >= last.get(s.target.name, at):
                copied[s.target.name] = s.value
                continue
        left.append(s)
    return left


def _computed_in_place(body: list[Any], own: set[str]) -> list[Any]:
    """A block whose variables are given what is computed for them at once, and not by way of
    Python's stack.
    """
    reads = Counter(n for s in body for n in _read(s))
    left: list[Any] = []
    for s in body:
        before = left[-1] if left else None
        if (
            isinstance(s, ir.Assign)
            and isinstance(s.value, ir.Var)
            and isinstance(before, ir.Assign)
            and before.target.name == s.value.name
            and s.value.name in own
            and reads[s.value.name] == 1
            and isinstance(before.value, ir.Expr)
            and before.value.op in _COMPUTED
        ):
            before.target = s.target
        else:
            left.append(s)
    return left


def _read(s: Any) -> list[str]:
    """The variables that a statement reads."""
    parts = [s.value] if isinstance(s, ir.Assign) else list(vars(s).values())
    names: list[str] = []
    while parts:
        part: Any = parts.pop()
        if isinstance(part, ir.Var):
            names.append(part.name)
        elif isinstance(part, ir.Expr):
            parts.extend(part._kws.values())  # pyright: ignore[reportPrivateUsage]
        elif isinstance(part, list | tuple):
            parts.extend(part)
    return names


def _unread(s: Any, used: set[str]) -> bool:
    """Whether a statement loads what nothing reads any more."""
    return (
        isinstance(s, ir.Assign)
        and isinstance(s.value, ir.Global | ir.Const)
        and s.target.name not in used
    )
