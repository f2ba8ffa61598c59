"""What a view shows: the contract of scenes, and what viewers have requested."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

from lanewise.live.frame import Frame, FrameHeader, encode
from lanewise.live.messages import written


@dataclass(frozen=True, slots=True)
class LaterFrames:
    """Frames of what was kept of a state. make: called once, in any thread; or drop, which lets go
    what was kept.
    """

    make: Callable[[], Sequence[Frame]]
    drop: Callable[[], None] = lambda: None

    def __call__(self) -> Sequence[Frame]:
        return self.make()


FrameOrLater: TypeAlias = Frame | LaterFrames


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What viewers have requested, of all of them: the feed makes one frame for all.

    kinds: of frames; empty for all. scale: of values, see `protocol.SCALES`. low, high: of values;
    None: the least and greatest so far. fitted: where it is another number, that begins anew. axis,
    place: of the slice, from 0 to 1. points: elements at most.
    """

    field: str
    scale: str = "linear"
    kinds: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    fitted: int = 0
    axis: int = 2
    place: float = 0.5
    points: int = 1_000_000

    def wants(self, kind: str) -> bool:
        """Whether frames of a kind are looked at."""
        return not self.kinds or kind in self.kinds


class Scene(Protocol):
    """A state that can be looked at between steps. Looking changes nothing of it."""

    @property
    def about(self) -> Mapping[str, Any]:
        """What the page gets at first: title, product, kinds, fields, up, flat and so on."""
        ...

    @property
    def moment(self) -> tuple[int, float]:
        """The steps that led to the state, and its time."""
        ...

    def frames(self, asked: Asked) -> Sequence[FrameOrLater]:
        """Frames of the state as it is now, with sequence 0. The state may change afterwards."""
        ...

    def picked(self, place: int, order: int | None = None) -> dict[str, Any]:
        """The fields of the element at a place of the sending order with this number, as headers
        have it (None: of the newest one); empty where that is not known any more.
        """
        ...


@runtime_checkable
class ChangingScene(Scene, Protocol):
    """A scene of what another program changes, such as files of a search that runs."""

    @property
    def changed(self) -> bool:
        """Whether the next frames would show another state than the last ones; in any thread."""
        ...


def finished(frames: Sequence[FrameOrLater]) -> list[Frame]:
    """The frames of a look, all of them on the host."""
    made, left = list[Frame](), deque(frames)
    try:
        while left:
            frame = left.popleft()
            made.extend(frame() if isinstance(frame, LaterFrames) else [frame])
    finally:
        dropped(left)
    return made


def dropped(frames: Iterable[FrameOrLater]) -> None:
    """They are not made."""
    for frame in frames:
        if isinstance(frame, LaterFrames):
            frame.drop()


def tell(values: Mapping[str, Any]) -> list[Frame]:
    """A frame of statistics; none where there is nothing to be said."""
    if not values:
        return []
    text = written(values).encode()
    return [encode(FrameHeader(kind="statistics", count=len(text)), text)]
