"""Devices without liberties: no fused multiply-add, no reordered sums; and an interpreter that uses the CPU's own
library functions.

Then nothing is left to rounding: compiled and interpreted results have to be equal to the bit.
"""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
from llvmlite import binding

from lanewise.emit.cuda import emit_cuda
from lanewise.emit.llvm import emit_llvm
from lanewise.emit.llvm_expressions import Expressions
from lanewise.emit.llvm_instructions import TYPES
from lanewise.emit.llvm_prelude import prelude
from lanewise.ir import nodes as ir
from lanewise.ir.interpret import INTRINSICS
from lanewise.language import types as t
from lanewise.launch import executable, kept_programs, support
from lanewise.runtime import llvm, nvrtc
from lanewise.runtime.llvm_lines import FunctionLines

_FLAGS = re.compile(r" (?:(?:reassoc|nsz|arcp|contract|afn|fast) )+")


def _strict(text: str) -> str:
    return _FLAGS.sub(" ", text)


def _made_anew(reference: Any, plan: Any, device: str, begin: Any = lambda text, kernel: None) -> kept_programs.Built:
    """A program that no disk gave: the text that is kept there for the same kernel and plan is that of a device with
    its liberties.
    """
    with (
        mock.patch.object(kept_programs, "read_entry", return_value=None),
        mock.patch.object(kept_programs, "write_entry"),
    ):
        return kept_programs.built(reference, plan, device, begin)


def forget(kernel: Any) -> None:
    """Let a kernel that was called be compiled anew."""
    kernel._calls._begin()


@contextmanager
def strict_cpu() -> Iterator[None]:
    """Kernels that are made and compiled within it keep to the order of operations as written."""
    with (
        mock.patch.object(executable, "emit_llvm", lambda *a, **k: _strict(emit_llvm(*a, **k))),
        mock.patch.object(support, "built", _made_anew),
    ):
        yield


@contextmanager
def strict_gpu() -> Iterator[None]:
    """The same for kernels on a GPU. The texts differ by a remark, so that the cache does not take them for
    the others.
    """
    asked = nvrtc.options
    with (
        mock.patch.object(nvrtc, "options", lambda *a: [*asked(*a), "--fmad=false"]),
        mock.patch.object(executable, "emit_cuda", lambda *a, **k: emit_cuda(*a, **k) + "\n// without contraction\n"),
        mock.patch.object(support, "built", _made_anew),
    ):
        yield


@functools.cache
def _compiled(name: str, kinds: tuple[t.Scalar, ...]) -> Callable[..., Any]:
    """One intrinsic as the CPU computes it."""
    letters = "abc"[: len(kinds)]
    result = t.BOOL if INTRINSICS[name].predicate else kinds[0]
    call = ir.Call(name, tuple(ir.Local(x, k) for x, k in zip(letters, kinds, strict=True)), result)
    code, given = FunctionLines(), {x: f"%{x}" for x in letters}
    code.end(f"ret {TYPES[result]} {Expressions(code, given.__getitem__, given, '', False, False).value(call)}")
    parameters = ", ".join(f"{TYPES[k]} %{x}" for x, k in zip(letters, kinds, strict=True))
    text = f"{prelude(code.needs, fast=False)}\ndefine {TYPES[result]} @f({parameters}) {{\n{code.text()}\n}}\n"
    text = text.replace("define i1 @f", "define zeroext i1 @f")
    made: Any = binding.JITLibraryBuilder().add_object_img(llvm.machine_code(_strict(text)))
    library = made.add_current_process().export_symbol("f").link(llvm._jit(), f"{name} of {kinds}")
    function = ctypes.CFUNCTYPE(*(np.ctypeslib.as_ctypes_type(k.dtype) for k in (result, *kinds)))(library["f"])
    function.library = library  # type: ignore[attr-defined]  # its memory lasts as long as it
    return function


def _evaluated(name: str, *arguments: Any) -> Any:
    kinds = tuple(t.from_dtype(np.asarray(a).dtype) for a in arguments)
    assert all(kinds)
    return _compiled(name, kinds)(*arguments)  # type: ignore[arg-type]


@contextmanager
def library_of_the_cpu() -> Iterator[None]:
    """The interpreter computes intrinsics as the CPU does."""
    same = {n: replace(i, evaluate=functools.partial(_evaluated, n)) for n, i in INTRINSICS.items()}
    with mock.patch.dict(INTRINSICS, same):
        yield
