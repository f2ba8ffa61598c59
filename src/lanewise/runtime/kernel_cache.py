"""Machine code of Numba's kept in lanewise's own cache (`cache.py`), in place of Numba's, which believes what it finds."""

from __future__ import annotations

import pickle
import sys
from types import ModuleType
from typing import Any

import llvmlite
import numba
from numba.core import config
from numba.core.caching import _Cache  # pyright: ignore[reportPrivateUsage]
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher
from numba.core.serialize import dumps

from lanewise.runtime import compiling
from lanewise.runtime.cache import content_key, read_entry, remove_entry, write_entry


class KernelCache(_Cache):
    """What a dispatcher asks before it compiles, and tells what it has compiled: an entry for each signature and processor.

    key: the content that the kernel is generated from. Numba rebuilds machine code for a function of a module that it imports by
    name: `module` stands there for the function's own, holds nothing, and so keeps nothing alive.
    """

    def __init__(self, name: str, key: str, module: ModuleType) -> None:
        self._name, self._key, self._module = name, key, module

    @property
    def cache_path(self) -> None:
        return None

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function of a signature, or None: then Numba compiles."""
        sys.modules[self._module.__name__] = self._module
        target_context.refresh()
        entry = self._entry(sig, target_context.codegen())
        content = read_entry(entry)
        if content is not None:
            try:
                return CompileResult._rebuild(target_context, *pickle.loads(content))  # pyright: ignore[reportPrivateUsage]
            except Exception:  # written whole, and yet not for this Numba: made again like a damaged one
                remove_entry(entry)
        compiling.begin(self._name)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled function, where it can be kept."""
        compiling.end(self._name)
        if not data.library.has_dynamic_globals and not any(not x.can_cache for x in data.lifted):
            write_entry(self._entry(sig, data.codegen), dumps(data._reduce()))
        _let_go(data)

    def enable(self) -> None: ...
    def disable(self) -> None: ...
    def flush(self) -> None: ...

    def _entry(self, signature: Any, codegen: Any) -> str:
        made_by = f"{sys.implementation.cache_tag} {numba.__version__} {llvmlite.__version__}"
        switches = ("OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "USING_SVML")
        options = str([getattr(config, n, None) for n in switches])
        key = content_key(self._key, str(signature), str(codegen.magic_tuple()), made_by, options)
        return f"cpu/{self._name}-{key}"


def _let_go(compiled: Any) -> None:
    """Take out what keeps a compiled function alive for ever, and is for people who look into Numba.

    Numba's finalizer of a dispatcher holds the results of compiling, these the annotated source, this the function, this the
    functions that it calls and its own dispatcher.
    """
    for dispatcher in compiled.type_annotation.func_id.func.__globals__.values():
        if isinstance(dispatcher, Dispatcher):
            for signature, result in dispatcher.overloads.items():
                dispatcher.overloads[signature] = result._replace(type_annotation="")
