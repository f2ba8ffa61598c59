"""Whether a unit's result can be what was asked for, before it is merged: nothing is taken on trust from another process or file."""

from __future__ import annotations

import math

import numpy as np

from lanewise.errors import LanewiseError
from lanewise.sims.waves.demodulation import f_statistic
from lanewise.sims.waves.hierarchical import COLUMNS, Candidates, merged
from lanewise.sims.waves.hough import (
    ROTATION_SPEED,
    Patch,
    Significance,
    StackMotion,
    drift_offsets,
    make_patch,
    pixel_offsets,
    stack_motion,
    stack_weights,
)
from lanewise.sims.waves.prepared import earth_states, geometry
from lanewise.sims.waves.templates import Templates
from lanewise.sims.waves.units.checkpoint import State
from lanewise.sims.waves.units.job import Ready

RECOMPUTED = 3  # candidates of a unit: the first, the last, and one between
NEAR = 5e-3  # of F: so near to the threshold float32 may have a peak where float64 has none
NEAREST = 1e-9  # of a frequency's or a spin-down's step: what rounding may do


class ResultError(LanewiseError):
    """The result of a work unit is refused."""


def validate(ready: Ready, state: State) -> None:
    """Raise ResultError unless a unit's result is complete, of this search, in range, in order, and right where it is computed again."""
    unit, found = state.unit, state.candidates
    if state.digest != ready.digest:
        raise _refused(state, f"it is of another search, {state.digest[:16]}; wanted {ready.digest[:16]}")
    if not state.complete:
        raise _refused(state, f"it has {state.done:,} of {unit.steps:,} steps")
    if not 1 <= len(found) <= ready.job.most:
        raise _refused(state, f"it has {len(found):,} candidates; wanted 1 to {ready.job.most:,}")
    for name in COLUMNS:
        if (bad := ~np.isfinite(found[name])).any():
            raise _refused(state, f"{name} of candidate {int(np.flatnonzero(bad)[0])} is not finite")
    _check_ranges(ready, state)
    if merged([found], len(found)).tobytes() != found.tobytes():
        raise _refused(state, "its candidates are not in their order")
    check = _Recomputed(ready, state)
    for place in sorted({0, len(found) // 2, len(found) - 1})[:RECOMPUTED]:
        check(place)


def _refused(state: State, why: str) -> ResultError:
    return ResultError(f"work unit {state.unit.number}: its result is refused: {why}")


def _check_ranges(ready: Ready, state: State) -> None:
    grids, unit, found = ready.grids, state.unit, state.candidates
    step, spins = grids.resolution, grids.f1dot[slice(*unit.spins)]
    first = step * grids.first_bin + grids.correction
    slack = NEAREST * float(abs(grids.residuals).max() + abs(spins).max())
    bounds = {
        "freq": (first + step * (unit.frequencies[0] - 0.5), first + step * (unit.frequencies[1] - 0.5)),
        "alpha": (-math.pi, math.pi), "delta": (-math.pi / 2, math.pi / 2),
        "f1dot": (spins.min() + grids.residuals.min() - slack, spins.max() + grids.residuals.max() + slack),
        "count": (0.0, grids.data.stacks * (1 + NEAREST)),
    }  # fmt: skip
    for name, (low, high) in bounds.items():
        bad = (found[name] < low) | (found[name] > high)
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise _refused(state, f"{name} of candidate {row} is {found[name][row]:g}; wanted {low:g} to {high:g}")


class _Recomputed:
    """Computes a candidate again: F in float64, at the frequencies where its pixel sees each stack."""

    def __init__(self, ready: Ready, state: State) -> None:
        self.ready, self.state = ready, state
        self.earths = earth_states(ready.grids.data, ready.ephemeris)
        self.motion: StackMotion = stack_motion(ready.grids.data, self.earths)

    def __call__(self, place: int) -> None:
        """Raise ResultError unless a direction and spin-down of the unit give this candidate's count and significance."""
        row = self.state.candidates[place]
        grids, job = self.ready.grids, self.ready.job
        step = grids.residuals[1] - grids.residuals[0] if len(grids.residuals) > 1 else grids.search.stack**-2
        counts: list[str] = []
        for alpha, delta in job.sky[slice(*self.state.unit.sky)]:
            patch = self._patch(alpha, delta)
            pixels = np.argwhere((patch.alpha == row["alpha"]) & (patch.delta == row["delta"]))
            for f1dot in grids.f1dot[slice(*self.state.unit.spins)].tolist() if len(pixels) else ():
                residual = int(np.argmin(abs(f1dot + grids.residuals - row["f1dot"])))
                if abs(f1dot + grids.residuals[residual] - row["f1dot"]) > NEAREST * max(step, abs(row["f1dot"])):
                    continue
                low, high, right = self._counts(patch, pixels[0], f1dot, residual, row)
                if right:
                    return
                counts.append(f"{low:g}" if low == high else f"{low:g} to {high:g}")
        wanted = f"computed again it has {' or '.join(counts)}" if counts else "no pixel of the unit lies there"
        raise _refused(
            self.state,
            f"candidate {place} has the count {row['count']:g}, significance {row['significance']:g}; {wanted}",
        )

    def _patch(self, alpha: float, delta: float) -> Patch:
        grids = self.ready.grids
        size = grids.search.patch or (1 / (grids.search.stack * grids.first * ROTATION_SPEED),) * 2
        return make_patch(alpha, delta, (size[0], size[1]), grids.first_bin)

    def _counts(
        self, patch: Patch, pixel: Candidates, f1dot: float, residual: int, row: Candidates
    ) -> tuple[float, float, bool]:
        """The least and the largest count that this can be, and whether the candidate's is."""
        grids, data = self.ready.grids, self.ready.grids.data
        alpha, delta = patch.centre
        offsets = pixel_offsets(
            patch, self.motion, grids.middle, grids.first_bin * grids.resolution, f1dot, grids.resolution
        )
        drifts = drift_offsets(self.motion, grids.middle, grids.residuals, grids.resolution)[residual]
        number = round((float(row["freq"]) - grids.correction) / grids.resolution) - grids.first_bin
        places = number + drifts + offsets[:, pixel[0], pixel[1]]
        every, which = np.unique(places, return_inverse=True)
        templates = Templates(grids.first + grids.resolution * every, alpha, delta, f1dot, reference=grids.middle)
        f = f_statistic(data, templates, self.ready.ephemeris, dterms=grids.search.dterms).two_f / 2
        own = f[np.arange(data.stacks), which]
        weights = np.ones(data.stacks)
        if grids.search.weighted:
            weights = stack_weights(data, geometry(data, self.ready.ephemeris, alpha, delta, earths=self.earths))[0]
        low, high = (float(weights[own > grids.search.threshold + x].sum()) for x in (NEAR, -NEAR))
        slack, count = 1e-6 * data.stacks, float(row["count"])
        expected = float(Significance.of(weights, grids.search.threshold)(np.float64(count)))  # type: ignore[arg-type]
        right = low - slack <= count <= high + slack and math.isclose(
            expected, float(row["significance"]), rel_tol=1e-6, abs_tol=1e-6
        )
        return low, high, right
