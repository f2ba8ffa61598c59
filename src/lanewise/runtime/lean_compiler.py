"""A short way through Numba for generated text, which has fewer kinds of statements than Python.

Numba's own way looks for closures, comprehensions, literal loops and branches that are never taken, gives each assignment a variable of its
own, and analyses the function anew after each of its passes. Generated text has none of these, and its variables keep their types, so
LLVM is given the same functions without, in less than half the time. Nor is the source annotated with types: the annotation would keep
dropped kernels alive (Numba's finalizer of a dispatcher holds what was compiled, this the source, this the function). Two things are added:

- A literal such as `f32(0.5)` becomes a constant before types are inferred. Numba would type a name, a number and a call for each.
- What a function gives for arguments of the same types is asked once in a process.
"""

from __future__ import annotations

import operator
from copy import copy
from typing import Any

import numpy as np
from numba import _dynfunc  # pyright: ignore[reportAttributeAccessIssue]
from numba.core import ir, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase
from numba.core.compiler_machinery import FunctionPass, PassManager, register_pass
from numba.core.dispatcher import Dispatcher
from numba.core.ir_utils import build_definitions
from numba.core.typed_passes import IRLegalization, NativeLowering, NoPythonBackend, NopythonTypeInference
from numba.core.untyped_passes import FixupArgs, IRProcessing, TranslateByteCode

_NUMBERS: dict[Any, Any] = {
    types.int32: np.int32, types.uint32: np.uint32, types.int64: np.int64, types.uint64: np.uint64,
    types.float32: np.float32, types.float64: np.float64,
}  # fmt: skip
_COMPARISONS = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)


def shorten(dispatcher: Any) -> None:
    """Let a function of generated text, and those of its module, be compiled the short way from now on."""
    for each in dispatcher.py_func.__globals__.values():
        if isinstance(each, Dispatcher):
            compiler: Any = each._compiler  # pyright: ignore[reportPrivateUsage]
            compiler.pipeline_class = _ShortWay
            options: dict[str, Any] = each.targetoptions
            options["no_cfunc_wrapper"] = True  # nobody calls it from C,
            options["no_cpython_wrapper"] = each is not dispatcher  # and Python calls the kernel alone


class _ShortWay(CompilerBase):
    """Numba's passes that generated text needs."""

    def define_pipelines(self) -> list[Any]:
        manager: Any = PassManager("generated text")
        for each in (
            TranslateByteCode, FixupArgs, IRProcessing, _FoldLiterals, _InferTypes, IRLegalization, _Lower, NoPythonBackend,
        ):  # fmt: skip
            manager.add_pass(each, each.__name__)
        manager.finalize()
        manager._ENFORCING = False  # what is checked and analysed after each pass is done once, by `IRLegalization`
        return [manager]


@register_pass(mutates_CFG=False, analysis_only=False)
class _FoldLiterals(FunctionPass):
    """Literals become constants of their type, functions are looked up once, and comparisons are no longer asked whether they are true."""

    _name = "lanewise_fold_literals"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        blocks: dict[int, Any] = state.func_ir.blocks
        values: dict[str, Any] = {}  # what the temporaries of Python's stack hold: each is assigned once
        shared: dict[Any, Any] = {}  # assignments of functions to variables that the first block begins with
        for block in blocks.values():
            for s in block.body:
                if isinstance(s, ir.Assign):
                    if isinstance(s.value, ir.Expr) and s.value.op == "call":
                        _fold(s, values, shared)
                    if s.target.name.startswith("$") and isinstance(s.value, ir.Global | ir.Const | ir.Expr):
                        values[s.target.name] = s.value
        first = blocks[min(blocks)]
        first.body = [*shared.values(), *first.body]
        used = {v.name for b in blocks.values() for s in b.body for v in _read(s)}
        for block in blocks.values():
            block.body = [s for s in block.body if not _unread(s, used)]
        state.func_ir._definitions = build_definitions(blocks)
        return True


def _fold(s: Any, values: dict[str, Any], shared: dict[Any, Any]) -> None:
    """Simplify the call on the right side of an assignment."""
    call = s.value
    called = values.get(call.func.name)
    if not isinstance(called, ir.Global):
        return
    argument = values.get(call.args[0].name) if len(call.args) == 1 else None
    if isinstance(argument, ir.Const) and (constant := _constant(called.value, argument.value)) is not None:
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
            shared[called.name] = ir.Assign(called, scope.redefine(f"$lanewise.{called.name}", called.loc), called.loc)
        call.func = shared[called.name].target


def _constant(kind: Any, value: Any) -> Any:
    """The number that a type makes of a literal, or None where the two are something else or the number does not fit."""
    number = _NUMBERS.get(kind) if isinstance(kind, types.Type) else None
    if number is None or type(value) not in (int, float):
        return None
    if issubclass(number, np.integer):
        limits = np.iinfo(number)
        return number(value) if type(value) is int and limits.min <= value <= limits.max else None
    return number(value) if abs(value) <= np.finfo(number).max else None


def _read(s: Any) -> Any:
    """The variables that a statement reads."""
    if not isinstance(s, ir.Assign):
        return s.list_vars()
    if isinstance(s.value, ir.Expr):
        return s.value.list_vars()
    return (s.value,) if isinstance(s.value, ir.Var) else ()


def _unread(s: Any, used: set[str]) -> bool:
    """Whether a statement loads what nothing reads any more."""
    return isinstance(s, ir.Assign) and isinstance(s.value, ir.Global | ir.Const) and s.target.name not in used


@register_pass(mutates_CFG=True, analysis_only=False)
class _InferTypes(NopythonTypeInference):
    """Numba's inference of types, with a context that remembers."""

    _name = "lanewise_infer_types"

    def run_pass(self, state: Any) -> bool:
        context = state.typingctx
        state.typingctx = _Remembering(context)
        try:
            return bool(super().run_pass(state))
        finally:
            state.typingctx = context


_KNOWN: dict[Any, Any] = {}  # what functions give, by themselves and the types of their arguments


class _Remembering:
    """A typing context that knows what it was asked before: of functions that are neither compiled nor made for a call."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def resolve_function_type(self, function: Any, arguments: Any, named: Any) -> Any:
        if named or not isinstance(function, types.Function):
            return self._context.resolve_function_type(function, arguments, named)
        key = function, tuple(arguments)
        found = _KNOWN.get(key)
        if found is None:
            found = self._context.resolve_function_type(function, arguments, named)
            if found is not None:
                _KNOWN[key] = found
        return found


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lower(NativeLowering):
    """Numba's lowering; a function that only other functions call is not made machine code of its own."""

    _name = "lanewise_lower"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        codegen = state.targetctx.codegen()
        inner = bool(state.flags.no_cpython_wrapper)
        state.library = (_InnerLibrary if inner else _Library)(codegen, state.func_id.func_qualname)
        state.library.enable_object_caching()
        if inner:
            state.targetctx = copy(state.targetctx)
            state.targetctx.get_executable = _not_executable
        return bool(super().run_pass(state))


class _Library(JITCodeLibrary):
    """What LLVM is given of a function; declarations have nothing to optimise."""

    def _optimize_functions(self, ll_module: Any) -> None:
        codegen: Any = self._codegen
        ll_module.data_layout = codegen._data_layout
        for function in ll_module.functions:
            if not function.is_declaration:
                manager, builder = codegen._function_pass_manager()
                manager.run(function, builder)


class _InnerLibrary(_Library):
    """A function that others are compiled with; no machine code is made of it alone."""

    def _finalize_final_module(self) -> None:
        self._finalized = True


def _not_executable(library: Any, description: Any, environment: Any) -> Any:
    """Stands for a function that Python cannot call: lowering knows functions by such objects."""
    library._ensure_finalized()
    name = description.qualname.split(".")[-1]
    return _dynfunc.make_function(description.lookup_module(), name, "not for Python", 0, environment, (library,))
