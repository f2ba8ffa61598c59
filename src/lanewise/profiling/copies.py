"""Copies between the two sides of arrays, as a profile counts them: those that are made within one
of its spans.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lanewise.profiling.profile import Profile

STAGE = "copies"
# The profile whose span is open, in this thread or task: a copy happens where a caller reads, which
# knows of no profile.
_OPEN: ContextVar[Profile | None] = ContextVar("lanewise_profile", default=None)


def entered(profile: Profile | None) -> Profile | None:
    """Have copies counted by this profile from now on; returns the one before."""
    before = _OPEN.get()
    _OPEN.set(profile)
    return before


def opened() -> Profile | None:
    """The profile whose span is open here."""
    return _OPEN.get()


def copying(record: str, field: str, direction: str, nbytes: int) -> AbstractContextManager[None]:
    """A context for a copy of a field between two sides. direction: "to host" or "to device"."""
    profile, name = _OPEN.get(), f"{record}.{field}"
    if profile is None:
        return nullcontext()
    counted = profile.copied.setdefault((name, direction), [0, 0])
    counted[0] += 1
    counted[1] += nbytes
    return profile.span(STAGE, name=f"{name} {direction}", nbytes=nbytes)


def converting(direction: str) -> AbstractContextManager[Any]:
    """A context for what turns one form of a value into the other one, besides the copies."""
    profile = _OPEN.get()
    if profile is None:
        return nullcontext()
    return profile.span(STAGE, name=f"form {direction}")
