"""Seeds of random initial states."""

from __future__ import annotations

from lanewise.support.errors import InputError

LARGEST_SEED = 2**63 - 1  # what a checkpoint can keep


def check_seed(seed: int) -> int:
    """The seed; raises `InputError` for one below zero or above `LARGEST_SEED`."""
    if seed < 0:
        raise InputError(f"the seed is {seed}; wanted zero or more")
    if seed > LARGEST_SEED:
        raise InputError(f"the seed is {seed}; wanted at most {LARGEST_SEED}")
    return seed
