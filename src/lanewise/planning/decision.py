"""What is declared of a decision: its name, its neutral value, the values worth trying, and a
sentence for each of them.

A field of `Plan` is declared once, by `decision(...)`. The neutral plan, the catalogue of
optimisations, explanations, the axes of tuning and the command line read that declaration.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeVar

from lanewise.language.target import target_of

DECISION = "decision"  # its key in the metadata of a dataclass field
Sentence = Callable[[Any, bool], str]  # of a value, and whether threads come in blocks
Place = Literal["here", "gpu", "cpu", "nowhere"]
T = TypeVar("T")


class HasElements(Protocol):
    """What a decision asks of a pattern: `ir.pattern.Pattern` is one."""

    @property
    def over_pairs(self) -> bool: ...
    @property
    def over_items(self) -> bool: ...
    @property
    def over_points(self) -> bool: ...
    @property
    def in_boxes(self) -> bool: ...
    @property
    def in_order(self) -> bool: ...
    @property
    def merging(self) -> object: ...


@dataclass(frozen=True, slots=True)
class Optimisation:
    """One optimisation: a field of the plan, and the pass (or the compiler's switch) that carries
    it out.

    name: the standard term; literature: what else papers and compilers call it. sentence: what a
    kernel with a value does. neutral: the value without it; place: where it stands in the order of
    the compiler. cuda, cpu: values worth trying for pairwise kernels of that kind of device, the
    neutral one first; elementwise: the same for elementwise kernels and reductions on a GPU (on a
    CPU: `elementwise_cpu`); items, items_cpu: for sums over lists; sites: for sites of a lattice on
    a GPU, points, points_cpu: for points of an index space, where these differ; in_order: for
    kernels of a CPU that add floats to elements one after the other. One value means
    that there is nothing to try. boxes: elements in a box can have it on a GPU, and
    lanes: targets of pairs in SIMD lanes on a CPU, though no other value is worth trying there.
    rank: in tuning, what matters most has the lowest; apart: whether it applies does not depend on
    other decisions. on_request: it changes results by more than rounding in another order, or costs
    accuracy, so that it is never chosen unless the user asks for it. limits: the smallest and the
    largest integer that a plan may have; beyond them code is too long or memory too small for
    any kernel. needs, shape: for an optimisation that gives a kernel its own shape, the fields
    about which it leaves no choice, and those from which it starts.
    """

    name: str
    sentence: Sentence
    neutral: Any = None
    place: int = 0
    literature: str = ""
    cuda: tuple[Any, ...] = ()
    cpu: tuple[Any, ...] = ()
    elementwise: tuple[Any, ...] = ()
    elementwise_cpu: tuple[Any, ...] = ()
    items: tuple[Any, ...] = ()
    items_cpu: tuple[Any, ...] = ()
    sites: tuple[Any, ...] = ()
    points: tuple[Any, ...] = ()
    points_cpu: tuple[Any, ...] = ()
    in_order: tuple[Any, ...] = ()
    boxes: bool = False
    lanes: bool = False
    rank: int = 0
    apart: bool = False
    on_request: bool = False
    limits: tuple[int, int] | None = None
    needs: tuple[tuple[str, Any], ...] = ()
    shape: tuple[tuple[str, Any], ...] = ()
    field: str = ""  # of the plan; known when the plan is

    def values(self, kind: str, pattern: HasElements) -> tuple[Any, ...]:
        """The values worth trying on a "cuda" or "cpu" device for a pattern; none when it is of no
        use there.
        """
        blocks = target_of(kind).has_blocks
        if pattern.in_order and not blocks and self.in_order:
            return self.in_order
        if pattern.over_pairs:
            return self.cuda if blocks else self.cpu
        if pattern.over_items:
            return self.items if blocks else self.items_cpu
        if pattern.over_points and (own := self.points if blocks else self.points_cpu):
            return own
        if pattern.merging is not None and blocks and self.sites:
            return self.sites
        return self.elementwise if blocks else self.elementwise_cpu

    def place_of(self, kind: str, pattern: HasElements) -> Place:
        """Where kernels of a pattern can have it: on this kind of device ("here"), only on a "gpu"
        or a "cpu", or "nowhere".
        """
        if self._suits(kind, pattern):
            return "here"
        other, place = ("cpu", "cpu") if target_of(kind).has_blocks else ("cuda", "gpu")
        return place if self._suits(other, pattern) else "nowhere"

    def _suits(self, kind: str, pattern: HasElements) -> bool:
        blocks = target_of(kind).has_blocks
        unasked = (
            (self.boxes and pattern.in_boxes) if blocks else (self.lanes and pattern.over_pairs)
        )
        return unasked or len(self.values(kind, pattern)) > 1

    def describe(self, value: Any, kind: str = "cuda") -> str:
        """What a kernel with this value does, as one clause."""
        return self.sentence(value, target_of(kind).has_blocks)

    def start(self, value: Any) -> dict[str, Any]:
        """A value of it, and the other fields that go with that shape."""
        return {**dict(self.needs), **dict(self.shape), self.field: value}

    def of(self, field: str) -> Optimisation:
        """The same, of a field of the plan."""
        return replace(self, field=field)


# Its type is that of the field, as it is for `dataclasses.field`: with another one type checkers
# would accept any value.
def decision(name: str, sentence: Sentence, **declared: Any) -> T:  # pyright: ignore[reportInvalidTypeVarUse]
    """A field of a plan, left open unless the caller decides.

    See `Optimisation` for what is declared.
    """
    default: Any = None
    return field(default=default, metadata={DECISION: Optimisation(name, sentence, **declared)})


def choice(**sentences: str) -> Sentence:
    """A sentence for each value of a choice; `off` and `on` stand for the two booleans."""
    return lambda value, blocks: sentences[{False: "off", True: "on"}.get(value, str(value))]
