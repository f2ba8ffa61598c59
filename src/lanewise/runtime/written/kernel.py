"""Kernels of texts that are written by hand: each is compiled for the types of its arguments."""

from __future__ import annotations

import ast
from functools import partial
from typing import Any

from lanewise.runtime.cache import content_key
from lanewise.runtime.llvm import LlvmKernel
from lanewise.runtime.python_call import DATA, LENGTHS, STEPS, PythonCall
from lanewise.runtime.written.expressions import number_of
from lanewise.runtime.written.functions import FunctionWriter
from lanewise.runtime.written.kinds import (
    BOOL,
    I64,
    ArrayKind,
    Kind,
    NumberKind,
    TextError,
    kind_of,
    sort_of,
)
from lanewise.runtime.written.values import Arithmetic, TextArray, TextNumber, constant, rooms_of

ROUNDS = 20  # through a text, until types stay the same


class TextKernel:
    """The function `<name>_kernel` of a text, called with arrays and numbers of any types that it
    can work with. It returns None, an integer or a boolean.
    """

    __slots__ = ("__weakref__", "_known", "_made", "name", "text")

    def __init__(self, text: str, name: str) -> None:
        self.text, self.name = text, name
        self._made: dict[tuple[Any, ...], LlvmKernel] = {}
        self._known: dict[tuple[Any, ...], LlvmKernel] = {}  # by what is quick to ask for

    def __call__(self, *arguments: Any) -> Any:
        return self.function_for(arguments)(*arguments)

    def function_for(self, arguments: tuple[Any, ...]) -> Any:
        """What runs it with arguments of these types, compiled."""
        sorts = tuple([sort_of(a) for a in arguments])
        made = self._known.get(sorts)
        if made is None:
            kinds = tuple(map(kind_of, arguments))
            made = self._made.get(kinds)
            if made is None:
                key = content_key(self.text, self.name, repr(kinds))
                made = LlvmKernel(partial(llvm_text, self.text, self.name, kinds), self.name, key)
                self._made[kinds] = made
            self._known[sorts] = made
        return made.function


def llvm_text(text: str, name: str, kinds: tuple[Kind, ...]) -> str:
    """A text in LLVM's language, for arguments of these types."""
    module = ast.parse(text)
    functions = {s.name: s for s in module.body if isinstance(s, ast.FunctionDef)}
    known = {"inf": constant(float("inf"))}
    for s in module.body:
        if isinstance(s, ast.Assign):
            known |= _constants(s, known)
    main = functions.pop(f"{name}_kernel")
    variables: dict[str, Kind] = {}
    for _ in range(ROUNDS):
        writer = FunctionWriter(functions, known, variables)
        parameters = _parameters(writer, main, kinds)
        writer.block(main.body)
        if writer.variables.settled:
            return _module(writer, name, parameters, kinds)
    raise TextError(f"the types of {name} do not come to rest")


def _constants(s: ast.Assign, known: dict[str, TextNumber]) -> dict[str, TextNumber]:
    """Numbers that a text names above its functions."""
    (target,), writer = s.targets, FunctionWriter({}, known, {})
    names = target.elts if isinstance(target, ast.Tuple) else [target]
    values = s.value.elts if isinstance(s.value, ast.Tuple) else [s.value]
    number = writer.expressions.number
    return {ast.unparse(n): number(v) for n, v in zip(names, values, strict=True)}


def _parameters(
    writer: FunctionWriter, main: ast.FunctionDef, kinds: tuple[Kind, ...]
) -> list[str]:
    """The arguments as variables; the parameters of the function in LLVM's language."""
    parameters = list[str]()
    if len(main.args.args) != len(kinds):
        raise TextError(f"{main.name} takes {len(main.args.args)} arguments, found {len(kinds)}")
    for p, kind in zip(main.args.args, kinds, strict=True):
        names = [f"%{p.arg}.given.{n}" for n in range(len(rooms_of(kind)))]
        parameters += [f"{t} {n}" for t, n in zip(rooms_of(kind), names, strict=True)]
        match kind:
            case NumberKind():
                value = TextNumber(kind, names[0])
            case ArrayKind(dimensions=n):
                value = TextArray(kind, names[0], tuple(names[1 : n + 1]), tuple(names[n + 1 :]))
            case _:
                raise TextError(f"{p.arg} is {kind}")
        writer.variables.assign(writer.variables.own(p.arg), value)
    return parameters


def _module(
    writer: FunctionWriter, name: str, parameters: list[str], kinds: tuple[Kind, ...]
) -> str:
    """The function itself, and what Python calls."""
    code, result = writer.code, writer.variables.kinds.get("0.return")
    code.begin("return")
    if result is not None:
        if not isinstance(result, NumberKind) or result.is_float:
            raise TextError("a kernel returns an integer, a boolean or nothing")
        found = Arithmetic(code).cast(number_of(writer.variables.value_of("0.return")), I64)
        code.do(f"store {found.kind.text} {found.name}, ptr %result")
    writer.local.given_back()
    head = f"define internal i32 @{name}_range({', '.join([*parameters, 'ptr %result'])}) noinline"
    parts = [f"; {name}, written by hand\n", *sorted(code.needs)]
    parts.append(f"{head} {{\n{code.text()}\n}}\n")
    return "\n".join([*parts, _called_from_outside(name, kinds, result)])


def _called_from_outside(name: str, kinds: tuple[Kind, ...], result: NumberKind | None) -> str:
    """What Python calls, with arguments that are known to have these types."""
    call, arguments = PythonCall(name, len(kinds)), list[str]()
    for n, kind in enumerate(kinds):
        if isinstance(kind, NumberKind):
            arguments.append(f"{kind.text} {call.number(n, kind.text)}")
            continue
        assert isinstance(kind, ArrayKind)
        array = call.given(n)
        arguments.append(f"ptr {call.read('ptr', array, DATA)}")
        for where in (LENGTHS,) if kind.whole else (LENGTHS, STEPS):
            row = call.read("ptr", array, where)
            arguments += [f"i64 {call.read('i64', row, 8 * d)}" for d in range(kind.dimensions)]
    call.without_error()
    room = call.code.room("%result", "i64")
    call.run(f"@{name}_range({', '.join([*arguments, f'ptr {room}'])})")
    if result is None:
        return call.text(f"@{name}_kernel")
    maker = "PyBool_FromLong" if result == BOOL else "PyLong_FromLongLong"
    found = call.code.give(f"load i64, ptr {room}")
    made = call.code.give(f"call ptr @{maker}(i64 {found})")
    return f"declare ptr @{maker}(i64)\n" + call.text(f"@{name}_kernel", made)
