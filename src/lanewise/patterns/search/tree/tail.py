"""How many targets say whether 99 % of the results are within a limit.

Of 64 targets none shows a tail of 1 % in half of all cases. So targets are looked at in parts of
about 768, spread evenly over their array, until the number of errors above the limit is one that a
share of 1 % gives in fewer than one of a thousand cases: 0 of 768 are within it, and so are 4 of
1,536; 20 of 768 are not. What is nearer to 1 % has eight parts, and then the errors themselves
decide: a share of 1.5 % is missed once in a thousand cases. Few elements are looked at as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

PART, PARTS = 768, 8
LEAST_PARTS = 3
PAIRS = (
    2e10  # beyond which there are no more than the least parts: they would take as long as a call
)
CALIBRATED = 4096  # targets, where many trees are measured by the same ones
TAIL = 0.01  # of the results may be above the limit
CHANCE = 1e-3


def errors_of_parts(
    targets: int, sources: int, limit: float, errors: Callable[[slice], NDArray[np.float64]]
) -> NDArray[np.float64]:
    """The errors of enough targets to say whether 99 % of all are within the limit.

    errors: of a part of the targets; fewer where some have none.
    """
    found = np.zeros(0)
    for part in parts_of(targets, sources):
        found = np.concatenate([found, errors(part)])
        if is_clear(int(np.count_nonzero(~(found <= limit))), len(found)):
            break
    return found


def relative(
    found: NDArray[np.float64], wanted: NDArray[np.float64], least: float = 0.0
) -> NDArray[np.float64]:
    """The error of each row, relative to its size or to `least`. Where both rows are zero there is
    none; what is no number is infinitely wrong.
    """
    with np.errstate(all="ignore"):
        away, size = (np.linalg.norm(a, axis=1) for a in (found - wanted, wanted))
        errors = away / np.maximum(size, max(least, float(np.finfo(np.float64).tiny)))
    errors[away == 0] = 0.0
    return np.where(np.isfinite(away), errors, np.inf)


def median_and_most(errors: NDArray[np.float64]) -> tuple[float, float]:
    """The median of errors, and the smallest that 99 % of them do not exceed: none between two,
    which is no number where they are infinite.
    """
    return float(np.median(errors)), float(np.percentile(errors, 99, method="inverted_cdf"))


def is_clear(above: int, looked: int) -> bool:
    """Whether so many errors above a limit are far too few or too many for 1 % of all of them."""
    if not looked:
        return False
    below = _at_most(above - 1, looked)
    return 1 - below < CHANCE or below + _exactly(above, looked) < CHANCE


def parts_of(targets: int, sources: int) -> Iterator[slice]:
    """Parts of an array without an element in common: the first from everywhere, the others from
    between.
    """
    step = spread(targets, PART).step
    most = PARTS if PARTS * PART * sources <= PAIRS else LEAST_PARTS
    for number in range(min(most, step)):
        # halves, then quarters, then eighths of the step
        turned = int(f"{number:03b}"[::-1], 2)
        first = number if step < PARTS else (2 * turned + 1) * step // (2 * PARTS)
        yield slice(first, targets, step)


def calibrated_by(targets: int, sources: int) -> slice:
    """The targets that trees are measured by to be chosen."""
    most = CALIBRATED if CALIBRATED * sources <= PAIRS else LEAST_PARTS * PART
    return spread(targets, most)


def spread(count: int, most: int) -> slice:
    """About so many of `count` elements, or somewhat more, evenly from all of them; all of fewer
    than three times as many. The step is a prime: arrays of rows and of pairs are not in step
    with it.
    """
    step = _prime(count // most)
    return slice(step // 2, count, step)


def _prime(most: int) -> int:
    """The largest prime from 3 to `most`, or 1."""
    for number in range(most, 2, -1):
        if all(number % divisor for divisor in range(2, math.isqrt(number) + 1)):
            return number
    return 1


def _at_most(above: int, looked: int) -> float:
    """How likely no more errors are above the limit, where 1 % of all are."""
    return math.fsum(_exactly(k, looked) for k in range(above + 1))


def _exactly(above: int, looked: int) -> float:
    if above < 0:
        return 0.0
    ways = math.lgamma(looked + 1) - math.lgamma(above + 1) - math.lgamma(looked - above + 1)
    return math.exp(ways + above * math.log(TAIL) + (looked - above) * math.log1p(-TAIL))
