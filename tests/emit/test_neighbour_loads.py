"""Loops that read neighbours: whole vectors, and a rest of any length, whose sites are like others."""

from __future__ import annotations

import numpy as np
import pytest

import lanewise as lw
from lanewise.emit.llvm import emit_llvm
from lanewise.layouts import SoA
from tests.emit.sitewise import CPU
from tests.emit.test_golden_fields import program


@lw.stencil(lw.D2Q9)
def blur(t: lw.Field[lw.f32]) -> lw.f32:
    return 0.25 * t[0] + 0.125 * (t[1] + t[2] + t[3] + t[4]) + 0.0625 * (t[5] + t[6] + t[7] + t[8])


@lw.stencil(lw.D2Q5)
def wave(t: lw.Field[lw.f64], s: lw.Field[lw.f64], rate: lw.f64) -> tuple[lw.f64, lw.f64]:
    u = t[0] + rate * (t[1] + t[2] + t[3] + t[4] - 4 * t[0])
    return u - lw.exp(-t[1] * t[2]), s[1] - s[2] + u


@lw.stencil(lw.D3Q7)
def heat3(t: lw.Field[lw.f64]) -> lw.f64:
    return t[0] + 0.1 * (t[1] + t[2] + t[3] + t[4] + t[5] + t[6] - 6 * t[0])


def after(kernel, fields, steps=1, **values):
    sites = kernel.sites(next(iter(fields.values())).shape, **fields)
    kernel.run(sites, steps, **values)
    return [np.array(kernel.field(sites, name)) for name in fields]


def rolled(t, *shifts):
    return sum(np.roll(t, shift, axes).astype("f8") for shift, axes in shifts)


LENGTHS = (3, 4, 15, 17, 18, 33, 34, 62, 65, 66, 67, 79, 97, 126, 129, 130, 131, 193, 257)


@pytest.mark.parametrize("nx", LENGTHS)
def test_rows_of_every_length_are_what_numpy_computes(nx):
    rng = np.random.default_rng(nx)
    t, s, v = rng.random((5, nx), "f4"), rng.random((5, nx)), rng.random((5, nx))
    c = t.astype("f8")
    wanted = c / 4 + rolled(c, *((d, a) for d in (-1, 1) for a in (0, 1))) / 8
    wanted += rolled(c, *(((y, x), (0, 1)) for y in (-1, 1) for x in (-1, 1))) / 16
    np.testing.assert_allclose(after(blur, {"t": t})[0], wanted, rtol=1e-6)
    u = v + 0.1 * (rolled(v, *((d, a) for d in (-1, 1) for a in (0, 1))) - 4 * v)
    right, left = np.roll(v, -1, 1), np.roll(v, 1, 1)
    found = after(wave, {"t": v, "s": s}, rate=0.1)
    np.testing.assert_allclose(found[0], u - np.exp(-right * left), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found[1], np.roll(s, -1, 1) - np.roll(s, 1, 1) + u, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("nx", LENGTHS)
def test_sites_have_the_same_bits_wherever_they_are(nx):
    """A periodic plate has no first column: of whole vectors or of the rest, sites are alike."""
    rng = np.random.default_rng(nx)
    fields = {"t": rng.random((4, nx)), "s": rng.random((4, nx))}
    at = after(wave, fields, 3, rate=0.1)
    for by in (1, 2, nx // 2):
        moved = after(wave, {n: np.roll(f, by, 1) for n, f in fields.items()}, 3, rate=0.1)
        for a, b in zip(at, moved, strict=True):
            np.testing.assert_array_equal(np.roll(a, by, 1), b)


def texts(kernel, shape):
    box = kernel.sites(shape, layout=SoA(), device="python")
    return "\n".join(emit_llvm(k, "head") for k in program(kernel, CPU, box).kernels)


def test_the_rest_reads_neighbours_of_one_row_through_another_pointer():
    """Those at odd distances: each of three columns beside the other, in every row."""
    text = texts(blur, (5, 9))
    assert text.count("= call ptr @llvm.launder.invariant.group.p0(ptr %fields_t_array)") == 1
    assert text.count("ptr %fields_t_aside,") == 6
    text = texts(heat3, (3, 5, 9))
    assert text.count("ptr %fields_t_aside,") == 2
