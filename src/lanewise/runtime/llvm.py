"""Machine code of texts in LLVM's language, kept in the cache of compiled kernels, as functions of
Python's C interface.

    text -> module, optimised -> object -> memory of this process
An object is as large as its code, and is kept as it is. A kernel's memory is freed with its
function.
"""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Callable
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from lanewise.runtime import compile_workers, compiling
from lanewise.runtime.cache import (
    content_key,
    has_entry,
    read_entry,
    remove_entry,
    sources_key,
    write_entry,
)
from lanewise.runtime.compiler_locks import LOADING
from lanewise.runtime.contraction import contracted
from lanewise.runtime.loop_invariants import MOST_PATHS, most_paths
from lanewise.runtime.mathematics.library import called, with_functions, with_registers
from lanewise.support.errors import DeviceError
from lanewise.support.interrupts import interrupts_wait

FORMAT = "1"  # of what is kept
# what kernels call of Python's C interface, and its exceptions
_FUNCTIONS = (
    "PyErr_SetString",
    "PyErr_Occurred",
    "PyObject_IsTrue",
    "PyFloat_AsDouble",
    "PyLong_AsLongLong",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
    "PyLong_FromLongLong",
    "PyBool_FromLong",
    "Py_IncRef",
)
_ERRORS = ("PyExc_TypeError", "PyExc_AssertionError", "PyExc_MemoryError")
_FAST_CALL = 0x80  # METH_FASTCALL: arguments come as a row of objects
_NUMBERS = count()  # of libraries: a name is never used again


class _Method(ctypes.Structure):
    """`PyMethodDef` of Python's C interface."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("text", ctypes.c_char_p),
    )


class LlvmKernel:
    """A kernel of a text, called with arrays, numbers, and the ends of a range.

    Its machine code is made, or read from the cache, when it is first needed.
    """

    __slots__ = ("__weakref__", "_function", "key", "name", "written")

    def __init__(self, written: Callable[[], str], name: str, key: str) -> None:
        """written: what gives the text, where there is no machine code yet. key: of the text."""
        self.written, self.name, self.key = written, name, key
        self._function: Any = None

    def __call__(self, *arguments: Any) -> None:
        self.function(*arguments)

    @property
    def function(self) -> Any:
        """The kernel as a function of machine code, which takes what it takes."""
        return self._function or self.load()

    @property
    def is_known(self) -> bool:
        """Whether its machine code is there, in this process or in the cache."""
        return self._function is not None or has_entry(entry_name(self.key, self.name))

    @interrupts_wait()
    def load(self) -> Any:
        """Its function, once there is its machine code."""
        with LOADING:
            if self._function is None:
                self._function = self._made()
            return self._function

    def _made(self) -> Any:
        entry = entry_name(self.key, self.name)
        content = read_entry(entry)
        if content is not None:
            try:
                return _linked(content, self.name)
            except RuntimeError:
                # written whole, and yet no object for this LLVM: made again like a damaged one
                remove_entry(entry)
        content = compile_workers.taken((self.key,))
        if not content:
            compiling.begin(self.name)
            content = machine_code(self.written())
            compiling.end(self.name)
        write_entry(entry, content)
        try:
            return _linked(content, self.name)
        except RuntimeError as error:
            _, processor, features = _host()
            has_float16 = re.search(r"\bhalf\b", self.written()) is not None
            if not has_float16 or "+f16c" in features.split(","):
                raise
            raise DeviceError(
                f"{self.name}: this CPU ({processor}) has no instructions that convert float16 "
                "(F16C); keep such fields and arrays as f32"
            ) from error


def entry_name(key: str, name: str) -> str:
    """The entry of a kernel in the cache: its text, and all that decides what code becomes of it.

    key: of the code.
    """
    return f"cpu/{name}-{content_key(key, *_made_by())}"


@cache
@interrupts_wait()
def _llvmlite() -> tuple[Any, str]:
    import llvmlite
    from llvmlite import binding

    return binding, llvmlite.__version__


@cache
def _made_by() -> tuple[str, ...]:
    binding, binding_version = _llvmlite()
    _, processor, features = _host()
    version = ".".join(map(str, binding.llvm_version_info))
    sources = sources_key(Path(__file__).parent) or ""
    return FORMAT, sources, sys.platform, binding_version, version, processor, features


@cache
def _host() -> tuple[str, str, str]:
    """The triple of this machine, the name and the features of its processor, as LLVM has them."""
    binding = _llvmlite()[0]
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    features = binding.get_host_cpu_features().flatten()
    return binding.get_process_triple(), binding.get_host_cpu_name(), features


@cache
def _machine() -> Any:
    binding = _llvmlite()[0]
    triple, processor, features = _host()
    return binding.Target.from_triple(triple).create_target_machine(
        cpu=processor, features=features, opt=3, reloc="pic", codemodel="default"
    )


@cache
def _jit() -> Any:
    """What links objects. Each has its sections in one block of memory: where a process has mapped
    much, as CUDA does, separate blocks may lie farther apart than addresses of 32 bits reach.
    """
    binding = _llvmlite()[0]
    return binding.create_lljit_compiler(_machine(), use_jit_link=True, suppress_errors=True)


def machine_code(text: str) -> bytes:
    """The object of a text."""
    return _machine().emit_object(_optimised(text))


def assembly(text: str) -> str:
    """The machine code of a text for people to read."""
    return _machine().emit_assembly(_optimised(text))


def _optimised(text: str) -> Any:
    """A text as a module that is left to be written as machine code.

    Products join their sums before a loop has copies (`contraction.py`). LLVM takes several steps
    of a loop at once where that does not take minutes (`loop_invariants.py`); it makes no vectors
    of neighbouring statements, which would change the order of sums that it may reorder.
    """
    functions = called(text)
    if functions:
        text = with_registers(text, functions)
    module = _vectorised(text)
    return _with_functions(module) if functions else module


def _parsed(text: str) -> Any:
    module: Any = _llvmlite()[0].parse_assembly(text)
    machine = _machine()
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    module.verify()
    return module


def _with_functions(module: Any) -> Any:
    """A module of vectors with the functions of mathematics that it calls, in their places."""
    module = _parsed(with_functions(str(module), scales=has_scaling()))
    manager: Any = _builder(_machine(), vectors=False).getModulePassManager()
    manager.run(module, _builder(_machine(), vectors=False))
    return module


def _vectorised(text: str) -> Any:
    machine, module = _machine(), _parsed(text)
    builder = _builder(machine)
    manager: Any = builder.getFunctionPassManager()
    for function in module.functions:
        if not function.is_declaration:
            manager.run(function, builder)
    builder = _builder(machine, level=0)
    manager = builder.getModulePassManager()
    # rotated early, a loop has the form that is recognised
    manager.add_loop_rotate_pass()
    manager.add_instruction_combine_pass()
    manager.add_jump_threading_pass()
    manager.run(module, builder)
    text = contracted(str(module))
    module = _parsed(text)
    builder = _builder(machine, interleaves=most_paths(text) <= MOST_PATHS)
    builder.getModulePassManager().run(module, builder)
    return module


def _builder(
    machine: Any, *, level: int = 3, interleaves: bool = True, vectors: bool = True
) -> Any:
    """What makes lists of LLVM's passes."""
    binding = _llvmlite()[0]
    options: Any = binding.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = level > 0 and vectors
    options.loop_unrolling = vectors
    options.slp_vectorization = False
    options.loop_interleaving = interleaves
    return binding.create_pass_builder(machine, options)


def _linked(content: bytes, name: str) -> Any:
    """An object in the memory of this process, as a function that Python calls."""
    symbol, made = f"{name}_kernel", _llvmlite()[0].JITLibraryBuilder()
    library: Any = made.add_object_img(content).add_current_process().export_symbol(symbol)
    for known, address in _python():
        library.import_symbol(known, address)
    tracker = library.link(_jit(), f"{name}.{next(_NUMBERS)}")
    method = _Method(name.encode(), tracker[symbol], _FAST_CALL, None)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    make.restype = ctypes.py_object
    # the function keeps the two: its code is there as long as it is
    return make(ctypes.addressof(method), (tracker, method), None)


@cache
def _python() -> tuple[tuple[str, int], ...]:
    """Where the names of Python's C interface lie that kernels use."""
    interface: Any = ctypes.pythonapi
    functions = [(n, ctypes.cast(getattr(interface, n), ctypes.c_void_p)) for n in _FUNCTIONS]
    errors = [(n, ctypes.addressof(ctypes.c_void_p.in_dll(interface, n))) for n in _ERRORS]
    return (*((n, f.value or 0) for n, f in functions), *errors, ("_Py_NoneStruct", id(None)))


@cache
def has_scaling() -> bool:
    """Whether this processor has the instruction of AVX-512 that scales by powers of two."""
    _, _, features = _host()
    return {"+avx512f", "+avx512vl"} <= set(features.split(","))
