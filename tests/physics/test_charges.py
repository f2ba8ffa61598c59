"""Charges in electric and magnetic fields, their own and given ones, as one pair function and one push: against NumPy
in float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import lanewise as lw

Floats = NDArray[np.float64]
SOFTENING2, LIGHT2, TIME = 0.01, 25.0, 0.02  # LIGHT2: the square of the speed of light
ELECTRIC, MAGNETIC = (0.3, 0.0, -0.2), (0.0, 0.5, 2.0)


class Charge(lw.Record):
    position: lw.vec3
    velocity: lw.vec3
    charge: lw.f32
    mass: lw.f32


class Charge64(lw.Record):
    position: lw.dvec3
    velocity: lw.dvec3
    charge: lw.f64
    mass: lw.f64


def kernels(record: Any, vector: Any, real: Any) -> tuple[Any, Any]:
    """Fields of moving charges (Coulomb, Biot and Savart), and Boris's push by fields."""
    given = {"target": record, "source": record, "softening2": real, "light2": real}

    def fields(target, source, softening2, light2):  # type: ignore[no-untyped-def]
        d = target.position - source.position
        electric = d * (source.charge * lw.rsqrt(lw.dot(d, d) + softening2) ** 3)
        return electric, lw.cross(source.velocity, electric) / light2

    fields.__annotations__ = {**given, "return": tuple[vector, vector]}

    def push(body, electric, magnetic, given_e, given_b, time):  # type: ignore[no-untyped-def]
        half = 0.5 * time * body.charge / body.mass
        before = body.velocity + half * (electric + given_e)
        t = half * (magnetic + given_b)
        turned = before + lw.cross(before, t)
        s = t * (2.0 / (1.0 + lw.dot(t, t)))
        body.velocity = before + lw.cross(turned, s) + half * (electric + given_e)
        body.position += body.velocity * time

    push.__annotations__ = {"body": record, "time": real} | dict.fromkeys(
        ("electric", "magnetic", "given_e", "given_b"), vector
    )
    return lw.pairwise(fields), lw.elementwise(push)


def start(n: int) -> dict[str, Floats]:
    rng = np.random.default_rng(5)
    charge = np.where(np.arange(n) % 3, 1.0, -1.0) / n
    return {
        "position": rng.normal(size=(n, 3)),
        "velocity": rng.normal(size=(n, 3)),
        "charge": charge,
        "mass": rng.uniform(1, 2, n) / n,
    }


def step_of_numpy(s: dict[str, Floats]) -> None:
    d = s["position"][:, None] - s["position"]
    pull = s["charge"][:, None] * d / ((d * d).sum(axis=2) + SOFTENING2)[..., None] ** 1.5
    electric = pull.sum(axis=1) + ELECTRIC
    magnetic = np.cross(s["velocity"], pull).sum(axis=1) / LIGHT2 + MAGNETIC
    half = (0.5 * TIME * s["charge"] / s["mass"])[:, None]
    before, t = s["velocity"] + half * electric, half * magnetic
    turned = before + np.cross(before, t)
    s["velocity"] = before + np.cross(turned, 2 * t / (1 + (t * t).sum(axis=1, keepdims=True))) + half * electric
    s["position"] = s["position"] + TIME * s["velocity"]


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
@pytest.mark.parametrize("precision", ["f32", "f64"])
def test_charges_move_as_numpy_says(precision: str, device: str) -> None:
    kinds = (Charge, lw.vec3, lw.f32) if precision == "f32" else (Charge64, lw.dvec3, lw.f64)
    fields, push = kernels(*kinds)
    now = start(203)
    bodies = kinds[0].array(**now, device=device)
    for _ in range(6):
        electric, magnetic = fields(bodies, bodies, SOFTENING2, LIGHT2)
        push(bodies, electric, magnetic, ELECTRIC, MAGNETIC, TIME)
        step_of_numpy(now)
    for name in ("position", "velocity"):
        error = np.max(abs(getattr(bodies.to("cpu"), name) - now[name])) / np.max(abs(now[name]))
        assert error < {"f32": 3e-6, "f64": 3e-15}[precision], name


def test_a_magnetic_field_alone_turns_a_charge_around_in_a_circle() -> None:
    """Its speed stays, and its radius is mass x speed over charge x field."""
    _, push = kernels(Charge64, lw.dvec3, lw.f64)
    body = Charge64.array(position=[[0.0, -2.0, 0.0]], velocity=[[2.0, 0.0, 0.0]], charge=[-1.0], mass=[3.0])
    none, steps = np.zeros((1, 3)), 400
    angle = 2 * np.pi / steps
    time = 2 * np.tan(angle / 2)  # Boris's push turns by this angle: charge x field = mass
    for _ in range(steps):
        push(body, none, none, (0.0, 0.0, 0.0), (0.0, 0.0, 3.0), time)
    np.testing.assert_allclose(body.velocity, [[2.0, 0.0, 0.0]], atol=1e-12)
    np.testing.assert_allclose(body.position, [[0.0, -2.0, 0.0]], atol=1e-11)
