"""The Hough transform of F-statistics: in how many stacks does the frequency that a direction and
spin-down predict hold a peak?

Krishnan et al., Phys. Rev. D 70, 082001 (2004). F of each stack is computed for the centre of a
patch of the sky, n_d, and one spin-down; seen from another direction n of the patch, a source of
the frequency f at the reference time appears in stack k at

    f_k = f + xi_k . (n - n_d) + (f1dot - f1dot_d) (t_k - t_ref),   xi_k = (f0 + f1dot_d (t_k -
    t_ref)) v_k + f1dot_d r_k,

v_k and r_k being the mean velocity and position of the detectors in the stack. Both terms are
rounded to bins, as in LALPulsar. There, look-up tables of the borders between bins give the same
pixels; here, the offset of every pixel is computed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lanewise.sims.common.devices import require_memory
from lanewise.sims.waves.detectors import SPEED_OF_LIGHT, detector
from lanewise.sims.waves.prepared import Geometry, SearchData, sfts_of
from lanewise.sims.waves.timing import EarthState, detector_motion
from lanewise.sims.waves.timing.arrival import sky_vectors
from lanewise.support.attributes import frozen
from lanewise.support.errors import InputError
from lanewise.support.numerals import numerals

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# of the Earth, over c
ORBITAL_SPEED = 2 * math.pi * 149_597_870_700.0 / 31_558_149.8 / SPEED_OF_LIGHT
# of the Earth's surface, over c
ROTATION_SPEED = 2 * math.pi * 6_378_136.6 / 86_164.09053 / SPEED_OF_LIGHT
PIXEL_FACTOR = 2.0
PIXEL_BYTES = 100  # of a grid's vectors, while they are made


@frozen
@dataclass(frozen=True, slots=True, eq=False)
class Patch:
    """Pixels about a direction, a square grid on the stereographic projection from the opposite
    pole.

    Attributes:
        centre: alpha and delta in radians
        pixel: distance of pixels, radians at the centre
        alpha, delta: (rows, columns) of the pixels; alpha within -pi to pi
    """

    centre: tuple[float, float]
    pixel: float
    alpha: Floats
    delta: Floats

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        rows, columns = self.alpha.shape
        return rows, columns


@frozen
@dataclass(frozen=True, slots=True, eq=False)
class PatchGrid:
    """The pixels of patches of one size, in axes whose third one points away from the centre: the
    same for all directions.

    Attributes:
        pixel: distance of pixels, radians at the centre
        vectors: (rows, columns, 3) unit vectors; the centre is (0, 0, -1)
    """

    pixel: float
    vectors: Floats

    @staticmethod
    def of(
        size: tuple[float, float], frequency_bin: int, pixel_factor: float = PIXEL_FACTOR
    ) -> PatchGrid:
        """See `make_patch`."""
        if not all(0 < s <= math.pi for s in size):
            raise InputError(
                f"the patch is {' x '.join(numerals(*size, math.pi)[:2])} radians; wanted above 0 "
                "and at most pi"
            )
        pixel = 1 / (ORBITAL_SPEED * pixel_factor * frequency_bin)
        columns, rows = (max(1, math.ceil(4 * math.tan(s / 4) / pixel)) for s in size)
        require_memory(
            "cpu", PIXEL_BYTES * rows * columns, f"a patch of {rows:,} x {columns:,} pixels"
        )
        x = pixel * (np.arange(columns) - 0.5 * (columns - 1))
        y = pixel * (np.arange(rows) - 0.5 * (rows - 1))
        radius = np.hypot(x, y[:, None])
        turn = np.arctan2(y[:, None], x)
        down = 2 * np.arctan(radius / 2) - np.pi / 2
        return PatchGrid(pixel, sky_vectors(turn, down))

    def at(self, alpha: float, delta: float) -> Patch:
        """The patch about a direction in radians."""
        return self.patches([(alpha, delta)])[0]

    def patches(self, points: Sequence[tuple[float, float]]) -> list[Patch]:
        """The patches about directions (alpha, delta) in radians.

        Each has the bits that it would have alone.
        """
        axes = np.stack([patch_axes(*point) for point in points])[:, None]
        sky = self.vectors @ axes
        turns = np.arctan2(sky[..., 1], sky[..., 0])
        heights = np.arcsin(np.clip(sky[..., 2], -1, 1))
        return [
            Patch(p, self.pixel, turn, height)
            for p, turn, height in zip(points, turns, heights, strict=True)
        ]

    @property
    def from_centre(self) -> Floats:
        """(pixels, 3): the vectors less that of the centre."""
        return self.vectors.reshape(-1, 3) - np.array([0.0, 0.0, -1.0])


def make_patch(
    alpha: float,
    delta: float,
    size: tuple[float, float],
    frequency_bin: int,
    pixel_factor: float = PIXEL_FACTOR,
) -> Patch:
    """The pixels of a patch of `size` radians (x, y), 1 / (v pixel_factor frequency_bin) apart: v
    is the Earth's orbital speed over c.

    frequency_bin: the frequency over the resolution of F. Raises InputError for sizes that are not
    above zero and at most pi.
    """
    return PatchGrid.of(size, frequency_bin, pixel_factor).at(alpha, delta)


def pixel_order(patches: Sequence[Patch]) -> Ints:
    """(patches, pixels): numbers of the pixels (flat) of patches of one size, sorted by alpha and
    then by delta: the order of candidates of one frequency and significance.
    """
    alpha = np.stack([p.alpha.reshape(-1) for p in patches])
    order = alpha.argsort(axis=1)
    ordered = np.take_along_axis(alpha, order, axis=1)
    equal = ordered[:, 1:] == ordered[:, :-1]
    # few, such as the meridian of the centre: sorting all by two keys takes five times as long
    for n in np.flatnonzero(equal.any(axis=1)).tolist():
        delta, ties = patches[n].delta.reshape(-1), equal[n]
        tied = np.flatnonzero(np.concatenate([[False], ties]) | np.concatenate([ties, [False]]))
        some = order[n, tied]
        order[n, tied] = some[np.lexsort((delta[some], alpha[n, some]))]
    return order.astype(np.int64, copy=False)


def patch_axes(alpha: float, delta: float) -> Floats:
    """(3, 3): the axes of a patch, one a row; the rotation brings a direction to the south pole."""
    sa, ca, sd, cd = math.sin(alpha), math.cos(alpha), math.sin(delta), math.cos(delta)
    return np.array([[-sd * ca, -sd * sa, cd], [-sa, ca, 0.0], [-cd * ca, -cd * sa, -sd]])


@frozen
@dataclass(frozen=True, slots=True, eq=False)
class StackMotion:
    """The mean position (s, 3) in light-seconds and velocity (s, 3) over c of the detectors in each
    stack, and its time.

    time: (s) int64, GPS nanoseconds of the start of the SFT in the middle of each stack's list, as
    LALPulsar counts it
    """

    position: Floats
    velocity: Floats
    time: Ints


def stack_motion(data: SearchData, earths: dict[str, EarthState]) -> StackMotion:
    """Means over the SFTs of all detectors; earths: of `earth_states`."""
    motion = np.empty((len(data), 6))
    for name, which in sfts_of(data).items():
        motion[which] = np.concatenate(detector_motion(earths[name], detector(name)), axis=1)
    bounds = data.group[:: len(data.detectors)]
    means = np.add.reduceat(motion, bounds[:-1], axis=0) / np.diff(bounds)[:, None]
    half = round(data.duration * 1e9 / 2)
    times = [np.sort(data.middle[a:b])[(b - a) // 2] - half for a, b in pairwise(bounds.tolist())]
    return StackMotion(means[:, :3], means[:, 3:], np.array(times, np.int64))


def pixel_offsets(
    patch: Patch,
    motion: StackMotion,
    reference: int,
    frequency: float,
    f1dot: float,
    resolution: float,
) -> Ints:
    """(s, rows, columns): in how many bins of `resolution` Hz from where F has it for the centre
    each pixel's source is seen.

    frequency and f1dot at the reference time (GPS nanoseconds).
    """
    xi = shift_vectors(motion, reference, frequency, f1dot)
    n = sky_vectors(patch.alpha, patch.delta) - sky_vectors(*(np.array(c) for c in patch.centre))
    return np.floor(np.einsum("sj,rcj->src", xi, n) / resolution + 0.5).astype(np.int64)


def shift_vectors(motion: StackMotion, reference: int, frequency: float, f1dot: float) -> Floats:
    """xi, (s, 3) in Hz: by how much directions move the frequency in each stack; see
    `pixel_offsets`.
    """
    since = (motion.time - reference) * 1e-9
    return (frequency + f1dot * since)[:, None] * motion.velocity + f1dot * motion.position


def drift_offsets(
    motion: StackMotion, reference: int, residuals: Floats, resolution: float
) -> Ints:
    """(r, s): bins by which residual spin-downs (r) in Hz/s move each stack's frequency; rounded in
    float32, as in LALPulsar.
    """
    since = (motion.time - reference) * 1e-9
    drift = (since * residuals[:, None] / resolution).astype(np.float32)
    return np.floor(drift + np.float32(0.5)).astype(np.int64)


def stack_weights(data: SearchData, seen: Geometry) -> Floats:
    """(p, s): sum over a stack of noise weight times (a^2 + b^2), with the mean 1 over stacks; for
    each of the directions seen.

    The noise weights of a stack have the mean 1 before: by how much one stack is noisier than
    another does not count, as in LALPulsar.
    """
    return weights_of_patterns(data, seen.a, seen.b)


def weights_of_patterns(data: SearchData, a: Floats, b: Floats) -> Floats:
    """`stack_weights` of the weighted antenna patterns (p, n) of a `Geometry`."""
    bounds = data.group[:: len(data.detectors)]
    sums = np.add.reduceat(a**2 + b**2, bounds[:-1], axis=1)
    return sums / sums.mean(axis=1, keepdims=True)


def number_counts(
    peaks: NDArray[np.bool_] | Floats,
    start: int,
    count: int,
    offsets: Ints,
    drifts: Ints,
    weights: Floats,
) -> Floats:
    """Weighted number counts, (r, count, rows, columns): n = sum_k w_k peak_k.

        peaks: (s, bins) whether F is above the threshold; or values such as 2F, which are summed
        start: the bin of `peaks` that is the first of `count` frequencies
        offsets: (s, rows, columns) of `pixel_offsets`; drifts: (r, s) of `drift_offsets`
        weights: (s)

    Raises InputError where `peaks` has too few bins besides the frequencies.
    """
    margin = needed_margin(offsets, drifts)
    if start < margin or start + count + margin > peaks.shape[1]:
        raise InputError(
            f"the peaks have {start} bins below and {peaks.shape[1] - start - count} above the "
            f"frequencies; wanted {margin}"
        )
    result = np.zeros((len(drifts), count, *offsets.shape[1:]))
    frequency = start + np.arange(count)[:, None, None]
    for k, weight in enumerate(weights):
        index = drifts[:, k, None, None, None] + frequency + offsets[k]
        result += weight * peaks[k][index]
    return result


def needed_margin(offsets: Ints, drifts: Ints) -> int:
    """Bins that F needs on both sides of the frequencies."""
    return int(abs(offsets).max() + abs(drifts).max())


def below(threshold: float) -> float:
    """The probability that F of noise is not above it, 1 - (1 + F) exp(-F), with all digits:
    exp(-F) (F^2 / 2! + F^3 / 3! + ...).
    """
    if threshold > 1:
        return 1 - math.exp(-threshold) * (1 + threshold)
    return math.exp(-threshold) * sum(threshold**k / math.factorial(k) for k in range(2, 20))


@frozen
@dataclass(frozen=True, slots=True)
class Significance:
    """What number counts are in noise: (n - mean) / deviation of a binomial distribution with
    weights.
    """

    mean: float
    deviation: float

    @staticmethod
    def of(weights: Floats, threshold: float) -> Significance:
        """Of stacks with weights, where F = 2F / 2 is above `threshold` with the probability (1 +
        F) exp(-F).
        """
        alpha, missed = math.exp(-threshold) * (1 + threshold), below(threshold)
        return Significance(
            len(weights) * alpha, math.sqrt(float(np.sum(weights**2)) * missed) * math.sqrt(alpha)
        )

    def __call__(self, counts: Floats) -> Floats:
        return (counts - self.mean) / self.deviation
