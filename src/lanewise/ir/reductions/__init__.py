"""What becomes of a function's value over all pairs: sums, extremes and their places, truths,
counts, logarithms of sums.
"""

from lanewise.ir.reductions.base import Accumulator, Place, Reduction, accumulators_of, reorders
from lanewise.ir.reductions.exponentials import LOG_SUM_EXP
from lanewise.ir.reductions.extremes import MAX, MIN
from lanewise.ir.reductions.places import ARG_MAX, ARG_MIN
from lanewise.ir.reductions.smallest import MOST_SMALLEST, arg_k_min, k_min
from lanewise.ir.reductions.sums import COUNT_TRUE, SUM
from lanewise.ir.reductions.truths import ALL, ANY

__all__ = [
    "ALL",
    "ANY",
    "ARG_MAX",
    "ARG_MIN",
    "COUNT_TRUE",
    "LOG_SUM_EXP",
    "MAX",
    "MIN",
    "MOST_SMALLEST",
    "SUM",
    "Accumulator",
    "Place",
    "Reduction",
    "accumulators_of",
    "arg_k_min",
    "k_min",
    "reorders",
]
