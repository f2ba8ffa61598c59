"""The kernels of the corpus, as a user writes them."""

from __future__ import annotations

import lanewise as lw

# ---------------------------------------------------------------- records


@lw.record
class Body:
    position: lw.vec3
    mass: lw.f32
    velocity: lw.vec3


@lw.record
class DBody:
    position: lw.dvec3
    mass: lw.f64
    velocity: lw.dvec3


@lw.record
class MBody:
    """Mixed precision: where bodies are takes float64, what they do to each other float32."""

    position: lw.dvec3
    mass: lw.f32
    velocity: lw.vec3


@lw.record
class Charge:
    charge: lw.f32
    position: lw.vec2
    rank: lw.i32


@lw.record
class Mixed:
    """Every scalar type, in an order that needs padding."""

    alive: lw.bool
    key: lw.u32
    stamp: lw.i64
    weight: lw.f64
    cell: lw.ivec3
    flags: lw.u32
    half: lw.f32


# ---------------------------------------------------------------- pairs


@lw.pairwise
def gravity(target: Body, source: Body, softening2: lw.f32) -> lw.vec3:
    d = source.position - target.position
    inv = lw.rsqrt(lw.dot(d, d) + softening2)
    return source.mass * inv**3 * d


@lw.pairwise
def gravity_f64(target: DBody, source: DBody, softening2: lw.f64) -> lw.dvec3:
    d = source.position - target.position
    inv = lw.rsqrt(lw.dot(d, d) + softening2)
    return source.mass * inv**3 * d


@lw.pairwise
def gravity_mixed(target: MBody, source: MBody, softening2: lw.f32) -> lw.vec3:
    d = lw.vec3(source.position - target.position)
    inv = lw.rsqrt(lw.dot(d, d) + softening2)
    return source.mass * inv**3 * d


@lw.pairwise
def gravity_potential(target: Body, source: Body, softening2: lw.f32) -> tuple[lw.vec3, lw.f32]:
    d = source.position - target.position
    inv = lw.rsqrt(lw.dot(d, d) + softening2)
    potential = 0.0 if lw.same(target, source) else -source.mass * inv
    return source.mass * inv**3 * d, potential


@lw.pairwise
def lennard_jones(target: Body, source: Body, sigma2: lw.f32, cutoff2: lw.f32) -> lw.vec3:
    d = source.position - target.position
    r2 = lw.dot(d, d)
    if lw.same(target, source) or r2 >= cutoff2:
        return lw.vec3(0.0)
    s2 = sigma2 / (r2 + 0.25)
    s6 = s2 * s2 * s2
    smooth = (cutoff2 - r2) ** 2  # nothing jumps where rounding decides on which side of the cut-off a pair is
    return -24.0 * (2.0 * s6 * s6 - s6) * smooth / (r2 + 0.25) * d


@lw.pairwise
def yukawa(target: Charge, source: Charge, length: lw.f32) -> lw.f32:
    d = source.position - target.position
    r = lw.sqrt(lw.dot(d, d) + 0.01)
    energy = target.charge * source.charge * lw.exp(-r / length) / r
    return lw.select(lw.same(target, source), 0.0, energy)


@lw.pairwise
def count_ranks(target: Charge, source: Charge) -> tuple[lw.i32, lw.u32, lw.i64]:
    """Whole-number sums: how many sources rank below, how many tie, and a set of pairs as bits."""
    below = lw.i32(source.rank < target.rank)
    tie = source.rank == target.rank and not lw.same(target, source)
    return below, lw.u32(tie), lw.i64(1) << lw.i64(target.rank * 8 + source.rank)


@lw.pairwise
def order(target: Charge, source: Charge) -> tuple[lw.i32, lw.f64]:
    """Reads nothing of either record."""
    return lw.i32(not lw.same(target, source)), lw.f64(1.0)


@lw.function
def weight_of(number):
    if number == 0:
        return 1.0
    weight = 1.0
    for _ in range(number):
        weight *= 0.5
    return weight


@lw.pairwise
def ranked_distance(target: Charge, source: Charge, scale: lw.f32) -> lw.f32:
    """A local array, loops, and a helper that returns early."""
    bins = lw.zeros(lw.f32, 4)
    for i in range(4):
        bins[i] = weight_of(i)
    d = source.position - target.position
    return bins[lw.min(lw.abs(target.rank - source.rank), 3)] * lw.length(d) * scale


# ---------------------------------------------------------------- elements


@lw.elementwise
def kick_drift(body: Body, acceleration: lw.vec3, dt: lw.f32):
    body.velocity += acceleration * dt
    body.position += body.velocity * dt


@lw.elementwise
def speed(body: Body) -> tuple[lw.f32, lw.f32]:
    v2 = lw.dot(body.velocity, body.velocity)
    return lw.sqrt(v2), 0.5 * body.mass * v2


@lw.elementwise
def grow(item: Mixed, limit: lw.i64):
    """Writes some leaves of every type, the others stay."""
    item.key = item.key * lw.u32(1664525) + lw.u32(1013904223)
    item.alive = item.alive and item.stamp % 3 != 0
    if item.alive:
        item.stamp = item.stamp // 7 - limit
    item.weight = item.weight * 2.0 + item.half
    item.cell = lw.ivec3(item.cell.x // 3, item.cell.y % 7, -item.cell.z)
    item.flags = item.flags ^ (item.key >> 3)


@lw.elementwise
def saxpy_norm(a: lw.f32, x: lw.vec3, y: lw.vec3) -> tuple[lw.f32, lw.bool]:
    """Plain arrays only, to be reduced by lw.sum and lw.max."""
    return lw.length(a * x + y), x.x > y.x


@lw.elementwise
def march(x: lw.i64, steps: lw.i32) -> lw.i32:
    """A while loop with break: the length of a Collatz sequence."""
    n = 0
    value = x
    while value > 1:
        if n >= steps:
            break
        value = value // 2 if value % 2 == 0 else 3 * value + 1
        n += 1
    return n


@lw.elementwise
def histogram(x: lw.f32) -> lw.f32:
    """A local array that is counted in, and loops with continue."""
    counts = lw.zeros(lw.i32, 4)
    for n in range(1, 9):
        scaled = x * lw.f32(n) % 1.0
        counts[lw.clamp(lw.i32(scaled * 4.0), 0, 3)] += 1
    most = 0
    for n in range(4):
        if counts[n] <= most:
            continue
        most = counts[n]
    return lw.f32(most) + 0.125 * lw.f32(counts[0])
