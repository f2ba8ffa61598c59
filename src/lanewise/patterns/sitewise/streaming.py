"""Streaming forms: from which place a site loads population q, and to which it puts it, phase by
phase.

A place is the site's own record or the one a link away, under the leaf of q or of its opposite.
Where a wall cuts the link, the place is the site's own and the leaf is the opposite one; where slip
faces mirror a set of axes, the link is not followed along them and the leaf is mirrored along them.

AA pattern: P. Bailey, J. Myre, S. Walsh, D. Lilja, M. Saar, Accelerating lattice Boltzmann fluid
flow simulations using graphics processors, International Conference on Parallel Processing (2009),
550-557.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError

Streaming = Literal["pull", "push", "in-place"]


@dataclass(frozen=True, slots=True)
class Phase:
    """One step: whether links are followed when loading and putting, and whether the leaf is the
    opposite one.
    """

    name: str
    load_links: bool = False
    load_opposite: bool = False
    put_links: bool = False
    put_opposite: bool = False


PULL = Phase("pull", load_links=True)
PUSH = Phase("push", put_links=True)
EVEN = Phase("even", put_opposite=True)
ODD = Phase("odd", load_links=True, load_opposite=True, put_links=True)
# no populations: sites read the fields of their neighbours
FIELDS = Phase("fields", load_links=True)
FIRST_PULL = Phase("first")  # the populations lie where they arrive, as they were set


@dataclass(frozen=True, slots=True)
class Form:
    """A streaming form: its phases, one a step, again and again, and how many copies of the
    populations it needs.
    """

    name: Streaming | Literal["two-copies"]
    phases: tuple[Phase, ...]
    buffers: int
    first: Phase | None = None

    def phase(self, step: int, *, fresh: bool) -> Phase:
        """The phase of a step; `fresh` when the populations were set and no step has run since."""
        return (
            self.first if fresh and self.first is not None else self.phases[step % len(self.phases)]
        )


TWO_COPIES = Form("two-copies", (FIELDS,), 2)  # of a stencil: nothing streams
FORMS: dict[str, Form] = {
    "pull": Form("pull", (PULL,), 2, FIRST_PULL),
    "push": Form("push", (PUSH,), 2),
    "in-place": Form("in-place", (EVEN, ODD), 1),
}


def form_by_name(name: str) -> Form:
    """A streaming form; raises `ArgumentError` for another name."""
    argument: Any = name
    if not isinstance(argument, str) or name not in FORMS:
        raise ArgumentError(
            f"streaming={shown(argument)}: wanted one of {', '.join(map(repr, FORMS))}"
        )
    return FORMS[name]
