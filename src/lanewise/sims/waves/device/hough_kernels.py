"""What follows demodulation, as kernels: F of amplitudes, words of peaks, the best frequency of
every pixel, and single cells of maps.

Maps of several directions and spin-downs are computed at a time. Values of F lie in (map, stack,
bin). A pixel sees a stack moved by floor(u . (n - n_d) + 1/2) bins and by the drift of its residual
spin-down (Krishnan et al., Phys. Rev. D 70, 082001 (2004), as `hough.pixel_offsets` and
`hough.drift_offsets` have them), u and n - n_d in the axes of the patch, where all patches have the
same pixels.

Number counts of several neighbouring frequencies are one sum: the word of a bin holds the peaks of
this bin and the next ones, each in its own digits, wide enough for all stacks, of one float64,
whose sums of integers below 2^53 are exact. A pixel keeps the best of its frequencies only.
Weighted counts have one frequency a word.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import lanewise as lw


@lw.record
class Entry:
    """A value of F: its place, that of its amplitudes, and that of the numbers of its direction and
    stack.
    """

    place: lw.i32
    amplitude: lw.i32
    stack: lw.i32


@lw.record
class All:
    """The one item of kernels that read whatever they like of one row."""

    number: lw.i32


@lw.record
class Pixel:
    """A pixel less the centre of its patch, and the number of a residual spin-down."""

    from_centre: lw.dvec3
    residual: lw.i32


@lw.record
class Cell:
    """A frequency of one of the chosen pixels, by their numbers."""

    chosen: lw.i32
    frequency: lw.i32


@lw.record
class Part:
    """A map: the number of its first frequency that is computed now."""

    start: lw.i32


INFINITE = float("inf")
# numbers of a stack (a, b, c, usable, weight), of a stack in a map, and of a chosen pixel
MATRIX, MOTION, CHOSEN = (5, 3, 4)


@lw.segmentwise
def f_of_amplitudes(
    entry: Entry, every: All, stacks: lw.Row[lw.f64], amplitudes: lw.Row[lw.vec4]
) -> lw.f64:
    """F = 2F / 2 in float64 of (Fa, Fb): (B |Fa|^2 + A |Fb|^2 - 2 C Re(Fa conj Fb)) / (A B - C^2),
    and 2 where that has no inverse.
    """
    x = amplitudes[entry.amplitude]
    m = lw.window(stacks, MATRIX * entry.stack, MATRIX)
    a, b, c = m[0], m[1], m[2]
    fa_re, fa_im, fb_re, fb_im = lw.f64(x.x), lw.f64(x.y), lw.f64(x.z), lw.f64(x.w)
    first, second = fa_re * fa_re + fa_im * fa_im, fb_re * fb_re + fb_im * fb_im
    mixed = fa_re * fb_re + fa_im * fb_im
    value = (b * first + a * second - 2.0 * c * mixed) / (a * b - c * c)
    return lw.select(m[3] != 0.0, value, 2.0)


@lw.function
def shift(at: lw.dvec3, x: lw.f64, y: lw.f64, z: lw.f64) -> lw.i32:
    """By how many bins a pixel sees a stack moved."""
    return lw.i32(lw.floor(at.x * x + at.y * y + at.z * z + 0.5))


@cache
def peak_words(count: int, digits: int) -> Any:
    """The kernel that packs the peaks of `count` bins from one on, `digits` binary digits each,
    times the weight of their stack.

    What is not finite makes a word that is not. The other result is F itself, for rows of another
    kind.
    """
    size = float(1 << digits)

    @lw.segmentwise
    def packed(
        entry: Entry, every: All, stacks: lw.Row[lw.f64], f: lw.Row[lw.f64], threshold: lw.f64
    ) -> tuple[lw.f64, lw.f64]:
        near = lw.window(f, entry.place, count)
        total, scale = lw.f64(0.0), lw.f64(1.0)
        for i in range(count):
            value = near[i]
            total += lw.select(value > threshold, scale, 0.0) + (value - value)
            scale *= size
        # the window of a last bin leaves the row, and has no numbers
        return total * stacks[MATRIX * entry.stack + 4], f[entry.place]

    return packed


@cache
def best_frequencies(count: int, digits: int, words: int) -> Any:
    """The kernel that finds the best frequency of every pixel in every map, the first of equals:
    its significance, count and number.

    count, digits: of `peak_words`; words: that are added side by side. There are at least count *
    words frequencies. Where a value is not finite, significance and count are infinite.
    """
    span, size = count * words, float(1 << digits)
    reach, part = (words - 1) * count + 1, 1.0 / size

    @lw.segmentwise
    def best(
        pixel: Pixel,
        part_of_map: Part,
        motion: lw.Row[lw.f64],
        drifts: lw.Row[lw.f32],
        packed: lw.Row[lw.f64],
        stacks: lw.i32,
        bins: lw.i32,
        residuals: lw.i32,
        margin: lw.i32,
        frequencies: lw.i32,
    ) -> tuple[lw.f64, lw.f64, lw.i32]:
        level, most, place, bad = lw.f64(-1e300), lw.f64(0.0), 0, False
        mean, deviation = motion[0], motion[1]
        for group in range((frequencies + (span - 1)) // span):
            first = lw.min(group * span, frequencies - span)  # the last words overlap those before
            total = lw.zeros(lw.f64, words)
            for k in range(stacks):
                u = lw.window(motion, 2 + 3 * k, 3)
                moved = shift(pixel.from_centre, u[0], u[1], u[2]) + lw.i32(
                    drifts[k * residuals + pixel.residual]
                )
                x = lw.window(
                    packed, k * bins + (margin + part_of_map.start + first + moved), reach
                )
                for j in range(words):
                    total[j] += x[j * count]
            for j in range(words):
                rest = total[j]
                bad = bad or not lw.isfinite(rest)
                for i in range(count):
                    counted = rest
                    if count > 1:
                        rest = lw.floor(rest * part)
                        counted -= rest * size
                    found = counted - mean
                    if count == 1:  # weighted: two counts may have one significance
                        found /= deviation
                    if found > level:
                        level, most, place = found, counted, first + (j * count + i)
        if bad:
            most = INFINITE
        return (most - mean) / deviation, most, place

    return best


@lw.segmentwise
def cells_of_maps(
    cell: Cell,
    part: Part,
    chosen: lw.Row[lw.f64],
    motion: lw.Row[lw.f64],
    drifts: lw.Row[lw.f32],
    f: lw.Row[lw.f64],
    weights: lw.Row[lw.f64],
    threshold: lw.f64,
    stacks: lw.i32,
    bins: lw.i32,
    residuals: lw.i32,
    margin: lw.i32,
) -> tuple[lw.f64, lw.f64]:
    """The number count and the sum of 2F of single cells, stack by stack."""
    at = lw.window(chosen, CHOSEN * cell.chosen, CHOSEN)
    centre, residual = lw.dvec3(at[0], at[1], at[2]), lw.i32(at[3])
    count, total = lw.f64(0.0), lw.f64(0.0)
    for k in range(stacks):
        u = lw.window(motion, 2 + MOTION * k, MOTION)
        moved = shift(centre, u[0], u[1], u[2]) + lw.i32(drifts[k * residuals + residual])
        value = f[k * bins + (margin + part.start + cell.frequency + moved)]
        count += lw.select(value > threshold, weights[k], 0.0)
        total += 2.0 * value
    return count, total
