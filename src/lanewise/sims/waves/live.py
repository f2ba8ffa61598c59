"""What a live view shows of a search: the sky as far as it was searched, with the best cell of each
place, and the largest mean 2F over frequency.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lanewise.io.columns import names_at_top
from lanewise.live.boxes import FrameBox
from lanewise.live.frame import FrameHeader, encode
from lanewise.live.scales import SeenRange, scaled
from lanewise.live.scenes import Asked, FrameOrLater, tell
from lanewise.sims.waves.hierarchical import CANDIDATE, COLUMNS, Candidates
from lanewise.support.errors import InputError

if TYPE_CHECKING:
    from lanewise.sims.waves.units import Opened

Span: TypeAlias = tuple[float, float]
FIELDS = {"mean 2F": "twoF", "significance": "significance", "number count": "count"}
CELLS = (140, 140)  # of the sky that is shown, in alpha and delta: each has its best candidate
BINS = 400  # of the curve
ALONE = 1e-6  # Hz: the width of a column that is alone
MOST = 65535
AXES = [{"name": "alpha, rad"}, {"name": "delta, rad"}, None]


class SearchScene:
    """The best candidates so far by their place in the sky, and the curve of 2F over frequency.

    sky: the spans of alpha and delta, in radians. maps: of the whole search; 0: not known. counts:
    what is counted instead of steps. number: of the order of candidates, in headers: those that
    come later follow.
    """

    def __init__(
        self, sky: tuple[Span, Span], maps: int = 0, title: str = "search", counts: str = "map",
        number: int = 1,
    ) -> None:  # fmt: skip
        (a, b), (c, d) = sky
        self._sky, self._maps, self._done, self._number = sky, maps, 0, number
        self._about: dict[str, Any] = {
            "title": title, "product": "waves", "kinds": ["points"], "fields": list(FIELDS),
            "up": [0, 1, 0], "flat": True, "domain": [[a, c, 0.0], [b, d, 0.0]], "axes": AXES,
            "counts": counts,
        }  # fmt: skip
        self._box, self._range = FrameBox(), SeenRange()
        self._best = np.zeros(CELLS[0] * CELLS[1], CANDIDATE)
        self._order = np.empty(0, np.intp)  # cells that have a candidate, in the order they came
        self._curve: dict[float, float] = {}  # the largest mean 2F by frequency

    @property
    def about(self) -> Mapping[str, Any]:
        return self._about

    @property
    def moment(self) -> tuple[int, float]:
        """The maps that were made, which are its time as well."""
        return self._done, float(self._done)

    def add(self, maps: int, rows: Candidates) -> None:
        """Those of so many more maps; candidates may come again."""
        self._done += maps
        if not len(rows):
            return
        rows = rows[np.lexsort((rows["twoF"], rows["significance"]))[::-1]]
        cells, first = np.unique(self._cells(rows), return_index=True)  # the first is the best
        there = np.isin(cells, self._order)
        new, old = rows[first], self._best[cells]
        level, before = new["significance"], old["significance"]
        alike = (level == before) & (new["twoF"] > old["twoF"])
        better = ~there | (level > before) | alike
        self._best[cells[better]] = new[better]
        self._order = np.concatenate([self._order, cells[~there]])
        frequencies, where = np.unique(rows["freq"], return_inverse=True)
        largest = np.zeros(len(frequencies))
        np.maximum.at(largest, where, rows["twoF"])
        for f, y in zip(frequencies.tolist(), largest.tolist(), strict=True):
            self._curve[f] = max(y, self._curve.get(f, 0.0))

    def _cells(self, rows: Candidates) -> NDArray[np.intp]:
        numbers: list[NDArray[np.intp]] = []
        for name, (low, high), count in zip(("alpha", "delta"), self._sky, CELLS, strict=True):
            part = (rows[name] - low) / (high - low) if high > low else np.zeros(len(rows))
            numbers.append(np.clip(part * count, 0, count - 1).astype(np.intp))
        return numbers[0] * CELLS[1] + numbers[1]

    def frames(self, asked: Asked) -> Sequence[FrameOrLater]:
        """Points in alpha and delta, and what is reported with them: the curve among it."""
        rows = self._best[self._order][: asked.points]
        header = FrameHeader(kind="points", components=8, step=self._done, time=float(self._done))
        told: dict[str, Any] = {}
        if self._maps:
            told["maps"] = f"{self._done} of {self._maps}"
        if not len(rows):
            return [encode(header), *tell(told)]
        values = rows[FIELDS[asked.field]]
        span = self._range.span(np, values, float(values.min()), float(values.max()), asked)
        low, high = span.ends
        places = np.stack([rows["alpha"], rows["delta"], np.zeros(len(rows))], 1)
        bounds = tuple(zip(places.min(0).tolist(), places.max(0).tolist(), strict=True))
        self._box = self._box.holding((*bounds[:2], (0.0, 0.0)))
        parts = (places - self._box.origin) / self._box.extent
        value = (
            (scaled(np, values, span) - low) / (high - low) if high > low else np.zeros(len(rows))
        )
        packed = np.concatenate([parts, value[:, None]], 1)
        sent = np.round(np.clip(packed, 0, 1) * MOST).astype("<u2")
        header = FrameHeader(
            kind="points", components=8, order=self._number, count=len(rows),
            total=len(self._order), step=self._done, time=float(self._done),
            origin=self._box.origin, extent=self._box.extent, low=span.low, high=span.high,
            scale=span.number, flags=span.flags,
        )  # fmt: skip
        told |= {"curve": self._binned(), **span.told}
        return [encode(header, sent.tobytes()), *tell(told)]

    def picked(self, place: int, order: int | None = None) -> dict[str, Any]:
        """The candidate there."""
        if order not in (None, self._number) or not 0 <= place < len(self._order):
            return {}
        return dict(zip(COLUMNS, self._best[self._order[place]].tolist(), strict=True))

    def _binned(self) -> dict[str, Any]:
        """Bins of equal width over all frequencies; 0 where there is no candidate."""
        f, y = (np.array(list(v)) for v in (self._curve.keys(), self._curve.values()))
        low, high = float(f.min()), float(f.max())
        bins = min(BINS, len(f))
        width = (high - low) / (bins - 1) if high > low else ALONE
        largest = np.zeros(bins)
        np.maximum.at(largest, np.round((f - low) / width).astype(np.intp), y)
        names = ["frequency, Hz", "largest mean 2F"]
        ends = [low - width / 2, high + width / 2]
        return {"x": ends, "y": np.round(largest, 3).tolist(), "names": names}


def scene_of(search: Opened) -> SearchScene:
    """That of a search that begins."""
    ready = search.ready
    return SearchScene(_sky(ready.job.sky, ready.grids.patch), search.steps)


def _sky(points: Iterable[Span], patch: Span) -> tuple[Span, Span]:
    """The spans of patches about directions."""
    alpha, delta = np.array(list(points)).T
    half = patch[0] / 2 / max(math.cos(float(abs(delta).max())), patch[0] / 2)
    low, high = float(alpha.min()) - half, float(alpha.max()) + half
    if high - low > 2 * math.pi:
        low, high = 0.0, 2 * math.pi
    south, north = float(delta.min()) - patch[1] / 2, float(delta.max()) + patch[1] / 2
    return (low, high), (max(south, -math.pi / 2), min(north, math.pi / 2))


def scene_of_rows(
    rows: Candidates, title: str, counts: str = "candidates", number: int = 1
) -> SearchScene:
    """Candidates that were found."""
    if not len(rows):
        raise InputError(f"{title}: it has no candidates to show")
    directions = zip(rows["alpha"].tolist(), rows["delta"].tolist(), strict=True)
    wide = max(float(np.ptp(rows[n])) for n in ("alpha", "delta"))
    room = wide * 0.1 or 0.01
    scene = SearchScene(_sky(directions, (room, room)), title=title, counts=counts, number=number)
    scene.add(len(rows) if counts == "candidates" else 0, rows)
    return scene


def is_table(path: Path) -> bool:
    """Whether it is a table of templates or candidates: text with columns of these names."""
    return {"freq", "alpha", "delta", "twoF"} <= names_at_top(path)


def scene_of_table(path: Path) -> SearchScene:
    """The candidates, or the templates with their 2F, of a file that a command has written."""
    from lanewise.sims.waves.tables import read_templates

    table = read_templates(path, 0)
    rows = np.zeros(len(table.rows), CANDIDATE)
    for name in COLUMNS:
        if name in table.names:
            k = table.names.index(name)
            rows[name] = [float(row[k]) for row in table.rows]
    return scene_of_rows(rows, path.name)


class UnitsScene:
    """The candidates in the checkpoints of a search that others compute, read again when there are
    new ones. When the search has ended and they are gone, the last ones stay.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._stamp = folder, _stamp(folder)
        self._number = 0
        self._scene = _scene_of_units(folder, self._number)
        # the sky grows with the units that report
        self._about = {**self._scene.about, "domain": None}

    @property
    def changed(self) -> bool:
        """Whether there are checkpoints that were not read."""
        return bool(stamp := _stamp(self._folder)) and stamp != self._stamp

    @property
    def about(self) -> Mapping[str, Any]:
        return self._about

    @property
    def moment(self) -> tuple[int, float]:
        return self._scene.moment

    def frames(self, asked: Asked) -> Sequence[FrameOrLater]:
        """See `SearchScene.frames`."""
        if self.changed:
            self._stamp = _stamp(self._folder)
            self._number = (self._number + 1) % 256
            self._scene = _scene_of_units(self._folder, self._number)
        return self._scene.frames(asked)

    def picked(self, place: int, order: int | None = None) -> dict[str, Any]:
        """See `SearchScene.picked`."""
        return self._scene.picked(place, order)


def _stamp(folder: Path) -> tuple[tuple[str, int], ...]:
    found: list[tuple[str, int]] = []
    for path in sorted(folder.glob("unit-*.json")):
        with suppress(FileNotFoundError):  # the search has just ended
            found.append((path.name, path.stat().st_mtime_ns))
    return tuple(found)


def _scene_of_units(folder: Path, number: int) -> SearchScene:
    from lanewise.io.documents import damaged, read_document
    from lanewise.sims.waves.units.checkpoint import UNIT
    from lanewise.sims.waves.units.progress import progress

    found: list[Candidates] = []
    for path in sorted(folder.glob("unit-*.json")):
        try:
            saved = read_document(path, UNIT)["candidates"]
            found.append(np.array([tuple(map(float, row)) for row in saved], CANDIDATE))
        except (KeyError, TypeError, ValueError) as error:
            raise damaged(path, f"{type(error).__name__}: {error}") from error
    if not found:
        raise InputError(
            f"{folder}: there are no checkpoints of a search to show; wanted the folder OUT.units "
            "of `lanewise waves run`, whose units have begun"
        )
    scene = scene_of_rows(np.concatenate(found), folder.name, "map", number)
    scene.add(sum(p.done for p in progress(folder)), np.empty(0, CANDIDATE))
    return scene
