"""lanewise: write the physics for one element; the data structure and the kernel are designed for
your machine.

`lanewise.pi` is the number 3.14159..., a Python float: in a kernel it takes the type of what it is
combined with. `lanewise.__version__` is the version, a str.
"""

from lanewise.support.command import is_command, leave_when_interrupted

if is_command():  # from here on Ctrl-C ends it with one line, whatever is being imported
    leave_when_interrupted()

import lazy_loader

from lanewise._version import __version__ as __version__
from lanewise.support.interrupts import interrupts_wait

# Who runs a flow needs nothing of searches: a name is imported when it is first used. The stub says
# which there are, and where.
_named, _, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = [n for n in _names if n not in ("io", "sims")]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> object:
    """A name of the facade."""
    if name in _names:
        with interrupts_wait():
            return _named(name)
    if name.startswith("_"):
        raise AttributeError(f"module 'lanewise' has no attribute {name!r}")
    from lanewise.support.elsewhere import no_such_name

    raise AttributeError(no_such_name("lanewise", name, _names))


def __dir__() -> list[str]:
    return sorted({*__all__, "__version__", "io", "sims"})
