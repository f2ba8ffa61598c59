"""Kernels over the sites of lattices as people write them, from seeds: flows with collisions of their own, and
stencils.

The truth is a flow written down here: the function itself in Python for each site, in float64, and populations that
move along their velocities, or turn back where a wall is.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Any

import numpy as np

import lanewise as lw
from lanewise.runtime.memory import to_host
from tests.zoo.generate import FULL, SMALL, WAVE, Array

FAMILIES = ("flow", "stencil")
LATTICES = {"D2Q5": lw.D2Q5, "D2Q9": lw.D2Q9, "D3Q7": lw.D3Q7, "D3Q19": lw.D3Q19, "D3Q27": lw.D3Q27}
SHAPES = {
    2: {SMALL: (6, 7), WAVE: (40, 67), FULL: (2048, 2048)},
    3: {SMALL: (4, 3, 5), WAVE: (10, 11, 20), FULL: (160, 160, 160)},
}
STEPS = {SMALL: 3, WAVE: 1, FULL: 1}
FORMS = ("in-place", "pull", "push")
OTHER, WALL = 1, 2
"""Kinds of sites in a mask."""
TOLERANCE = 256 * float(np.finfo(np.float32).eps)


@dataclass(frozen=True, slots=True)
class SiteCase:
    """One kernel. form: of its streaming. edges: periodic, or walls by axis. masked: whether kinds differ, with walls
    among them.
    """

    seed: int
    family: str
    text: str
    lattice: lw.Lattice
    edges: dict[str, str]
    masked: bool
    form: str
    uniforms: dict[str, float]
    fields: tuple[str, ...] = ()

    def shape(self, size: str) -> tuple[int, ...]:
        return SHAPES[self.lattice.dimension][size]

    def start(self, size: str) -> Array:
        """What is there before the first step: populations near their weights, or fields about one."""
        rng, shape = np.random.default_rng(self.seed), self.shape(size)
        count = self.lattice.size if self.family == "flow" else len(self.fields)
        noise = rng.random((count, *shape), np.float32) + np.float32(0.5)
        if self.family == "stencil":
            return noise
        weights = np.array([float(q.weight) for q in self.lattice], np.float32)
        return noise * weights.reshape(-1, *(1,) * len(shape))

    def mask(self, size: str) -> Array | None:
        if not self.masked:
            return None
        rng = np.random.default_rng(self.seed + 1)
        return rng.choice([0, 0, 0, OTHER, WALL], self.shape(size)).astype(np.uint8)


def generate(seed: int) -> SiteCase:
    """The kernel of a seed."""
    rng = Random(seed)
    return {"flow": _flow, "stencil": _stencil}[FAMILIES[seed // 2 % len(FAMILIES)]](seed, rng)


def _collision(rng: Random, name: str, lattice: lw.Lattice) -> list[str]:
    axes = "xyz"[: lattice.dimension]
    rho = ["rho = 0.0", f"for q in lw.{name}:", "    rho += f[q]"]
    flux = [line for a in axes for line in (f"j{a} = 0.0", f"for q in lw.{name}:", f"    j{a} += f[q] * q.{a}")]
    along = " + ".join(f"q.{a} * j{a}" for a in axes)
    square = " + ".join(f"j{a} * j{a}" for a in axes)
    each = f"for q in lw.{name}:"
    relax = [each, f"    f[q] += omega * (q.weight * (rho + 3.0 * ({along})) - f[q])"]
    react = [each, "    f[q] += q.weight * (omega * rho * (1.0 - rho))"]
    match rng.choice(("relax", "square", "mixed", "react", "branch", "damp")):
        case "relax":
            return [*rho, *flux, *relax]
        case "square":
            return [*rho, *flux, each, f"    c = 3.0 * ({along})",
                    f"    e = q.weight * (rho + c + (0.5 * c * c - 1.5 * ({square})) / rho)", "    f[q] += omega * (e - f[q])"]  # fmt: skip
        case "mixed":
            return [f"g = lw.zeros(lw.f32, {lattice.size})", each, "    g[q.index] = f[q]", each,
                    "    f[q] = g[q.index] + 0.5 * omega * (g[q.opposite.index] - g[q.index])"]  # fmt: skip
        case "react":
            return [*rho, *react]
        case "branch":
            lines = [f"    {line}" for line in relax], [f"    {line}" for line in react]
            return [*rho, *flux, "if rho > 1.0:", *lines[0], "else:", *lines[1]]
        case _:
            return [*rho, each, "    f[q] = f[q] * lw.exp(-omega * rho) + q.weight * lw.sqrt(rho)"]


def _edges(rng: Random, lattice: lw.Lattice) -> dict[str, str]:
    return {a: rng.choice(("periodic", "periodic", "wall")) for a in "xyz"[: lattice.dimension]}


def _flow(seed: int, rng: Random) -> SiteCase:
    name = rng.choice(tuple(LATTICES))
    lattice, masked = LATTICES[name], rng.random() < 0.5
    head = "(f: lw.populations, omega: lw.f32):"
    lines = [f"@lw.sitewise(lw.{name})", f"def kernel{head}", *(f"    {s}" for s in _collision(rng, name, lattice))]
    lines += ["", "", f"@kernel.kind({OTHER}, 'other')", f"def other{head}"]
    lines += [*(f"    {s}" for s in _collision(rng, name, lattice)), "", "", f"kernel.wall({WALL}, 'wall')", ""]
    return SiteCase(seed, "flow", "\n".join(lines), lattice, _edges(rng, lattice), masked, rng.choice(FORMS),
                    {"omega": rng.choice((0.25, 0.75, 1.5))})  # fmt: skip


def _stencil(seed: int, rng: Random) -> SiteCase:
    name, fields = rng.choice(tuple(LATTICES)), ("u", "v")[: rng.choice((1, 2))]
    lattice, first = LATTICES[name], rng.randrange(1, LATTICES[name].size)
    each, own = f"for q in lw.{name}:", fields[-1]
    body, results = {
        "spread": (["s = 0.0", each, f"    s += q.weight * ({own}[q] - u[0])"], "u[0] + rate * s"),
        "extreme": (["s = u[0]", each, f"    s = lw.max(s, {own}[q])"], f"u[0] + rate * (s - {own}[0])"),
        "upwind": ([f"s = u[0] - u[{first}]", "if s > 0.0:", "    s = 0.5 * s"], "u[0] - rate * s"),
        "inverse": (["s = 0.0", each, f"    if {own}[q] > 1.0:", f"        s += 1.0 / {own}[q]"], "u[0] + rate * (s - u[0])"),
    }[rng.choice(("spread", "extreme", "upwind", "inverse"))]  # fmt: skip
    two = len(fields) == 2
    typed = ", ".join([*(f"{n}: lw.Field[lw.f32]" for n in fields), "rate: lw.f32"])
    shown = "tuple[lw.f32, lw.f32]" if two else "lw.f32"
    body = [*body, f"return {results}{', v[0] + rate * (u[0] - v[0])' if two else ''}"]
    lines = [f"@lw.stencil(lw.{name})", f"def kernel({typed}) -> {shown}:", *(f"    {s}" for s in body), ""]
    return SiteCase(seed, "stencil", "\n".join(lines), lattice, {}, False, "pull", {"rate": 0.125}, fields)


# ---------------------------------------------------------------- a call, and what it should give


def sites_of(case: SiteCase, kernel: Any, size: str, device: str = "cpu") -> Any:
    """Sites before the first step."""
    start, shape = case.start(size), case.shape(size)
    if case.family == "stencil":
        return kernel.sites(shape, device=device, **dict(zip(case.fields, start, strict=True)))
    sites = kernel.sites(shape, mask=case.mask(size), edges=case.edges, streaming=case.form, device=device)
    kernel.set_populations(sites, start)
    return sites


def found(case: SiteCase, kernel: Any, sites: Any, size: str, **how: Any) -> Array:
    """Populations or fields after the steps of a size. how: a plan."""
    kernel.run(sites, STEPS[size], **case.uniforms, **how)
    if case.family == "stencil":
        return np.array([to_host(kernel.field(sites, n)) for n in case.fields])
    return to_host(kernel.populations(sites))


def wanted(case: SiteCase, names: Any, size: str) -> Array:
    """The same in float64, by the function in Python for one site after another."""
    state = case.start(size).astype(np.float64)
    for _ in range(STEPS[size]):
        state = (_changed if case.family == "stencil" else _flowed)(case, names, size, state)
    return state


def check(case: SiteCase, names: Any, size: str, mine: Array) -> float:
    """The largest error in parts of what rounding may make; raises `AssertionError` where one is wrong."""
    told, mask = wanted(case, names, size), case.mask(size)
    open_ = np.ones(told.shape, bool) if mask is None else np.broadcast_to(mask != WALL, told.shape)
    errors = np.abs(mine.astype(np.float64) - told) / (TOLERANCE * np.maximum(1.0, np.abs(told)))
    assert np.all(errors[open_] <= 1), f"seed {case.seed}: wrong by {errors[open_].max()} roundings\n{case.text}"
    return float(errors[open_].max())


def _changed(case: SiteCase, names: Any, size: str, state: Array) -> Array:
    axes = tuple(range(len(case.shape(size))))
    near = [np.array([np.roll(x, tuple(-d for d in q.velocity[::-1]), axes) for q in case.lattice]) for x in state]
    after = np.empty_like(state)
    for place in np.ndindex(*case.shape(size)):
        after[(slice(None), *place)] = names.kernel.python(
            *(x[(slice(None), *place)] for x in near), *case.uniforms.values()
        )
    return after


def _flowed(case: SiteCase, names: Any, size: str, state: Array) -> Array:
    shape, mask = case.shape(size), case.mask(size)
    kinds = np.zeros(shape, np.uint8) if mask is None else mask
    departs, arrives = state.copy(), np.zeros_like(state)
    for place in np.ndindex(*shape):
        if kinds[place] == WALL:
            continue
        f = departs[(slice(None), *place)]  # a view, which the function changes
        (names.other if kinds[place] == OTHER else names.kernel.python)(f, *case.uniforms.values())
    closed = [case.edges[a] == "wall" for a in "xyz"[: len(shape)]][::-1]
    for q, place in product(case.lattice, np.ndindex(*shape)):
        came = tuple(p - d for p, d in zip(place, q.velocity[::-1], strict=True))
        outside = any(c and not 0 <= p < n for c, p, n in zip(closed, came, shape, strict=True))
        came = tuple(p % n for p, n in zip(came, shape, strict=True))
        back = outside or kinds[came] == WALL
        arrives[(q.index, *place)] = departs[(q.opposite.index, *place)] if back else departs[(q.index, *came)]
    return arrives
