"""Candidates, refined in stages: stacks of twice the length and finer templates from stage to
stage, until there is one stack.

What is called zoom: a semi-coherent search finds where a signal may be, a coherent one with finer
templates what it is (Shaltev and Prix, Phys. Rev. D 87, 084057 (2013)); stages between keep the
number of templates small. The first stage has the stacks of the search and covers a few cells of
its grid about the candidate. The templates of a stage are a lattice with the step that the metric
of its stacks asks for (`metric.phase_metric`), within what the stage before could not tell apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from lanewise.sims.waves.definition import EXPECTED
from lanewise.sims.waves.demodulation import demodulated
from lanewise.sims.waves.hierarchical import CANDIDATE, Candidates
from lanewise.sims.waves.hierarchical_setup import Grids
from lanewise.sims.waves.hough import ORBITAL_SPEED, PIXEL_FACTOR
from lanewise.sims.waves.prepared import SearchData
from lanewise.sims.waves.refinement.lattice import lattice
from lanewise.sims.waves.refinement.metric import phase_metric, tangents
from lanewise.sims.waves.refinement.stacks import regrouped
from lanewise.sims.waves.templates import Templates
from lanewise.sims.waves.timing import Ephemeris
from lanewise.support.attributes import frozen
from lanewise.support.checks import checked, shown
from lanewise.support.errors import InputError

Floats = NDArray[np.float64]
FOLLOWED = (
    "rank",
    "freq",
    "alpha",
    "delta",
    "f1dot",
    "twoF",
    "mean_twoF",
    "false_alarm",
    "promoted",
    "templates",
)
CELLS = 2.5  # half the width of the first stage's region, in cells of the search
MISMATCH = 0.2  # at most, of the templates of a stage
FINER, TWICE = (
    10.0,
    2.0,
    # from one lattice of the last stage to the next; each looks that many mismatches about the best
    # before it
)
NOISE = (
    # of the squared signal-to-noise ratio: what a mismatch may cost at the end, as noise moves the
    # maximum by more
    0.5
)
UNCERTAIN = 1.0  # mismatch up to which the next stage looks about the best template
EDGE = 0.7  # of the first region's mismatch: a best template beyond lies at its border
MOVES = 3  # of a first region that has its best template at the border
MOST = 2_000_000  # templates at a time
BALL = np.pi**2 / 2  # volume of four dimensions
SURE = 0.01  # false alarms of what is promoted


@frozen
@dataclass(frozen=True, slots=True, eq=False)
class _Point:
    """Parameters at the middle of the observation; offsets are (freq, f1dot, east, north)."""

    freq: float
    f1dot: float
    alpha: float
    delta: float

    def moved(self, offsets: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Frequencies, spin-downs, right ascensions and declinations of offsets (n, 4)."""
        here, east, north = tangents(self.alpha, self.delta)
        n = here + offsets[:, 2, None] * east + offsets[:, 3, None] * north
        alpha = np.arctan2(n[:, 1], n[:, 0]) % (2 * np.pi)
        delta = np.arcsin(np.clip(n[:, 2] / np.linalg.norm(n, axis=1), -1, 1))
        return self.freq + offsets[:, 0], self.f1dot + offsets[:, 1], alpha, delta

    def offset(self, other: _Point) -> Floats:
        """(4) of another point, whose direction is near."""
        here, east, north = tangents(self.alpha, self.delta)
        n = tangents(other.alpha, other.delta)[0]
        along = max(float(n @ here), 1e-3)
        return np.array(
            [other.freq - self.freq, other.f1dot - self.f1dot, n @ east / along, n @ north / along]
        )


@frozen
@dataclass(frozen=True, slots=True, eq=False)
class _Stage:
    """What a stage has computed: its best template with its mean 2F, and how many there were;
    metric: of its stacks, there.
    """

    best: _Point
    two_f: float
    metric: Floats
    templates: int


@checked(InputError)
def follow_up(
    grids: Grids,
    ephemeris: Ephemeris,
    candidates: Candidates,
    most: int,
    *,
    directions: int = 1,
    device: str = "numpy",
    report: Callable[[int], None] = lambda done: None,
) -> NDArray[np.void]:
    """The best `most` candidates of a search, each refined by a coherent F-statistic of all its
    data: a structured array by falling 2F.

    Of candidates in one region of the search's grid the best is followed; of those that end where
    the coherent statistic cannot tell them apart, or in one region, the one with the highest 2F
    stays.

        directions: that the search had: with its grids they say how many templates could have been
          chosen
        report: is called with each candidate that is done

        rank: place among the candidates, from 0
        freq, f1dot: Hz and Hz/s at the middle of the observation, as those of candidates; alpha,
          delta: radians
        twoF: coherent, of all data; twoF_<detector>: of each one's; mean_twoF: over the stacks of
          the search, same template
        false_alarm: the probability that noise gives as much, see `false_alarm`
        promoted: 1 where that is below 0.01 and no detector alone has more than all together, else
          0
        templates: how many were computed, in all stages

    Raises InputError for less than one candidate, or regions of too many templates.
    """
    if candidates.dtype != CANDIDATE or candidates.ndim != 1 or not len(candidates):
        raise InputError(
            f"candidates are {shown(candidates)}; wanted those of a search, one at least"
        )
    if most < 1:
        raise InputError(f"a follow-up of {most} candidates is requested; wanted at least 1")
    first = _first_region(grids)
    # many cells are as significant
    order = np.lexsort((-candidates["twoF"], -candidates["significance"])).tolist()
    chosen = list(islice(_apart(order, candidates, lambda _: first), most))
    places = max(1.0, _volume(grids) * directions * np.sqrt(np.linalg.det(first)) / BALL)
    rows: list[tuple[float, ...]] = []
    metrics: list[Floats] = []
    for rank in chosen:
        row, metric = _followed(
            grids, ephemeris, _point(candidates[rank]), (float(len(chosen)), places), device
        )
        rows.append((rank, *row))
        metrics.append(metric)
        report(1)
    names = (*FOLLOWED, *(f"twoF_{d}" for d in grids.data.detectors))
    table = np.array(rows, [(n, np.float64) for n in names])
    falling = np.argsort(-table["twoF"], kind="stable").tolist()
    once = list(
        _apart(
            list(_apart(falling, table, lambda _: first)), table, lambda n: metrics[n] / UNCERTAIN
        )
    )
    return table[once]


def _point(row: Candidates) -> _Point:
    return _Point(*(float(row[n]) for n in ("freq", "f1dot", "alpha", "delta")))


def _apart(
    order: Iterable[int], rows: Candidates, region: Callable[[int], Floats]
) -> Iterator[int]:
    """The numbers of rows that do not lie in the region of one before them."""
    before: list[tuple[_Point, Floats]] = []
    for number in order:
        point = _point(rows[number])
        offsets = [(p.offset(point), r) for p, r in before]
        if all(x @ r @ x > 1 for x, r in offsets):
            yield number
            before.append((point, region(number)))


def _volume(grids: Grids) -> float:
    """What the maps of one direction cover, in Hz, Hz/s and radians: at least a cell of each."""
    coarse = grids.search.f1dot_step or grids.search.stack**-2
    pixel = pixel_size(grids)
    patch = grids.patch
    return (
        grids.frequencies
        * grids.resolution
        * len(grids.f1dot)
        * coarse
        * max(patch[0], pixel)
        * max(patch[1], pixel)
    )


def pixel_size(grids: Grids) -> float:
    """Radians from one pixel of the maps to the next."""
    return 1 / (ORBITAL_SPEED * PIXEL_FACTOR * grids.first_bin)


def _first_region(grids: Grids) -> Floats:
    """(4, 4): an ellipsoid of CELLS cells of the search's grid to each side."""
    span = float(grids.data.span.max() - grids.data.span.min()) * 1e-9
    residual = grids.residuals[1] - grids.residuals[0] if len(grids.residuals) > 1 else 0.0
    pixel = pixel_size(grids)
    cells = np.array([grids.resolution, max(residual, grids.resolution / span), pixel, pixel])
    return np.diag((CELLS * cells) ** -2)


def _followed(
    grids: Grids, ephemeris: Ephemeris, start: _Point, regions: tuple[float, float], device: str
) -> tuple[tuple[float, ...], Floats]:
    """The row of a candidate, and the metric there. regions: how many are followed, and how many
    the search has.
    """
    first = _first_region(grids)
    stage, region, total = _found_first(grids, ephemeris, start, device)
    data = grids.data
    while data.stacks > 1:
        data = regrouped(grids.data, (data.stacks + 1) // 2)
        stage = _stage(grids, data, ephemeris, stage.best, region, first, device)
        region = stage.metric / UNCERTAIN + first
        total += stage.templates
    mismatch = MISMATCH
    while mismatch * max(stage.two_f - EXPECTED, EXPECTED) > NOISE:
        region, mismatch = stage.metric / (TWICE * mismatch) + first, mismatch / FINER
        stage = _stage(grids, data, ephemeris, stage.best, region, first, device, mismatch)
        total += stage.templates
    p, reference, dterms = stage.best, grids.middle, grids.search.dterms
    one = Templates(p.freq, p.alpha, p.delta, p.f1dot, reference=reference)
    whole = demodulated(data, one, ephemeris, dterms=dterms, device=device)
    parts = demodulated(grids.data, one, ephemeris, dterms=dterms, device=device).two_f[:, 0]
    two_f, detectors = float(whole.two_f[0, 0]), whole.two_f_detector[0, :, 0].tolist()
    different = max(1.0, _different(stage.metric, first))
    alarm = false_alarm(two_f, parts, regions[0] * different, regions[1] * different)
    promoted = alarm < SURE and (len(detectors) == 1 or max(detectors) <= two_f)
    return (
        p.freq,
        p.alpha,
        p.delta,
        p.f1dot,
        two_f,
        float(parts.mean()),
        alarm,
        float(promoted),
        float(total),
        *detectors,
    ), stage.metric


def _found_first(
    grids: Grids, ephemeris: Ephemeris, start: _Point, device: str
) -> tuple[_Stage, Floats, int]:
    """The stage of the search's own stacks, the region of the next one, and how many templates
    there were.

    A region that has its best template at the border is moved there.
    """
    first = _first_region(grids)
    stage = _stage(grids, grids.data, ephemeris, start, first, first, device)
    total = stage.templates
    for _ in range(MOVES):
        moved, start = start.offset(stage.best), stage.best
        if moved @ first @ moved <= EDGE:
            break
        stage = _stage(grids, grids.data, ephemeris, start, first, first, device)
        total += stage.templates
    return stage, stage.metric / UNCERTAIN + first, total


def _stage(
    grids: Grids,
    data: SearchData,
    ephemeris: Ephemeris,
    centre: _Point,
    region: Floats,
    first: Floats,
    device: str,
    mismatch: float = MISMATCH,
) -> _Stage:
    """The template of the highest mean 2F of these stacks about a centre."""
    metric = phase_metric(data, ephemeris, centre.freq, centre.alpha, centre.delta, grids.middle)
    # Directions that short data do not tell apart get no larger steps than the first region asks
    # for.
    common, offsets = lattice(metric + mismatch * first, region, mismatch, MOST)
    freq, f1dot, alpha, delta = centre.moved(offsets)
    # To the bit the same for what is one direction: its geometry is computed once.
    _, where, which = np.unique(common, return_index=True, return_inverse=True)
    alpha, delta = alpha[where][which], delta[where][which]
    templates = Templates(freq, alpha, delta, f1dot, reference=grids.middle)
    mean = demodulated(
        data, templates, ephemeris, dterms=grids.search.dterms, device=device
    ).two_f.mean(axis=0)
    best = int(mean.argmax())
    point = _Point(float(freq[best]), float(f1dot[best]), float(alpha[best]), float(delta[best]))
    return _Stage(point, float(mean[best]), metric, len(freq))


def _different(metric: Floats, region: Floats) -> float:
    """How many templates a region needs: its volume over that of a lattice's cell."""
    cell = (4 * MISMATCH / len(metric)) ** (len(metric) / 2)
    ratio = np.linalg.det(metric + MISMATCH * region) / np.linalg.det(region)
    return float(BALL * np.sqrt(ratio) / cell)


def false_alarm(two_f: float, parts: Floats, followed: float, searched: float) -> float:
    """The probability that noise gives this 2F of all data; parts: 2F of the stacks.

    The lower of two, twice, as either may tell.

    Of all templates that the search could have chosen (`searched`): 2F has a chi-squared
    distribution with four degrees of freedom, which is exceeded by (1 + F) exp(-F). Or of those
    that are followed (`followed`): 2F of all data is what 4 of the 4 N dimensions hold that N
    stacks have, so that in noise their ratio x follows a Beta distribution, whatever their sum is,
    by which candidates were chosen; it is exceeded by (1 - x)^(2 N - 2) (1 + (2 N - 2) x).
    """
    alone, x, b = (1 + two_f / 2) * np.exp(-two_f / 2), 1.0, 2 * len(parts) - 2
    if total := float(parts.sum()):
        x = min(max(two_f / total, 0.0), 1.0)
    together = (1 - x) ** b * (1 + b * x) if b else 1.0
    once = min(_one_of(searched, float(alone)), _one_of(followed, float(together)))
    return min(1.0, 2 * once)


def _one_of(trials: float, probability: float) -> float:
    """Of an event of this probability in one of independent trials."""
    return 1.0 if probability >= 1 else float(-np.expm1(trials * np.log1p(-probability)))
