"""The optimisations of lanewise as people know them: names, values worth trying, and whether a kernel allows them."""

from lanewise.optimisations.catalogue import LAYOUT, OPTIMISATIONS, Optimisation, optimisation
from lanewise.optimisations.legality import Programs, neutral, possible, reason_of, without

__all__ = [
    "LAYOUT",
    "OPTIMISATIONS",
    "Optimisation",
    "Programs",
    "neutral",
    "optimisation",
    "possible",
    "reason_of",
    "without",
]  # fmt: skip
