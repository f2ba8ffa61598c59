"""Warnings at the line of the user's program that led to them, however many functions of lanewise
lie between.
"""

from __future__ import annotations

import sys
import warnings

WITHIN = frozenset(("lanewise", "contextlib", "functools"))
"""Packages whose frames are passed over: lanewise, and what wraps its functions."""


def warn_user(text: str, category: type[Warning]) -> None:
    """`warnings.warn`, shown at the nearest line that is not lanewise's."""
    frame, level = sys._getframe(1), 1  # pyright: ignore[reportPrivateUsage]
    while (outer := frame.f_back) is not None and str(frame.f_globals.get("__name__")).partition(
        "."
    )[0] in WITHIN:
        frame, level = outer, level + 1
    warnings.warn(text, category, level + 1)
