"""The kernel over arrays of any seed, of whatever family."""

from __future__ import annotations

from random import Random

from tests.zoo import boolean, exponents, further, oblong, orders
from tests.zoo.generate import Case

FIRST = 200_000
"""Seeds from here on are of these families; below they are those of `tests.zoo.further`."""
FAMILIES = {
    "boolean": boolean.product,
    "order": orders.product,
    "nest": orders.window,
    "exponents": exponents.row,
    "oblong": oblong.stencil,
}


def generate(seed: int) -> Case:
    """The kernel of a seed."""
    if seed < FIRST:
        return further.generate(seed)
    made = tuple(FAMILIES.values())[seed // 2 % len(FAMILIES)]
    return made(seed, Random(seed))
