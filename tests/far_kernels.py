"""Pair functions whose far fields are derived, as a user writes them."""

from __future__ import annotations

import lanewise as lw


@lw.record
class Star:
    position: lw.dvec3
    mass: lw.f64
    softening: lw.f64


@lw.record
class Vortex:
    position: lw.dvec3
    strength: lw.dvec3


@lw.record
class Wire:
    position: lw.dvec2
    charge: lw.f64
    alive: lw.bool
    rank: lw.i32


@lw.pairwise
def newton(target: Star, source: Star) -> lw.dvec3:
    if lw.same(target, source):
        return lw.dvec3(0.0)
    d = source.position - target.position
    r2 = lw.dot(d, d)
    return source.mass / (r2 * lw.sqrt(r2)) * d


@lw.pairwise
def plummer(target: Star, source: Star, softening2: lw.f64) -> lw.dvec3:
    d = source.position - target.position
    inv = lw.rsqrt(lw.dot(d, d) + softening2)
    return source.mass * inv**3 * d


@lw.pairwise
def potential(target: Star, source: Star) -> lw.f64:
    d = source.position - target.position
    return 0.0 if lw.same(target, source) else -source.mass * lw.rsqrt(lw.dot(d, d))


@lw.pairwise
def yukawa(target: Star, source: Star, kappa: lw.f64) -> lw.dvec3:
    """The force of exp(-kappa r) / r."""
    d = source.position - target.position
    r = lw.length(d)
    return source.mass * lw.exp(-kappa * r) * (1.0 + kappa * r) / (r * r * r) * d


@lw.pairwise
def logarithmic(target: Wire, source: Wire) -> lw.f64:
    d = source.position - target.position
    return target.charge * source.charge * lw.log(lw.dot(d, d)) * 0.5


@lw.pairwise
def spline(target: Star, source: Star, h: lw.f64) -> lw.dvec3:
    """Gravity softened by a cubic spline of radius h (Springel, Yoshida and White 2001)."""
    d = source.position - target.position
    r = lw.length(d)
    u = r / h
    if u >= 1.0:
        return source.mass / (r * r * r) * d
    if u >= 0.5:
        outer = 64.0 / 3.0 - 48.0 * u + 38.4 * u * u - 32.0 / 3.0 * u**3 - 1.0 / (15.0 * u**3)
        return source.mass * outer / h**3 * d
    return source.mass * (32.0 / 3.0 + u * u * (32.0 * u - 38.4)) / h**3 * d


@lw.pairwise
def stokeslet(target: Vortex, source: Vortex, softening2: lw.f64) -> lw.dvec3:
    """A regularised Stokeslet (Cortez, Fauci and Medovikov 2005)."""
    d = source.position - target.position
    inv = lw.rsqrt(lw.dot(d, d) + softening2)
    near = (lw.dot(d, d) + 2.0 * softening2) * source.strength
    return (near + lw.dot(source.strength, d) * d) * inv**3


@lw.pairwise
def biot_savart(target: Vortex, source: Vortex) -> lw.dvec3:
    d = source.position - target.position
    inv = lw.rsqrt(lw.dot(d, d))
    return lw.cross(source.strength, d) * inv**3


@lw.pairwise
def dipole(target: Vortex, source: Vortex) -> lw.f64:
    d = source.position - target.position
    return lw.dot(source.strength, d) * lw.rsqrt(lw.dot(d, d)) ** 3


@lw.pairwise
def number_within(target: Star, source: Star, radius: lw.f64) -> lw.f64:
    d = source.position - target.position
    return 1.0 if lw.dot(d, d) < radius * radius else 0.0


@lw.pairwise
def dispersion(target: Star, source: Star) -> lw.dvec3:
    """The attraction of the potential -r^-6."""
    d = source.position - target.position
    return 6.0 / lw.dot(d, d) ** 4 * d


@lw.pairwise
def moving(target: Vortex, source: Vortex) -> lw.f64:
    """A field of the target as a factor of each component."""
    d = source.position - target.position
    return lw.dot(target.strength, d) * source.strength.x * lw.exp(-0.01 * lw.dot(d, d))


@lw.pairwise
def adaptive(target: Star, source: Star) -> lw.dvec3:
    """The softening of the target: linear in the sources, and not radial."""
    d = source.position - target.position
    inv = lw.rsqrt(lw.dot(d, d) + target.softening**2)
    return source.mass * inv**3 * d


@lw.pairwise
def placed(target: Star, source: Star) -> lw.f64:
    """Depends on where the source is, not on the difference alone."""
    return source.mass * source.position.x * lw.exp(-target.position.x)


RADIAL = (
    newton,
    plummer,
    potential,
    yukawa,
    logarithmic,
    spline,
    stokeslet,
    biot_savart,
    dipole,
    number_within,
    dispersion,
    moving,
)
WITH_PROXIES = (adaptive, placed)


# ---------------------------------------------------------------- in float32


@lw.record
class Star32:
    position: lw.vec3
    mass: lw.f32


@lw.pairwise
def newton32(target: Star32, source: Star32) -> lw.vec3:
    d = source.position - target.position
    inv = lw.rsqrt(lw.dot(d, d))
    return source.mass * inv**3 * d


@lw.pairwise
def plummer32(target: Star32, source: Star32, softening2: lw.f32) -> lw.vec3:
    d = source.position - target.position
    inv = lw.rsqrt(lw.dot(d, d) + softening2)
    return source.mass * inv**3 * d


@lw.pairwise
def yukawa32(target: Star32, source: Star32, kappa: lw.f32) -> lw.vec3:
    d = source.position - target.position
    r = lw.length(d)
    return source.mass * lw.exp(-kappa * r) * (1.0 + kappa * r) / (r * r * r) * d
