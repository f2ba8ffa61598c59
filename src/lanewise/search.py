"""The old place of the search structures, for one release: they are in `lanewise` itself, `lw.StaticGrid` for instance."""

from __future__ import annotations

import warnings
from typing import Any

import lanewise
from lanewise.patterns import search


def __getattr__(name: str) -> Any:
    if name not in search.__all__:
        raise AttributeError(f"module 'lanewise.search' has no attribute {name!r}")
    home = "lanewise" if hasattr(lanewise, name) else "lanewise.patterns.search"
    warnings.warn(f"lanewise.search.{name} is now {home}.{name}", DeprecationWarning, stacklevel=2)
    return getattr(search, name)
