"""Numba's lowering of generated text to LLVM: the statements that such text has, without what
others need.

Elements of arrays are reached by two instructions in place of some twenty that LLVM would remove
again; nothing is loaded to be forgotten, no statement is spelled for messages that nobody asked
for, and what implements a function is looked up once a kernel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from copy import copy
from typing import Any

from llvmlite import binding as llvm
from numba import _dynfunc  # pyright: ignore[reportAttributeAccessIssue]
from numba.core import config, ir, types
from numba.core.codegen import (
    JITCodeLibrary,
    _parse_refprune_flags,  # pyright: ignore[reportPrivateUsage]
)
from numba.core.compiler_machinery import register_pass
from numba.core.errors import new_error_context  # pyright: ignore[reportAttributeAccessIssue]
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering
from numba.np.arrayobj import load_item, store_item

from lanewise.runtime.lean_types import calls_remembered
from lanewise.runtime.loop_invariants import MOST_PATHS, most_paths

_FOR_PYTHON = "_ZN7cpython"  # how Numba's names for what takes Python's objects begin


@register_pass(mutates_CFG=True, analysis_only=False)
class LowerText(NativeLowering):
    """Numba's lowering; a function that only other functions call is not made machine code of its
    own.
    """

    _name = "lanewise_lower"

    def __init__(self) -> None:
        super().__init__()

    @property
    def lowering_class(self) -> Any:
        return _Lowering

    def run_pass(self, state: Any) -> Any:
        codegen = state.targetctx.codegen()
        inner = bool(state.flags.no_cpython_wrapper)
        state.library = (_InnerLibrary if inner else _Library)(codegen, state.func_id.func_qualname)
        state.library.enable_object_caching()
        state.targetctx = copy(state.targetctx)
        state.targetctx.get_function = _implementations(state.targetctx)
        if inner:
            state.targetctx.get_executable = _not_executable
        with calls_remembered():
            return super().run_pass(state)


def _not_executable(library: Any, description: Any, environment: Any) -> Any:
    """Stands for a function that Python cannot call: lowering knows functions by such objects."""
    library._ensure_finalized()
    name = description.qualname.split(".")[-1]
    return _dynfunc.make_function(
        description.lookup_module(), name, "not for Python", 0, environment, (library,)
    )


class _Lowering(Lower):
    """Statement by statement; what is not here is Numba's own.

    An error is told with its block, and not with its statement.
    """

    def init(self) -> None:
        super().init()
        flags: Any = self.flags
        self._counts = bool(flags.nrt)  # who holds an array
        assigned = Counter(
            s.target.name for b in self.blocks.values() for s in b.body if isinstance(s, ir.Assign)
        )
        self._arguments = {  # those that keep what they are given, with their places
            s.target.name: s.value.index
            for s in self.blocks[min(self.blocks)].body
            if isinstance(s, ir.Assign)
            and isinstance(s.value, ir.Arg)
            and assigned[s.target.name] == 1
        }
        # of arrays that are arguments: taken out once
        self._fields: dict[tuple[str, str], Any] = {}

    def extract_function_arguments(self) -> Any:
        given = super().extract_function_arguments()
        # Where all arguments are there. A truth value comes as a byte, of which Numba makes one by
        # a branch, so the function's first block ends before the arguments that follow it are
        # there.
        self._arguments_end = self.builder.basic_block
        return given

    def lower_block(self, block: Any) -> None:
        self.pre_block(block)
        with new_error_context("lowering a block of generated text"):
            for s in block.body:
                self.loc = s.loc
                self.lower_inst(s)
        self.post_block(block)

    def pre_block(self, block: Any) -> None:
        # Numba looks for `try`, and makes room for all variables whose end is marked.
        if self._counts:
            super().pre_block(block)
        else:
            self._cur_ir_block = block

    def lower_inst(self, inst: Any) -> None:
        match inst:
            case ir.Assign() if not isinstance(inst.value, ir.Arg):
                name = inst.target.name
                self.storevar(self.lower_assign(self.typeof(name), inst), name)
            case ir.SetItem():
                self.lower_setitem(inst.target, inst.index, inst.value, self.fndesc.calltypes[inst])
            case _:
                super().lower_inst(inst)

    def storevar(self, value: Any, name: str, argidx: Any = None) -> None:
        if self._counts:  # Numba loads what is overwritten, which nobody holds any more
            super().storevar(value, name, argidx)
        elif name in self._singly_assigned_vars:
            self._blk_local_varmap[name] = value
        else:
            self._alloca_var(name, self.typeof(name))
            self.builder.store(value, self.getvar(name))

    def lower_binop(self, resty: Any, expr: Any, op: Any) -> Any:
        if expr.static_lhs is not ir.UNDEFINED or expr.static_rhs is not ir.UNDEFINED:
            return super().lower_binop(resty, expr, op)
        function = self.context.typing_context.resolve_value_type(op)
        signature = self.fndesc.calltypes[expr]
        operands = self._cast((expr.lhs, expr.rhs), signature.args)
        signature = function.get_call_type(self.context.typing_context, signature.args, {})
        result = self.context.get_function(function, signature)(self.builder, operands)
        return self.context.cast(self.builder, result, signature.return_type, resty)

    def lower_call(self, resty: Any, expr: Any) -> Any:
        signature, function = self.fndesc.calltypes[expr], self.typeof(expr.func.name)
        plain = (
            isinstance(function, types.Function | types.NumberClass | types.Dispatcher)
            and not (expr.vararg or expr.kws or expr.target or signature.recvr)
            and not isinstance(signature.return_type, types.Phantom)
            and len(signature.args) == len(expr.args)
        )
        if not plain:
            return super().lower_call(resty, expr)
        arguments = self._cast(expr.args, signature.args)
        result = self.context.get_function(function, signature)(self.builder, arguments, self.loc)
        if result is None:
            assert signature.return_type == types.void
            result = self.context.get_dummy_value()
        return self.context.cast(self.builder, result, signature.return_type, resty)

    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        array = self.typeof(value.name)
        if not self._is_row(array, index):
            return super().lower_getitem(resty, expr, value, index, signature)
        item = load_item(self.context, self.builder, array, self._element(value.name, index.name))
        return self.context.cast(self.builder, item, array.dtype, resty)

    def lower_setitem(self, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
        array, kind = self.typeof(target_var.name), self.typeof(value_var.name)
        if not self._is_row(array, index_var) or not isinstance(kind, types.Number | types.Boolean):
            return super().lower_setitem(target_var, index_var, value_var, signature)
        (value,) = self._cast([value_var], signature.args[2:])
        value = self.context.cast(self.builder, value, signature.args[2], array.dtype)
        return store_item(
            self.context, self.builder, array, value, self._element(target_var.name, index_var.name)
        )

    def _cast(self, variables: Any, kinds: Any) -> list[Any]:
        """The values of variables in these types."""
        cast, pairs = self.context.cast, zip(variables, kinds, strict=True)
        return [cast(self.builder, self.loadvar(v.name), self.typeof(v.name), k) for v, k in pairs]

    def _is_row(self, array: Any, index: Any) -> bool:
        """Whether elements lie one after the other, and one of them is meant."""
        return (
            isinstance(array, types.Array)
            and array.ndim == 1
            and array.layout == "C"
            and isinstance(self.typeof(index.name), types.Integer)
            and not self.context.enable_boundscheck
        )

    def _element(self, array: str, index: str) -> Any:
        """A pointer to an element.

        As in Python, a signed index that is negative counts from the end.
        """
        builder, kind = self.builder, self.typeof(index)
        place = self.context.cast(
            builder, self.loadvar(index), kind, types.intp if kind.signed else types.uintp
        )
        if kind.signed:
            behind = builder.add(place, builder.extract_value(self._field(array, "shape"), 0))
            place = builder.select(builder.icmp_signed("<", place, place.type(0)), behind, place)
        return builder.gep(self._field(array, "data"), [place])

    def _field(self, array: str, name: str) -> Any:
        """What an array has of its description."""
        kind = self.typeof(array)
        position = self.context.data_model_manager[kind].get_field_position(name)
        if array not in self._arguments or self.typeof(f"arg.{array}") != kind:
            return self.builder.extract_value(self.loadvar(array), position)
        if (array, name) not in self._fields:
            with self.builder.goto_block(self._arguments_end):
                given = self.fnargs[self._arguments[array]]
                self._fields[array, name] = self.builder.extract_value(given, position)
        return self._fields[array, name]


def _implementations(context: Any) -> Callable[..., Any]:
    """Numba's search for what implements a function, once a kernel for each.

    Arrays are NumPy's own: nothing stands before their access.
    """
    search, known = context.get_function, dict[Any, Any]()

    def get_function(function: Any, signature: Any, **again: Any) -> Any:
        if isinstance(function, str) and function == "__array__":
            raise NotImplementedError
        key = function, signature
        found = known.get(key)
        if found is None:
            known[key] = found = search(function, signature, **again)
        return found

    return get_function


def _second_round(codegen: Any, interleaves: bool) -> tuple[Any, Any]:
    """Numba's passes over a whole module. interleaves: whether LLVM may take several rounds of a
    loop at once.
    """
    numba: Any = config
    options: Any = llvm.create_pipeline_tuning_options(speed_level=int(numba.OPT))
    options.loop_vectorization = bool(numba.LOOP_VECTORIZE)
    options.slp_vectorization = bool(numba.SLP_VECTORIZE)
    options.loop_interleaving = interleaves
    builder: Any = llvm.create_pass_builder(codegen._tm, options)
    manager = builder.getModulePassManager()
    if numba.LLVM_REFPRUNE_PASS:
        manager.add_refprune_pass(_parse_refprune_flags())
    return manager, builder


class _Library(JITCodeLibrary):
    """What LLVM is given of a function.

    Declarations have nothing to optimise by themselves, nor is it worth it for what Python calls.
    """

    def _optimize_functions(self, ll_module: Any) -> None:
        codegen: Any = self._codegen
        ll_module.data_layout = codegen._data_layout
        manager, builder = codegen._function_pass_manager()
        for function in ll_module.functions:
            if not function.is_declaration and not function.name.startswith(_FOR_PYTHON):
                manager.run(function, builder)

    def _optimize_final_module(self) -> None:
        """Numba's two rounds: a cheap one, and one that is told what the first one has left."""
        codegen: Any = self._codegen
        module: Any = self._final_module
        manager, builder = codegen._module_pass_manager(
            loop_vectorize=codegen._loopvect,
            slp_vectorize=False,
            opt=codegen._opt_level,
            cost="cheap",
        )
        manager.run(module, builder)
        manager, builder = _second_round(codegen, most_paths(str(module)) <= MOST_PATHS)
        manager.run(module, builder)


class _InnerLibrary(_Library):
    """A function that others are compiled with: it is optimised as a part of them, and no machine
    code is made of it alone.
    """

    def _finalize_final_module(self) -> None:
        self._finalized = True

    def _optimize_final_module(self) -> None:
        """Left to whoever calls it."""
