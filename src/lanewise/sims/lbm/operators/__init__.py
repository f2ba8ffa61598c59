"""Collision operators: what happens at one site, as short sitewise functions.

Populations are deviations g = f - w.
"""

from lanewise.sims.lbm.operators.assembly import in_sequence, renamed, specialise
from lanewise.sims.lbm.operators.moments import make_macroscopic
from lanewise.sims.lbm.operators.registry import OPERATORS, Operator, find_operator
from lanewise.sims.lbm.operators.smagorinsky import make_shear_rate

__all__ = [
    "OPERATORS",
    "Operator",
    "find_operator",
    "in_sequence",
    "make_macroscopic",
    "make_shear_rate",
    "renamed",
    "specialise",
]
