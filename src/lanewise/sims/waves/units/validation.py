"""Whether a unit's result can be what was requested, before it is merged: nothing is taken on trust
from another process or file.
"""

from __future__ import annotations

import math

import numpy as np

from lanewise.sims.waves.demodulation import demodulated
from lanewise.sims.waves.hierarchical import COLUMNS, Candidates, merged
from lanewise.sims.waves.hough import (
    Significance,
    StackMotion,
    drift_offsets,
    needed_margin,
    pixel_offsets,
    stack_motion,
    stack_weights,
)
from lanewise.sims.waves.prepared import earth_states, geometry
from lanewise.sims.waves.refinement import some_stacks
from lanewise.sims.waves.resampling import Band, resampled
from lanewise.sims.waves.templates import Floats, Templates
from lanewise.sims.waves.units.checkpoint import State
from lanewise.sims.waves.units.job import Ready
from lanewise.sims.waves.units.origins import NEAREST, Origin, origins
from lanewise.support.errors import LanewiseError
from lanewise.support.numerals import counted, numeral, numerals

RECOMPUTED = 3  # candidates of a unit: the first, the last, and one between
# of F: so near to the threshold float32 may have a peak where float64 has none; so far mean 2F may
# be off
NEAR = 5e-3


class ResultError(LanewiseError):
    """The result of a work unit is refused."""


def validate(ready: Ready, state: State) -> None:
    """Raise ResultError unless a unit's result is complete, of this search, in range, in order, and
    right where it is computed again.
    """
    unit, rows = state.unit, state.candidates
    if state.digest != ready.digest:
        raise _refused(
            state, f"it is of another search, {state.digest[:16]}; wanted {ready.digest[:16]}"
        )
    if not state.complete:
        raise _refused(state, f"it has {state.done:,} of {counted(unit.steps, 'step', 'steps')}")
    if not 1 <= len(rows) <= ready.job.most:
        raise _refused(state, f"it has {len(rows):,} candidates; wanted 1 to {ready.job.most:,}")
    for name in COLUMNS:
        if (bad := ~np.isfinite(rows[name])).any():
            raise _refused(
                state, f"{name} of candidate {int(np.flatnonzero(bad)[0])} is not finite"
            )
    _check_ranges(ready, state)
    if merged([rows], len(rows)).tobytes() != rows.tobytes():
        raise _refused(state, "its candidates are not in their order")
    check = _Recomputed(ready, state)
    for place in sorted({0, len(rows) // 2, len(rows) - 1})[:RECOMPUTED]:
        check(place)


def _refused(state: State, why: str) -> ResultError:
    return ResultError(f"work unit {state.unit.number}: its result is refused: {why}")


def _check_ranges(ready: Ready, state: State) -> None:
    grids, unit, rows = ready.grids, state.unit, state.candidates
    step, spins = grids.resolution, grids.f1dot[slice(*unit.spins)]
    first = step * grids.first_bin + grids.correction
    slack = NEAREST * float(abs(grids.residuals).max() + abs(spins).max())
    bounds = {
        "freq": (
            first + step * (unit.frequencies[0] - 0.5),
            first + step * (unit.frequencies[1] - 0.5),
        ),
        "alpha": (-math.pi, math.pi),
        "delta": (-math.pi / 2, math.pi / 2),
        "f1dot": (
            spins.min() + grids.residuals.min() - slack,
            spins.max() + grids.residuals.max() + slack,
        ),
        "count": (0.0, grids.data.stacks * (1 + NEAREST)),
    }
    for name, (low, high) in bounds.items():
        bad = (rows[name] < low) | (rows[name] > high)
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            found, *wanted = numerals(rows[name][row], low, high)
            raise _refused(
                state, f"{name} of candidate {row} is {found}; wanted {' to '.join(wanted)}"
            )


class _Recomputed:
    """Computes a candidate again: F in float64, at the frequencies where its pixel sees each
    stack.
    """

    def __init__(self, ready: Ready, state: State) -> None:
        self.ready, self.state = ready, state
        self.earths = earth_states(ready.grids.data, ready.ephemeris)
        self.motion: StackMotion = stack_motion(ready.grids.data, self.earths)

    def __call__(self, place: int) -> None:
        """Raise ResultError unless a direction and spin-down of the unit give this candidate's
        count, significance and mean 2F.
        """
        row, unit = self.state.candidates[place], self.state.unit
        seen: list[str] = []
        for origin in origins(self.ready, row, unit.sky, unit.spins):
            low, high, two_f, right = self._values(origin, row)
            if right:
                return
            seen.append(
                f"{' to '.join(dict.fromkeys(numerals(low, high)))} and mean 2F {numeral(two_f)}"
            )
        again = (
            f"computed again it has the count {' or '.join(seen)}"
            if seen
            else "no pixel of the unit lies there"
        )
        raise _refused(
            self.state,
            f"candidate {place} has the count {numeral(row['count'])}, significance "
            f"{numeral(row['significance'])}, mean 2F {numeral(row['twoF'])}; {again}",
        )

    def _values(self, origin: Origin, row: Candidates) -> tuple[float, float, float, bool]:
        """The least and the largest count that this can be, the mean 2F, and whether the
        candidate's are these.
        """
        grids, data = self.ready.grids, self.ready.grids.data
        own = self._f(origin, row)
        weights = np.ones(data.stacks)
        if grids.search.weighted:
            seen = geometry(data, self.ready.ephemeris, *origin.patch.centre, earths=self.earths)
            weights = stack_weights(data, seen)[0]
        low, high = (float(weights[own > grids.search.threshold + x].sum()) for x in (NEAR, -NEAR))
        slack, count, two_f = 1e-6 * data.stacks, float(row["count"]), float(2 * own.mean())
        expected = float(Significance.of(weights, grids.search.threshold)(np.float64(count)))  # type: ignore[arg-type]
        right = (
            low - slack <= count <= high + slack
            and math.isclose(expected, float(row["significance"]), rel_tol=1e-6, abs_tol=1e-6)
            and math.isclose(two_f, float(row["twoF"]), rel_tol=NEAR, abs_tol=NEAR)
        )
        return low, high, two_f, right

    def _f(self, origin: Origin, row: Candidates) -> Floats:
        """F of each stack (s), where the cell sees it."""
        grids = self.ready.grids
        data = self.ready.grids.data
        resolution = self.ready.grids.resolution
        centre = grids.first_bin * resolution
        offsets = pixel_offsets(
            origin.patch, self.motion, grids.middle, centre, origin.f1dot, resolution
        )
        drifts = drift_offsets(self.motion, grids.middle, grids.residuals, resolution)
        number = round((float(row["freq"]) - grids.correction) / resolution) - grids.first_bin
        places = number + drifts[origin.residual] + offsets[:, *origin.pixel]
        alpha, delta = origin.patch.centre
        if self.ready.job.method == "resamp":
            # Transforms give other values in another band: the whole band is that of the search.
            margin = needed_margin(offsets, drifts)
            band = Band(
                grids.first - margin * resolution,
                resolution,
                grids.frequencies + 2 * margin,
                alpha,
                delta,
                grids.middle,
                origin.f1dot,
            )
            values = (
                resampled(data, band, self.ready.ephemeris, dterms=grids.search.dterms).two_f / 2
            )
            return values[np.arange(data.stacks), margin + places]
        values = np.empty(data.stacks)
        # Of few stacks at a time: the frequency of one is of no use to the others.
        step = math.isqrt(data.stacks - 1) + 1
        for first in range(0, data.stacks, step):
            end = min(first + step, data.stacks)
            freq = grids.first + resolution * places[first:end]
            templates = Templates(freq, alpha, delta, origin.f1dot, reference=grids.middle)
            some = some_stacks(data, first, end)
            two_f = demodulated(
                some, templates, self.ready.ephemeris, dterms=grids.search.dterms
            ).two_f
            values[first:end] = np.diagonal(two_f) / 2
        return values
