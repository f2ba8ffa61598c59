"""A call of a list under its own stage in profiles, such as "forces"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Staged:
    """A call, and the stage that a profile counts its kernel to; what builds a search stays
    "build".
    """

    stage: str
    call: Any
