"""What a search structure is to a pairwise kernel."""

from __future__ import annotations

from abc import ABC


class Search(ABC):
    """Decides which sources a target meets. Searches are frozen dataclasses, compared and hashed by value."""

    __slots__ = ()
