"""The fields that a search reads itself, whatever the function of its kernel reads."""

from __future__ import annotations

from lanewise.patterns.search.base import Search


def own_fields(search: Search, *, target: bool) -> tuple[str, ...]:
    """Those of a target, or of a source: where it is, and where a target that sees looks."""
    sight = search.sees if target else None
    return (search.position,) if sight is None else (search.position, sight.heading)
