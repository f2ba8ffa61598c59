"""Names in the IR, so that what lanewise introduces can never meet what its user wrote.

A user's name is a Python identifier, with fields and components behind dots (`source.position.x`).
A name that a pattern or a pass introduces starts with `$`, which no identifier can: `$i`, `$sum.x`.
The copy of a variable for target r of a thread ends in `#r`: `source.mass#2`, `$i#0`. The verifier
holds every kernel to this; emission turns names into identifiers, the user's own first.
"""

from __future__ import annotations

MARK = "$"
COPY = "#"


def own(name: str) -> str:
    """A name of lanewise's own."""
    return f"{MARK}{name}"


def is_own(name: str) -> bool:
    return name.startswith(MARK)


def numbered(name: str, copy: int) -> str:
    """The copy of a variable that belongs to one of several targets."""
    return f"{name}{COPY}{copy}"


def copy_of(name: str) -> str:
    """The number of a copy, as it stands in its name; nothing for a variable without copies."""
    return name.partition(COPY)[2]


def original(name: str) -> str:
    """The name without the number of a copy."""
    return name.partition(COPY)[0]


def turns_of(variable: str) -> str:
    """How often a loop whose ends are data runs, on average: where the makers of a kernel know."""
    return own(f"turns.{variable}")


def longest_of(variable: str) -> str:
    """What `turns_of` takes for the same of the thread of a warp that runs it most often."""
    return f"{variable}.longest"


def owner(name: str) -> str:
    """The parameter that a user's name belongs to: `source` for `source.position.x#1`."""
    return original(name).partition(".")[0]


WHILE = "while"  # stands for the variable of a loop that has none
COUNT = own("count")  # of the elements of an elementwise kernel
WORK = own("work")  # turns of inner loops in a turn of the outermost one, where a pattern says so
# elements from the place that data tell a thread to that of the next one, where it is known
GATHER_STEP = own("gather.step")
LANES = own("lanes")  # of the workers of a reduction


def count_of(array: str) -> str:
    """The number of elements of a record array, as a kernel's argument."""
    return own(f"{array}.count")


def extent_of(index: str) -> str:
    """The number of values of an index of threads, as a kernel's argument."""
    return own(f"{index}.extent")


def length_of(array: str, dimension: int) -> str:
    """The length of a dimension of an array with a shape, as a kernel's argument."""
    return own(f"{array}.shape{dimension}")


def index_name(parameter: str) -> str:
    """The index of the element that a parameter of a function is, in its caller's array."""
    return own(f"index.{parameter}")


def partial_of(array: str) -> str:
    """The array that holds partial results for `array`."""
    return own(f"partial.{array.removeprefix(MARK)}")


def view_of(array: str, number: int) -> str:
    """One of several views of the whole memory of a record array, each an array of scalars."""
    return own(f"view.{array.removeprefix(MARK)}.{number}")


def is_view(name: str) -> bool:
    return name.startswith(own("view."))


def identifier(name: str) -> str:
    """The name as C++ and Python accept it, as far as its letters go: letters beyond ASCII become
    numbers, dots underscores.
    """
    plain = name.replace(MARK, "").replace(".", "_").replace(COPY, "_")
    ascii_only = "".join(c if c.isascii() else f"u{ord(c):x}" for c in plain)
    of_the_compiler = ascii_only.startswith("__") or (
        ascii_only[:1] == "_" and ascii_only[1:2].isupper()
    )
    return f"v{ascii_only}" if of_the_compiler else ascii_only
