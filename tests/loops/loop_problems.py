"""Small problems of all patterns: a step as plain calls, and the same as a loop of lw.steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import lanewise as lw

DT = 0.03125


class Grain(lw.Record):
    position: lw.vec2
    velocity: lw.vec2
    mass: lw.f32


class Cluster(lw.Record):
    weight: lw.f32


@lw.pairwise
def attract(target: Grain, source: Grain, softening2: lw.f32) -> lw.vec2:
    d = source.position - target.position
    return source.mass * d * lw.rsqrt(lw.dot(d, d) + softening2) ** 3


@lw.pairwise
def press(target: Grain, source: Grain, k: lw.f32) -> lw.vec2:
    d = source.position - target.position
    d -= lw.floor(d + lw.vec2(0.5, 0.5))
    r = lw.length(d)
    return lw.select(r > 0, -k * (0.1 - r) / lw.max(r, 1e-6) * d, lw.vec2(0, 0))


@lw.pairwise
def push(target: Grain, source: Grain, k: lw.f32) -> lw.vec2:
    d = source.position - target.position
    r = lw.length(d)
    return lw.select(r > 0, -k * (0.1 - r) / lw.max(r, 1e-6) * d, lw.vec2(0, 0))


@lw.elementwise
def move(grain: Grain, force: lw.vec2, dt: lw.f32, shake: lw.f32):
    grain.velocity += dt * force + lw.vec2(shake, 0)
    grain.position += dt * grain.velocity
    grain.position -= lw.floor(grain.position)


@lw.elementwise
def drift(grain: Grain, force: lw.vec2, dt: lw.f32, spread: lw.f32):
    grain.velocity += dt * force
    grain.position = spread * (grain.position + dt * grain.velocity)


@lw.elementwise
def speed(grain: Grain) -> lw.f32:
    return lw.length(grain.velocity)


@lw.elementwise
def deposit(grain: Grain, unit: lw.f32, density: lw.Array1[lw.f32]):
    lw.scatter_add(density, lw.min(lw.i32(8 * grain.position.x), 7), unit * grain.mass)


@lw.segmentwise
def gather(cluster: Cluster, grain: Grain, power: lw.f32) -> lw.vec2:
    return cluster.weight * power * grain.velocity


@lw.elementwise
def settle(cluster: Cluster, all_of_it: lw.vec2, rate: lw.f32):
    cluster.weight += rate * (lw.length(all_of_it) - cluster.weight)


@lw.threadwise
def spread(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32], rate: lw.f32):
    h, w = a.shape
    if y > 0 and x > 0 and y < h - 1 and x < w - 1:
        around = a[y - 1, x] + a[y + 1, x] + a[y, x - 1] + a[y, x + 1]
        b[y, x] = a[y, x] + rate * (around - 4 * a[y, x])


@lw.threadwise
def amount(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], unit: lw.f32) -> lw.f32:
    return unit * a[y, x]


@lw.sitewise(lw.D2Q9)
def flow(f: lw.populations, omega: lw.f32):
    mean = lw.f32(0)
    for q in lw.D2Q9:
        mean += f[q]
    for q in lw.D2Q9:
        f[q] += omega * (q.weight * mean - f[q])


@lw.stencil(lw.D2Q5)
def heat(t: lw.Field[lw.f32], rate: lw.f32) -> lw.f32:
    return t[0] + rate * (t[1] + t[2] + t[3] + t[4] - 4 * t[0])


def grains(count: int, device: str = "cpu", seed: int = 0) -> Any:
    random = np.random.default_rng(seed)
    return Grain.array(
        position=random.random((count, 2), np.float32),
        velocity=random.random((count, 2), np.float32) - np.float32(0.5),
        mass=random.random(count, np.float32),
        device=device,
    )


@dataclass
class Problem:
    """state: what is compared. step: step n as plain calls. loop: the same steps."""

    state: Callable[[], list[Any]]
    step: Callable[[int], None]
    loop: Callable[..., Any]


def looped(calls: Any, **fixed: Any) -> Callable[..., Any]:
    """What makes a loop of these calls."""

    def make(**named: Any) -> Any:
        return lw.steps(calls, **fixed, **named)

    return make


def shake(n: int) -> float:
    return 0.01 * math.sin(0.7 * n)


def host(array: Any) -> Any:
    return array.get() if hasattr(array, "get") else np.array(array)


def of(bodies: Any) -> list[Any]:
    return [host(bodies.position), host(bodies.velocity)]


def pairs(device: str) -> Problem:
    bodies = grains(40, device)
    force = attract.bind(bodies, bodies, 0.01)
    force()
    kick = move.bind(bodies, force.results[0], DT, 0.0)

    def step(n: int) -> None:
        move(bodies, force.results[0], DT, 0.0)
        attract(bodies, bodies, 0.01, out=force.results[0])

    return Problem(lambda: of(bodies), step, looped([kick, force]))


def by_step(device: str) -> Problem:
    bodies = grains(40, device)
    force = attract.bind(bodies, bodies, lw.by_step(lambda n: 0.01 + 0.001 * n))
    kick = move.bind(bodies, force.results[0], DT, shake=lw.by_step(shake))

    def step(n: int) -> None:
        attract(bodies, bodies, 0.01 + 0.001 * n, out=force.results[0])
        move(bodies, force.results[0], DT, shake(n))

    return Problem(lambda: of(bodies), step, looped([force, kick]))


def searched(kernel: Any, search: Any, device: str, *, walls: bool, count: int = 300) -> Problem:
    bodies = grains(count, device)
    over = kernel.using(search)
    force = over.bind(bodies, bodies, 5.0)
    if walls:
        kick = move.bind(bodies, force.results[0], DT, 0.0)
    else:
        kick = drift.bind(bodies, force.results[0], DT, 1.03125)

    def step(n: int) -> None:
        over(bodies, bodies, 5.0, out=force.results[0])
        if walls:
            move(bodies, force.results[0], DT, 0.0)
        else:
            drift(bodies, force.results[0], DT, 1.03125)

    return Problem(lambda: of(bodies), step, looped([force, kick]))


def grid(device: str) -> Problem:
    search = lw.StaticGrid(radius=0.1, world=lw.Periodic((1, 1)))
    return searched(press, search, device, walls=True)


def open_grid(device: str) -> Problem:
    return searched(push, lw.StaticGrid(radius=0.1), device, walls=False)


def chosen(device: str) -> Problem:
    return searched(push, lw.Neighbors(radius=0.1), device, walls=False, count=700)


def searched_by_step(device: str) -> Problem:
    bodies = grains(300, device)
    over = push.using(lw.StaticGrid(radius=0.1))
    force = over.bind(bodies, bodies, lw.by_step(lambda n: 5.0 + n))
    kick = drift.bind(bodies, force.results[0], DT, 1.03125)

    def step(n: int) -> None:
        over(bodies, bodies, 5.0 + n, out=force.results[0])
        drift(bodies, force.results[0], DT, 1.03125)

    return Problem(lambda: of(bodies), step, looped([force, kick]))


def segments(device: str) -> Problem:
    bodies = grains(60, device)
    clusters = Cluster.array(weight=np.ones(4, np.float32), device=device)
    ragged = lw.ragged(bodies, counts=np.array([10, 0, 30, 20]), device=device)
    result = gather.bind(clusters, ragged, lw.by_step(lambda n: 1.0 + 0.125 * n))
    sums = result.results[0]
    rows = [sums.reshape(4, -1, 2)[:, k].copy() for k in range(1)]

    def copy() -> None:
        rows[0][:] = sums.reshape(4, -1, 2)[:, 2]

    settled = settle.bind(clusters, rows[0], 0.25)

    def step(n: int) -> None:
        gather(clusters, ragged, 1.0 + 0.125 * n, out=sums)
        copy()
        settle(clusters, rows[0], 0.25)

    return Problem(
        lambda: [host(clusters.weight), host(sums)], step,
        looped([result, copy, settled]),
    )  # fmt: skip


def threads(device: str) -> Problem:
    module = np if device == "cpu" else __import__("cupy")
    a = module.asarray(np.random.default_rng(1).random((20, 30), np.float32))
    b, total = a.copy(), module.zeros(1)
    there, back = spread.bind(a, b, 0.2, grid=a.shape), spread.bind(b, a, 0.2, grid=a.shape)
    both = amount.bind(a, lw.by_step(lambda n: float(n)), grid=a.shape, out=total)

    def step(n: int) -> None:
        if n % 2:
            spread(b, a, 0.2, grid=a.shape)
        else:
            spread(a, b, 0.2, grid=a.shape)
        if n % 3 == 1:
            amount(a, float(n), grid=a.shape, out=total)

    summed = lw.every(3, both, at=1)
    return Problem(
        lambda: [host(a), host(b), host(total)], step,
        looped([[there, summed], [back, summed]], cycle=2),
    )  # fmt: skip


def scatters(device: str) -> Problem:
    bodies = grains(40, device)
    module = np if device == "cpu" else __import__("cupy")
    density = module.zeros(8, np.float32)
    put = deposit.bind(bodies, lw.by_step(lambda n: 0.1 * n), density)
    kick = move.bind(bodies, module.zeros((40, 2), np.float32), DT, 0.01)

    def step(n: int) -> None:
        deposit(bodies, 0.1 * n, density)
        move(bodies, kick_force, DT, 0.01)

    kick_force = module.zeros((40, 2), np.float32)
    return Problem(lambda: [*of(bodies), host(density)], step, looped([put, kick]))


def gradients(device: str) -> Problem:
    bodies = grains(40, device)
    energy = speed.gradient("velocity")
    slope = energy.bind(bodies)
    kick = move.bind(bodies, slope.results[0], -DT, 0.0)

    def step(n: int) -> None:
        slope.results[0][:] = energy(bodies)
        move(bodies, slope.results[0], -DT, 0.0)

    return Problem(lambda: of(bodies), step, looped([slope, kick]))


def full_of(streaming: str, device: str) -> Any:
    sites = flow.sites((6, 8), streaming=streaming, device=device)
    flow.set_populations(sites, np.random.default_rng(0).random((9, 6, 8), np.float32))
    return sites


def sites(device: str, streaming: str = "pull") -> Problem:
    filled = full_of(streaming, device)
    stepper = flow.stepper(filled, omega=0.5)
    bodies = grains(8, device)
    kick = move.bind(bodies, bodies.velocity.copy(), DT, 0.0)
    force = bodies.velocity.copy()

    def step(n: int) -> None:
        if n % 3 == 0:
            flow(filled, omega=0.5)
        move(bodies, force, DT, 0.0)

    return Problem(
        lambda: [host(flow.populations(filled)), *of(bodies), np.array(filled.step)], step,
        looped([lw.every(3, stepper), kick]),
    )  # fmt: skip


def sites_in_place(device: str) -> Problem:
    return sites(device, "in-place")


def coupled(device: str) -> Problem:
    filled, plate = full_of("pull", device), heat.sites((6, 8), t=np.eye(6, 8), device=device)
    both = lw.couple(flow.stepper(filled, omega=0.5), heat.stepper(plate, rate=0.125))

    def step(n: int) -> None:
        flow(filled, omega=0.5)
        heat(plate, rate=0.125)
        if n % 2 == 1:
            heat(plate, rate=0.25)

    often = lw.every(2, heat.stepper(plate, rate=0.25), at=1)
    return Problem(
        lambda: [host(flow.populations(filled)), host(heat.field(plate, "t"))], step,
        looped([both, often]),
    )  # fmt: skip


def functions(device: str) -> Problem:
    bodies = grains(40, device)
    force = attract.bind(bodies, bodies, 0.01)
    kick = move.bind(bodies, force.results[0], DT, 0.0)

    def halve() -> None:
        bodies.velocity *= np.float32(0.5)

    def step(n: int) -> None:
        attract(bodies, bodies, 0.01, out=force.results[0])
        if n % 40 == 3:
            halve()
        move(bodies, force.results[0], DT, 0.0)

    calls = [force, lw.every(40, halve, at=3), kick]
    return Problem(lambda: of(bodies), step, looped(calls))


PROBLEMS: dict[str, Callable[[str], Problem]] = {
    f.__name__: f
    for f in (
        pairs, by_step, grid, open_grid, chosen, searched_by_step, segments, threads, scatters,
        gradients, sites, sites_in_place, coupled, functions,
    )
}  # fmt: skip
