"""What a search structure is to a pairwise kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod


class Search(ABC):
    """Decides which sources a target meets. Searches are frozen dataclasses, compared and hashed by value."""

    __slots__ = ()

    @abstractmethod
    def describe(self) -> str:
        """What it does, in a few words, for reports."""
