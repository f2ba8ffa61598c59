"""Types of generated text, by Numba's inference with a memory.

- What a function gives for arguments of the same types is asked once in a process, by inference and
  by lowering. Numba looks for it at each use.
- A constraint is looked at again when a type that it reads or writes has changed. Numba looks at
  all of them until none changes any more.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from types import BuiltinFunctionType
from typing import Any

from numba.core import ir, typeinfer, types
from numba.core.compiler_machinery import register_pass
from numba.core.errors import ForceLiteralArg, TypingError
from numba.core.typed_passes import NopythonTypeInference


@register_pass(mutates_CFG=True, analysis_only=False)
class InferTypes(NopythonTypeInference):
    """Numba's inference of types, with a context that remembers."""

    _name = "lanewise_infer_types"

    def run_pass(self, state: Any) -> Any:
        context, network = state.typingctx, typeinfer.ConstraintNetwork
        # The compiler's lock is held: nobody else infers types meanwhile.
        state.typingctx, typeinfer.ConstraintNetwork = _Remembering(context), _Constraints
        try:
            return super().run_pass(state)
        finally:
            state.typingctx, typeinfer.ConstraintNetwork = context, network


class _Constraints(typeinfer.ConstraintNetwork):
    """What types have to do with each other.

    A constraint gives the same again for the same types.
    """

    def __init__(self) -> None:
        super().__init__()
        self._variables: dict[Any, tuple[str, ...]] = {}
        self._met: dict[Any, Any] = {}  # the types that constraints left behind

    def propagate(self, typeinfer: Any) -> list[Any]:
        variables, errors = typeinfer.typevars, list[Any]()

        def met(each: Any) -> list[Any]:
            return [v.type if (v := variables.get(n)) else None for n in self._variables[each]]

        with typeinfer.warnings.catch_warnings():
            for each in self.constraints:
                if each not in self._variables:
                    self._variables[each] = tuple(_names(vars(each).values()))
                elif self._met.get(each) == met(each):
                    continue
                try:
                    each(typeinfer)
                except (ForceLiteralArg, TypingError) as error:
                    errors.append(error)
                    self._met.pop(each, None)
                else:
                    self._met[each] = met(each)
        return errors


def _names(parts: Any) -> Generator[str]:
    """The variables that a constraint may name."""
    for part in parts:
        match part:
            case str():
                yield part
            case ir.Var():
                yield part.name
            case tuple() | list():
                yield from _names(part)
            case dict():
                yield from _names(part.values())
            case _:
                pass


# operations, conversions, elements, loops
_SETTLED = (types.Function, types.NumberClass, BuiltinFunctionType, str)
_KNOWN: dict[Any, Any] = {}  # what functions give, by themselves and the types of their arguments
MOST_KNOWN = 4096  # then it starts anew: asking again costs a millisecond at most


class _Remembering:
    """A typing context that knows what it was asked before: of functions that are neither compiled
    nor made for a call.
    """

    def __init__(self, context: Any) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def resolve_function_type(self, function: Any, arguments: Any, named: Any) -> Any:
        if named or not isinstance(function, _SETTLED):
            return self._context.resolve_function_type(function, arguments, named)
        return remembered(
            function,
            arguments,
            lambda: self._context.resolve_function_type(function, arguments, named),
        )


def remembered(function: Any, arguments: Any, ask: Callable[[], Any]) -> Any:
    """What a function gives for arguments of these types; asked once."""
    key = function, tuple(arguments)
    signature = _KNOWN.get(key)
    if signature is None:
        signature = ask()
        if signature is not None:
            if len(_KNOWN) >= MOST_KNOWN:
                _KNOWN.clear()
            _KNOWN[key] = signature
    return signature


@contextlib.contextmanager
def calls_remembered() -> Generator[None]:
    """Lowering asks operators again what they give; the compiler's lock is held, so that nobody
    else asks meanwhile.
    """
    functions: Any = types.Function
    plain = functions.get_call_type

    def get_call_type(function: Any, context: Any, arguments: Any, named: Any) -> Any:
        if named:
            return plain(function, context, arguments, named)
        return remembered(function, arguments, lambda: plain(function, context, arguments, named))

    functions.get_call_type = get_call_type
    try:
        yield
    finally:
        functions.get_call_type = plain
