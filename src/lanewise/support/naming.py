"""How kernels and classes are found again by their names, in this process or another one."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

from lanewise.support.interrupts import imported


def named_object(module: str, qualname: str, *, load: bool = False) -> Any:
    """What stands under a name at the top of a module (or in a class there); None if nothing
    does.
    """
    if load and module not in sys.modules:
        try:
            importlib.import_module(module)
        except ImportError:
            return None
    named: Any = sys.modules.get(module)
    for part in qualname.split("."):
        named = getattr(named, part, None)
    return named


def by_name(instance: Any, otherwise: tuple[Any, ...]) -> str | tuple[Any, ...]:
    """For `__reduce__`: the qualified name of a kernel that its module has under it, as for
    functions; else how to make it again.
    """
    named = named_object(instance.__module__, instance.__qualname__)
    return instance.__qualname__ if named is instance else otherwise


def at_first_use(
    package: str, homes: Mapping[str, tuple[str, ...]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package whose names are imported at their first use.

    homes: its modules, with their names.
    """
    modules = {name: module for module, names in homes.items() for name in names}

    def find(name: str) -> Any:
        if name in homes:
            return imported(f"{package}.{name}")
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(imported(f"{package}.{modules[name]}"), name)

    return find, lambda: sorted({*vars(sys.modules[package]), *modules})
