"""lanewise: write the physics for one element; the data structure and the kernel are designed for your machine."""

from lanewise.interrupts import imported, interrupts_wait, is_command, leave_when_interrupted

if is_command():  # from here on Ctrl-C ends it with one line, whatever is being imported
    leave_when_interrupted()

import lazy_loader

from lanewise._version import __version__ as __version__
from lanewise.moved import MOVED

# Who runs a flow needs nothing of searches: a name is imported when it is first used. The stub says which there are, and where.
_named, _, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = [n for n in _names if n not in ("io", "sims")]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> object:
    """A name of the facade, or of a package that is gone."""
    if name in _names:
        with interrupts_wait():
            return _named(name)
    if f"lanewise.{name}" in MOVED:
        return imported(f"lanewise.{name}")
    raise AttributeError(f"module 'lanewise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_names})
