"""Machine code of Numba's kept in lanewise's own cache (`cache.py`), in place of Numba's, which
believes what it finds.
"""

from __future__ import annotations

import pickle
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import llvmlite
import numba
from numba.core import config
from numba.core.caching import _Cache  # pyright: ignore[reportPrivateUsage]
from numba.core.compiler import CompileResult
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps

from lanewise.runtime import compile_workers, compiling
from lanewise.runtime.cache import (
    content_key,
    has_entry,
    read_entry,
    remove_entry,
    sources_key,
    write_entry,
)

FORMAT = "2"  # of what is kept: functions of a kernel are named by its text


@cache
def _runtime() -> str:
    """A hash of this folder's sources: they decide what machine code a text becomes."""
    return sources_key(Path(__file__).parent) or ""


class KernelCache(_Cache):
    """What a dispatcher asks before it compiles, and tells what it has compiled: an entry for each
    signature and processor.

    key: of the text that the kernel is generated from. Numba rebuilds machine code for a function
    of a module that it imports by
    name: `module` stands there for the function's own, holds nothing, and so keeps nothing alive.
    """

    def __init__(self, name: str, text: str, key: str, module: ModuleType) -> None:
        self.name, self.text, self.key, self.module = name, text, key, module

    @property
    def cache_path(self) -> None:
        return None

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function of a signature, or None: then Numba compiles."""
        sys.modules[self.module.__name__] = self.module
        # all that finished code needs; what Numba can compile is read by whoever compiles
        rtsys.initialize(target_context)
        entry = self._entry(sig, target_context.codegen())
        content = read_entry(entry)
        if content is not None:
            try:
                return CompileResult._rebuild(target_context, *pickle.loads(content))  # pyright: ignore[reportPrivateUsage]
            except Exception:
                # written whole, and yet not for this Numba: made again like a damaged one
                remove_entry(entry)
        if made := compile_workers.taken((self.key, sig)):
            write_entry(entry, made)
            return CompileResult._rebuild(target_context, *pickle.loads(made))  # pyright: ignore[reportPrivateUsage]
        compiling.begin(self.name)
        return None

    def knows(self, sig: Any, target_context: Any) -> bool:
        """Whether there is an entry for a signature. It may prove to be damaged."""
        return has_entry(self._entry(sig, target_context.codegen()))

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled function, where it can be kept."""
        compiling.end(self.name)
        if content := _portable(data):
            write_entry(self._entry(sig, data.codegen), content)

    def enable(self) -> None: ...
    def disable(self) -> None: ...
    def flush(self) -> None: ...

    def _entry(self, signature: Any, codegen: Any) -> str:
        made_by = (
            f"{FORMAT} {_runtime()} {sys.implementation.cache_tag} {numba.__version__} "
            f"{llvmlite.__version__}"
        )
        switches = (
            "OPT",
            "LOOP_VECTORIZE",
            "SLP_VECTORIZE",
            "BOUNDSCHECK",
            "DEBUGINFO_DEFAULT",
            "USING_SVML",
        )
        options = str([getattr(config, n, None) for n in switches])
        key = content_key(self.key, str(signature), str(codegen.magic_tuple()), made_by, options)
        return f"cpu/{self.name}-{key}"


class Capture(KernelCache):
    """Takes what a dispatcher compiles, and gives nothing: in a process that compiles for another
    one.

    content: what was compiled; b"" where it cannot be taken.
    """

    content = b""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        sys.modules[self.module.__name__] = self.module
        target_context.refresh()

    def save_overload(self, sig: Any, data: Any) -> None:
        self.content = _portable(data)


def _portable(data: Any) -> bytes:
    """A compiled function as bytes; b"" for one that holds addresses of this process."""
    if data.library.has_dynamic_globals or any(not x.can_cache for x in data.lifted):
        return b""
    return bytes(dumps(data._reduce()))
