"""What follows demodulation, as kernels: F of amplitudes, and number counts and summed 2F of F.

Both are segmentwise. F has a cell for each stack and template; writing stacks first turns the amplitudes of a template, stack after stack,
into rows of frequencies, one a stack, which is what Hough maps read. A pixel of a map is a cell whose items are the stacks: each
gives what its row has at the frequency of the cell, moved by the shift of the pixel and by the drift of the residual spin-down
(Krishnan et al., Phys. Rev. D 70, 082001 (2004), with the shifts of `hough.pixel_offsets` and `hough.drift_offsets`).
"""

from __future__ import annotations

import lanewise as lw


@lw.record
class StackMatrix:
    """Sums of a^2, b^2 and a b of a stack, its number, and whether the matrix can be inverted (else F is the 2 expected in noise)."""

    a: lw.f64
    b: lw.f64
    c: lw.f64
    number: lw.i32
    usable: lw.i32


@lw.record
class Place:
    """A template by its number; its amplitudes are the row."""

    number: lw.i32


@lw.record
class Pixel:
    """A cell of a map: the bin of the centre's F, the pixel and the residual spin-down by their numbers."""

    frequency: lw.i32
    pixel: lw.i32
    residual: lw.i32


@lw.record
class Stack:
    """What a peak of a stack counts."""

    weight: lw.f64


@lw.segmentwise
def f_of_amplitudes(stack: StackMatrix, place: Place, amplitudes: lw.Row[lw.vec4]) -> lw.f64:
    """F = 2F / 2 in float64 of a template's (Fa, Fb) in each stack: (B |Fa|^2 + A |Fb|^2 - 2 C Re(Fa conj Fb)) / (A B - C^2)."""
    x = amplitudes[stack.number]
    fa_re, fa_im, fb_re, fb_im = lw.f64(x.x), lw.f64(x.y), lw.f64(x.z), lw.f64(x.w)
    first, second = fa_re * fa_re + fa_im * fa_im, fb_re * fb_re + fb_im * fb_im
    mixed = fa_re * fb_re + fa_im * fb_im
    value = (stack.b * first + stack.a * second - 2.0 * stack.c * mixed) / (stack.a * stack.b - stack.c * stack.c)
    return lw.select(stack.usable != 0, value, 2.0)


@lw.segmentwise
def hough(
    cell: Pixel, stack: Stack, shifts: lw.Row[lw.f32], drifts: lw.Row[lw.f32], f: lw.Row[lw.f64], threshold: lw.f64
) -> tuple[lw.f64, lw.f64]:
    """The weighted number count, and the sum of 2F, of every cell. shifts: bins by pixel; drifts: bins by residual spin-down."""
    value = f[cell.frequency + lw.i32(shifts[cell.pixel]) + lw.i32(drifts[cell.residual])]
    return lw.select(value > threshold, stack.weight, 0.0), 2.0 * value
