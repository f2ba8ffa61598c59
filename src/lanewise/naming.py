"""How kernels and classes are found again by their names, in this process or another one."""

from __future__ import annotations

import importlib
import sys
from typing import Any


def named_object(module: str, qualname: str, *, load: bool = False) -> Any:
    """What stands under a name at the top of a module (or in a class there); None if nothing does."""
    if load and module not in sys.modules:
        try:
            importlib.import_module(module)
        except ImportError:
            return None
    found: Any = sys.modules.get(module)
    for part in qualname.split("."):
        found = getattr(found, part, None)
    return found


def by_name(instance: Any, otherwise: tuple[Any, ...]) -> str | tuple[Any, ...]:
    """For `__reduce__`: the qualified name of a kernel that its module has under it, as for functions; else how to make it again."""
    found = named_object(instance.__module__, instance.__qualname__)
    return instance.__qualname__ if found is instance else otherwise
