"""What the modules of a package define: a new one of its kind is one new file."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


def discovered(package: str, paths: Sequence[str], name: str, kind: type[T]) -> Iterator[T]:
    """The variables `name` of this kind, in the order of the modules' names; `paths` are those of
    the package.
    """
    for module in sorted(info.name for info in pkgutil.iter_modules(paths)):
        found: Any = vars(importlib.import_module(f"{package}.{module}")).get(name)
        if isinstance(found, kind):
            yield found
