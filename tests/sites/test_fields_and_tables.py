"""Sites that read fields at neighbours and tables by index at once, in flows, in what writes their fields, and in
stencils.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from tests.patterns.tables import on
from tests.sites.fields import near, sums
from tests.sites.test_fields import DEVICES, start

every_device = pytest.mark.parametrize("device", DEVICES)
HOSTS = pytest.mark.parametrize("device", DEVICES[:2])
SHAPE = (4, 8)
RATES = np.array([0.1, 0.2, 0.4, 0.3], np.float32)


@lw.sitewise(lw.D2Q9)
def mixed(f: lw.populations, psi: lw.Field[lw.f32], rates: lw.Array1[lw.f32], pull: lw.f32):
    """Relaxes to the mean of its neighbours' psi, at a rate that psi of the neighbour ahead chooses."""
    density, _ = sums(f)
    mean = lw.f32(0)
    for q in lw.D2Q9:
        mean += q.weight * psi[q]
    rate = rates[lw.i32(psi[1])] * pull
    for q in lw.D2Q9:
        f[q] += rate * (q.weight * (density + mean) - f[q])


@mixed.field("psi")
def class_of(f: lw.populations, classes: lw.Array2[lw.f32]) -> lw.f32:
    density, _ = sums(f)
    row = lw.index_of(f) // classes.shape[1]
    return classes[row, lw.index_of(f) % classes.shape[1]] + lw.f32(0.25) * density


@mixed.observer
def ahead(f: lw.populations, psi: lw.Field[lw.f32], names: lw.Array1[lw.i32]) -> lw.i32:
    return names[lw.i32(psi[1])]


mixed.wall(1, "wall")


@lw.stencil(lw.D2Q9)
def paint(u: lw.Field[lw.f32], rates: lw.Array1[lw.f32], source: lw.Array2[lw.f32]) -> lw.f32:
    spread = lw.f32(0)
    for q in lw.D2Q9:
        spread += q.weight * u[q]
    here = source[lw.index_of(u) // source.shape[1], lw.index_of(u) % source.shape[1]]
    return u[0] + rates[lw.i32(u[1])] * (spread - u[0]) + here


@paint.observer
def site_of(u: lw.Field[lw.f32], names: lw.Array1[lw.i32]) -> tuple[lw.i32, lw.i32]:
    return lw.index_of(u), names[lw.i32(u[1])]


paint.wall(1, "wall")


CLASSES = np.random.default_rng(5).integers(0, 3, SHAPE).astype(np.float32)
NAMES = np.array([7, 5, 3, 1], np.int32)


def mixed_step(f: Any, pull: float) -> tuple[Any, Any]:
    """One step of `mixed` on arriving populations, periodic: what arrives next, and what `ahead` sees before it."""
    velocities, w = lw.D2Q9.velocities, np.array([q.weight for q in lw.D2Q9])[:, None, None]
    rho = f.sum(0)
    psi = CLASSES + 0.25 * rho
    mean = sum(w[q] * near(psi, velocities[q]) for q in range(9))
    chosen = near(psi, velocities[1]).astype(int)
    after = f + pull * RATES[chosen] * (w * (rho + mean) - f)
    return np.stack([np.roll(after[q], velocities[q][::-1], (0, 1)) for q in range(9)]), NAMES[chosen]


@pytest.mark.grid(every=40)
@every_device
@pytest.mark.parametrize("form", ["pull", "in-place"])
def test_a_flow_with_fields_and_tables_is_what_numpy_computes(device, form):
    bring, back = on(device)
    f, tables = start(SHAPE) * 0.3, {"rates": bring(RATES), "classes": bring(CLASSES)}
    sites = mixed.sites(SHAPE, streaming=form, device=device)
    mixed.set_populations(sites, f.astype(np.float32))
    for step in range(3):
        seen = ahead(sites, names=bring(NAMES), classes=tables["classes"], checks=step == 1)
        f, names = mixed_step(f, 0.5)
        np.testing.assert_array_equal(back(seen).reshape(SHAPE), names)
        mixed.run(sites, 1, pull=0.5, **tables, checks=step > 0)
        np.testing.assert_allclose(mixed.populations(sites), f, rtol=0, atol=3e-6)


@every_device
def test_stencils_read_tables(device):
    bring, back = on(device)
    u = np.random.default_rng(1).uniform(0.1, 3.9, SHAPE).astype(np.float32)
    source = np.random.default_rng(2).uniform(0, 0.01, SHAPE).astype(np.float32)
    sites = paint.sites(SHAPE, device=device, u=u)
    tables = {"rates": bring(RATES), "source": bring(source)}
    index, names = (back(x).reshape(SHAPE) for x in site_of(sites, names=bring(NAMES), checks=True))
    np.testing.assert_array_equal(index, np.arange(u.size).reshape(SHAPE))
    for checks in (False, True):
        ahead_of = near(u, lw.D2Q9.velocities[1]).astype(int)
        if not checks:
            np.testing.assert_array_equal(names, NAMES[ahead_of])
        spread = sum(q.weight * near(u, lw.D2Q9.velocities[q.index]) for q in lw.D2Q9)
        u = u + RATES[ahead_of] * (spread - u) + source
        paint.run(sites, 1, **tables, checks=checks)
        np.testing.assert_allclose(back(paint.field(sites, "u")), u, rtol=0, atol=1e-6)


@HOSTS
def test_walls_read_no_tables(device):
    """A wall holds zeros, and no index is computed of them."""
    kinds = np.zeros(SHAPE, np.uint8)
    kinds[1, 3:5] = 1
    source = np.full(SHAPE, 0.01, np.float32)
    sites = paint.sites(SHAPE, mask=kinds, device=device, u=1.5)
    paint.run(sites, 2, rates=RATES, source=source, checks=True)
    np.testing.assert_allclose(paint.field(sites, "u"), np.where(kinds == 1, 0, 1.52), rtol=0, atol=1e-6)


@HOSTS
def test_an_index_that_a_field_leads_outside_is_named_before_the_step(device):
    """The field is written anew before its readers are tested, and what writes it is tested before that."""
    sites = mixed.sites(SHAPE, device=device)
    mixed.set_populations(sites, (start(SHAPE) * 0.3).astype(np.float32))
    before, far = mixed.populations(sites, classes=CLASSES, rates=RATES), CLASSES.copy()
    far[2, 5] = 9
    with pytest.raises(
        lw.VerificationError, match=r"(?s)mixed.*the index is 9 in the site \(2, 4\), and 'rates' has the shape \(4,\)"
    ):
        mixed.run(sites, 1, pull=0.5, rates=RATES, classes=far, checks=True)
    with pytest.raises(lw.VerificationError, match=r"(?s)ahead.*the index is 9 in the site \(2, 4\)"):
        ahead(sites, names=NAMES, classes=far, checks=True)
    np.testing.assert_array_equal(mixed.populations(sites), before)
    with pytest.raises(lw.VerificationError, match=r"(?s)class_of.*index 0 is 4 in the site \(2, 0\)"):
        mixed.run(sites, 1, pull=0.5, rates=RATES, classes=np.zeros((4, 4), np.float32), checks=True)
    stencil = paint.sites(SHAPE, device=device, u=1.5)
    with pytest.raises(lw.VerificationError, match=r"(?s)paint.*the index is 1 in the site \(0, 0\)"):
        paint(stencil, rates=RATES[:1], source=np.zeros(SHAPE, np.float32), checks=True)
    assert (paint.field(stencil, "u") == 1.5).all()


def test_tables_of_fields_are_checked():
    both = np.eye(*SHAPE, dtype=np.uint8)
    sites = mixed.sites(SHAPE)
    with pytest.raises(lw.ArgumentError, match="mixed needs classes; its parameters are pull, rates, classes"):
        mixed(sites, pull=0.5, rates=RATES)
    with pytest.raises(lw.ArgumentError, match="wet has none"):
        wet.run(wet.sites(SHAPE), 1, checks=True)
    with pytest.raises(
        lw.ArgumentError, match=r"'psi' is Field\[f32\] in one function of mixed_up, and f32 in another"
    ):
        mixed_up(mixed_up.sites(SHAPE, mask=both), psi=0.5)
    with pytest.raises(lw.ArgumentError, match=r"'t' is Array1\[f32\] in one function of twice, and f32 in another"):
        twice(twice.sites(SHAPE, mask=both), t=RATES)


@lw.stencil(lw.D2Q9)
def wet(u: lw.Field[lw.f32]) -> lw.f32:
    return u[1]


@lw.sitewise(lw.D2Q9)
def mixed_up(f: lw.populations, psi: lw.Field[lw.f32]):
    f[0] = psi[1]


@mixed_up.kind(1, "other")
def other(f: lw.populations, psi: lw.f32):
    f[0] = psi


@lw.sitewise(lw.D2Q9)
def twice(f: lw.populations, t: lw.Array1[lw.f32]):
    f[0] = t[0]


@twice.kind(1, "single")
def single(f: lw.populations, t: lw.f32):
    f[0] = t
