"""One comparison for all devices, layouts, streaming forms and types of storage: `lw.sitewise` against the
reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lanewise as lw
from lanewise.layouts import Layout
from lanewise.patterns.sitewise.balance import wall_balance
from lanewise.patterns.sitewise.kinds import read_edges
from tests.lbm.boxes import LID, WALL, Box
from tests.lbm.kernels import Pair, colliding, exact, moments_of
from tests.lbm.reference import Reference, Wall

Array = NDArray[Any]
NUMPY = {"f16": np.float16, "f32": np.float32, "f64": np.float64}


@dataclass(frozen=True)
class Way:
    """How sites are stored and streamed, and where."""

    device: str
    streaming: str = "pull"
    layout: Layout | None = None
    storage: str = "f32"
    real: str = "f32"
    plan: Any = None

    @property
    def forces(self) -> tuple[tuple[str, ...], ...]:
        """Walls to measure forces on: each set is another kernel, which takes long to compile for a CPU."""
        return (("wall", "lid"),) if self.device == "cpu" else (("wall",), ("lid",), ("wall", "lid"))

    def __str__(self) -> str:
        plan = "" if self.plan is None else f"-{self.plan}"
        return f"{self.device}-{self.streaming}-{self.layout or 'default'}-{self.storage}-{self.real}{plan}"


def make_sites(pair: Pair, box: Box, way: Way) -> Any:
    return pair.flow.sites(
        box.shape, mask=box.mask, edges=dict(box.edges), storage=way.storage, streaming=way.streaming, layout=way.layout,
        device=way.device,
    )  # fmt: skip


def make_reference(pair: Pair, box: Box, way: Way, values: Mapping[str, Any]) -> Reference:
    """In float64, but rounded like the storage each time that populations depart."""
    walls = {WALL: Wall("wall"), LID: Wall("lid", values["lid_velocity"])}
    kinds = {**pair.twins(values), **walls}
    return Reference(box.lattice, box.shape, box.mask, box.edges, kinds, storage=NUMPY[way.storage])


def motion_of(pair: Pair, box: Box) -> dict[str, Any]:
    """A velocity of the lid that sites accept: along slip faces, and none where a closed box would lose its mass."""
    given = pair.values["lid_velocity"]
    slips = ["slip" in ((e,) if isinstance(e, str) else e) for e in (box.edges.get(a, "") for a in box.axes)]
    velocity = tuple(0.0 if slip else u for u, slip in zip(given, slips, strict=True))
    walls = {"wall": WALL, "lid": LID}
    edges = read_edges(dict(box.edges), box.lattice.dimension, walls)
    balance = wall_balance(box.lattice, box.mask.astype(np.uint8), edges, frozenset(walls.values()), {LID: velocity})
    refused = balance.refusal({LID: velocity}, {LID: "lid"}) is not None
    return {"lid_velocity": tuple(0.0 for _ in velocity) if refused else velocity}


def run_both(pair: Pair, box: Box, way: Way, begin: Array, steps: int, **values: Any) -> tuple[Array, Reference, Any]:
    """The populations that arrive after some steps, zero at walls, found; the reference then; the sites."""
    values = {**pair.values, **values}
    reference = make_reference(pair, box, way, values)
    reference.f = np.where(reference.fluid, begin, 0.0).astype(NUMPY[way.storage]).astype(np.float64)
    reference.run(steps)
    sites = make_sites(pair, box, way)
    pair.flow.set_populations(sites, begin)
    pair.flow.run(sites, steps, plan=way.plan, **values)
    return pair.flow.populations(sites, lid_velocity=values["lid_velocity"]), reference, sites


def check_exact(box: Box, way: Way, steps: int, seed: int = 0) -> None:
    """Integers arrive where they should: kinds that permute and count, walls that move by integers."""
    pair = exact(box.lattice, way.real)
    begin = np.random.default_rng(seed).integers(0, 40, (len(box.lattice), *box.shape)).astype(NUMPY[way.real])
    lid = motion_of(pair, box)
    found, reference, sites = run_both(pair, box, way, begin, steps, **lid)
    same_populations(found, reference, 1e-3, f"{way} {box}")
    assert sites.step == steps
    for names in way.forces:
        force = pair.flow.force(sites, names, **lid)
        np.testing.assert_allclose(force, reference.force(names), rtol=1e-5, atol=1e-2, err_msg=f"{names} {way} {box}")


def same_populations(found: Array, reference: Reference, tolerance: float, message: str) -> None:
    """Populations of all sites that are no walls, and zeros in walls."""
    inside = reference.fluid
    np.testing.assert_allclose(found[:, inside], reference.f[:, inside], rtol=0, atol=tolerance, err_msg=message)
    assert not found[:, ~inside].any(), f"populations of walls are given as zeros: {message}"


TOLERANCE = {"f16": 2e-3, "f32": 2e-6, "f64": 1e-13}
"""Of populations, which are below 1: errors of storage and arithmetic after a few steps."""


def check_colliding(box: Box, way: Way, steps: int, seed: int = 0) -> None:
    """BGK of deviations, an inlet, moving walls: populations, observed moments and forces."""
    pair = colliding(box.lattice, way.real)
    w = np.array([float(w) for w in box.lattice.weights]).reshape(-1, *[1] * len(box.shape))
    begin = (0.2 * w * np.random.default_rng(seed).uniform(-1, 1, (len(w), *box.shape))).astype(NUMPY[way.real])
    lid = motion_of(pair, box)
    found, reference, sites = run_both(pair, box, way, begin, steps, **lid)
    tolerance = TOLERANCE[way.storage] if way.real == way.storage else max(TOLERANCE[way.storage], TOLERANCE[way.real])
    same_populations(found, reference, tolerance, f"{way} {box}")
    density, momentum = (_host(a) for a in pair.flow.observer(moments_of(box.lattice, way.real))(sites, **lid))
    rho, j = reference.moments(weights=True)
    inside = reference.fluid.ravel()
    np.testing.assert_allclose(density[inside], rho.ravel()[inside], rtol=0, atol=len(w) * tolerance)
    np.testing.assert_allclose(momentum[inside], j.reshape(len(j), -1).T[inside], rtol=0, atol=len(w) * tolerance)
    assert not density[~inside].any()
    assert not momentum[~inside].any()
    for names in way.forces:
        force = pair.flow.force(sites, names, weights=True, **lid)
        np.testing.assert_allclose(
            force, reference.force(names, weights=True), rtol=0, atol=len(w) * found[0].size * tolerance
        )


def with_every_kind(box: Box, pair: Pair, seed: int) -> Box:
    """The same box with a mask in which every kind occurs about as often, and kind 0 more often."""
    kinds = [*pair.kinds, WALL, LID]
    mask = np.random.default_rng(seed).choice([0] * len(kinds) + kinds, box.shape).astype(np.int32)
    mask.ravel()[: len(kinds)] = kinds[: mask.size]
    return replace(box, mask=mask)


def _host(array: Any) -> Array:
    return array.get() if hasattr(array, "get") else np.asarray(array)


__all__ = ["Way", "check_colliding", "check_exact", "lw", "with_every_kind"]
