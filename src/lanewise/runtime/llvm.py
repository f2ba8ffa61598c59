"""Machine code of texts in LLVM's language, kept in the cache of compiled kernels, and called by
ctypes, which lets other threads of Python run meanwhile.

    text -> module, optimised -> object -> memory of this process
An object is as large as its code, and is kept as it is. A kernel's memory is freed with the last
function that refers to it.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable
from functools import cache, partial
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
from lanewise.runtime.loop_invariants import MOST_PATHS, most_paths
from lanewise.support.interrupts import interrupts_wait

FORMAT = "1"  # of what is kept
TAKES = "; takes: "  # how the line of a text begins that has the types of its arguments
# of a number, in 8 bytes
_PACKED = {"bool": "?7x", "i32": "q", "u32": "q", "i64": "q", "f32": "f4x", "f64": "d"}
_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64)
_NUMBERS = count()  # of libraries: a name is never used again

Run = Callable[[int, int], object]
"""Runs elements from a first to before a last one."""


def is_llvm(text: str) -> bool:
    """Whether a text is one of LLVM's language: it begins with a comment."""
    return text.startswith("; ")


class LlvmKernel:
    """A kernel of a text, called with arrays, numbers, and the ends of a range.

    Its machine code is made, or read from the cache, when it is first needed.
    """

    __slots__ = ("__weakref__", "_arrays", "_block", "_function", "key", "name", "text")

    def __init__(self, text: str, name: str, key: str) -> None:
        self.text, self.name, self.key = text, name, key
        kinds = _line(text, TAKES).split()
        self._arrays = tuple(k == "written" for k in kinds if k in ("array", "written"))
        numbers = kinds[len(self._arrays) :]
        packed = "".join(_PACKED[k] for k in numbers)
        self._block = struct.Struct(f"<{'qq' * len(self._arrays)}{packed}")
        self._function: Any = None

    def __call__(self, *arguments: Any) -> None:
        *given, begin, end = arguments
        self.bound(tuple(given))(begin, end)

    def bound(self, arguments: tuple[Any, ...]) -> Run:
        """The kernel with these arguments, which it keeps."""
        function = self._function or self.load()
        places: list[Any] = []
        for written, array in zip(self._arrays, arguments, strict=False):
            address, fixed = array.__array_interface__["data"]
            if (written and fixed) or not array.flags.c_contiguous:
                raise AssertionError(f"{self.name} writes an array that is not whole or read-only")
            places += (address, array.size)
        block = self._block.pack(*places, *arguments[len(self._arrays) :])
        run: Any = partial(_run, function, block, self.name, arguments)
        return run

    @property
    def is_known(self) -> bool:
        """Whether its machine code is there, in this process or in the cache."""
        return self._function is not None or has_entry(entry_name(self.key, self.name))

    @interrupts_wait()
    def load(self) -> Any:
        """Its function, for ctypes."""
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
            content = machine_code(self.text)
            compiling.end(self.name)
        write_entry(entry, content)
        return _linked(content, self.name)


def _run(
    function: Any, block: bytes, name: str, kept: tuple[Any, ...], begin: int, end: int
) -> None:
    del kept
    if function(block, begin, end):
        raise MemoryError(f"{name} found no memory for its local arrays")


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
    binding = _llvmlite()[0]
    return binding.create_lljit_compiler(_machine(), suppress_errors=True)


def machine_code(text: str) -> bytes:
    """The object of a text.

    LLVM takes several steps of a loop at once where that does not take minutes
    (`loop_invariants.py`); it makes no vectors of neighbouring statements, which would change what
    is contracted.
    """
    binding = _llvmlite()[0]
    machine = _machine()
    module: Any = binding.parse_assembly(text)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    module.verify()
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
    builder = _builder(machine, interleaves=most_paths(str(module)) <= MOST_PATHS)
    builder.getModulePassManager().run(module, builder)
    return machine.emit_object(module)


def _builder(machine: Any, *, level: int = 3, interleaves: bool = True) -> Any:
    """What makes lists of LLVM's passes."""
    binding = _llvmlite()[0]
    options: Any = binding.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = level > 0
    options.slp_vectorization = False
    options.loop_interleaving = interleaves
    return binding.create_pass_builder(machine, options)


def _linked(content: bytes, name: str) -> Any:
    """An object in the memory of this process, as a function for ctypes."""
    binding = _llvmlite()[0]
    symbol = f"{name}_kernel"
    library: Any = binding.JITLibraryBuilder()
    library.add_object_img(content).add_current_process().export_symbol(symbol)
    tracker = library.link(_jit(), f"{name}.{next(_NUMBERS)}")
    function: Any = _FUNCTION(tracker[symbol])
    function.tracker = tracker  # the code is there as long as the function
    return function


def _line(text: str, start: str) -> str:
    at = text.index(f"\n{start}") + 1 + len(start)
    return text[at : text.index("\n", at)]


@cache
def has_scaling() -> bool:
    """Whether this processor has the instruction of AVX-512 that scales by powers of two."""
    _, _, features = _host()
    return {"+avx512f", "+avx512vl"} <= set(features.split(","))
