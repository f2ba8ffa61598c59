"""Convective outflow: the same in every streaming form, invisible to a uniform flow, and letting sound out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.sims.lbm.operators import find_operator
from lanewise.support.errors import ArgumentError

EDGES: list[dict[str, Any]] = [
    {"x": ("wall", "outflow"), "y": "periodic"},
    {"x": ("outflow", "slip"), "y": ("wall", "slip")},
    {"x": ("outflow", "outflow"), "y": "slip"},
]


def make_flow(lattice: Any, precision: str = "f64") -> Any:
    flow = lw.sitewise(lattice)(find_operator("bgk").make(lattice, precision))
    flow.wall(1, "wall")
    return flow


def at_rest_but(lattice: Any, density: np.ndarray, speed: float) -> np.ndarray:
    """Deviations of the equilibrium to first order."""
    return np.array(
        [
            float(w) * (density + (1 + density) * 3 * e[0] * speed)
            for w, e in zip(lattice.weights, lattice.velocities, strict=True)
        ]
    )


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("edges", EDGES, ids=str)
@pytest.mark.parametrize("device", ["python", "cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_streaming_forms_agree(edges: dict[str, Any], device: str) -> None:
    flow = make_flow(lw.D2Q9)
    y, x = np.mgrid[0:5, 0:9]
    start = at_rest_but(lw.D2Q9, 0.05 * np.exp(-((x - 4) ** 2 + (y - 1) ** 2) / 4), 0.06)
    found = []
    for streaming in ("pull", "push", "in-place"):
        sites = flow.sites((5, 9), edges=edges, streaming=streaming, device=device)
        flow.set_populations(sites, start)
        flow.run(sites, 4, omega=1.4, outflow_speed=0.4)
        flow.run(sites, 3, omega=1.4, outflow_speed=0.4)
        found.append(flow.populations(sites))
    np.testing.assert_allclose(found[1], found[0], rtol=0, atol=1e-15)
    np.testing.assert_allclose(found[2], found[0], rtol=0, atol=1e-15)


def test_a_uniform_flow_leaves_unchanged() -> None:
    flow, lattice = make_flow(lw.D3Q19), lw.D3Q19
    sites = flow.sites((3, 3, 7), edges={"x": "outflow"}, device="cpu")
    u = 0.05
    e, w = np.array(lattice.velocities), np.array([float(x) for x in lattice.weights])
    equilibrium = w * (3 * e[:, 0] * u + 4.5 * (e[:, 0] * u) ** 2 - 1.5 * u * u)
    start = np.broadcast_to(equilibrium[:, None, None, None], (19, 3, 3, 7)).copy()
    flow.set_populations(sites, start)
    flow.run(sites, 20, omega=1.2, outflow_speed=0.1)
    np.testing.assert_allclose(flow.populations(sites), start, rtol=0, atol=1e-14)


def test_a_pulse_leaves() -> None:
    """Half of the sound of a pulse goes to the right; a wall sends it back, an outflow keeps less than a
    fifth of it.
    """
    left: dict[str, float] = {}
    for face in ("wall", "outflow"):
        flow = make_flow(lw.D2Q9)
        sites = flow.sites((3, 120), edges={"x": ("wall", face), "y": "periodic"}, device="cpu")
        x = np.arange(120)
        density = np.broadcast_to(0.01 * np.exp(-(((x - 90) / 6) ** 2)), (3, 120))
        flow.set_populations(sites, at_rest_but(lw.D2Q9, density, 0.0))
        flow.run(sites, 80, omega=1.9, outflow_speed=1.0)
        excess = flow.populations(sites).sum(axis=0)[1]
        left[face] = float(np.abs(excess[70:]).max())
    assert left["outflow"] < 0.2 * left["wall"]


def test_refusals() -> None:
    flow = make_flow(lw.D2Q9)
    with pytest.raises(ArgumentError) as error:
        flow.sites((4, 1), edges={"x": "outflow"})
    assert str(error.value) == "an outflow looks one site further in: wanted at least 2 sites along x, found 1"
    sites = flow.sites((4, 4), edges={"x": ("wall", "outflow")}, device="cpu")
    with pytest.raises(ArgumentError) as error:
        flow(sites, omega=1.0, outflow_speed=2.0)
    assert str(error.value) == "bgk: 'outflow_speed' is above 0 and at most 1, in links per step; found float 2.0"


@pytest.mark.quick("cpu-D2Q9-pull", "cpu-D3Q19-push", "cpu-D3Q27-in-place")
@pytest.mark.parametrize("streaming", ["pull", "push", "in-place"])
@pytest.mark.parametrize(
    ("device", "lattice"),
    [
        ("python", lw.D2Q9), ("cpu", lw.D2Q9), ("cpu", lw.D3Q19), ("cpu", lw.D3Q27),
        *(pytest.param("cuda", x, marks=pytest.mark.cuda) for x in (lw.D3Q19, lw.D3Q27)),
    ],
    ids=lambda x: getattr(x, "name", x),
)  # fmt: skip
def test_walls_beside_an_outflow_send_back_what_comes_to_them(lattice: Any, device: str, streaming: str) -> None:
    """Where a link of a corner crosses the open face and a wall, the wall comes first: what left towards it comes back."""

    @lw.sitewise(lattice)
    def still(f: lw.dpopulations):
        f[0] = f[0]

    still.wall(1, "wall")
    shape = (4, 5) if lattice.dimension == 2 else (3, 4, 5)
    edges: dict[str, Any] = {"x": ("outflow", "outflow"), "y": "wall"}
    if lattice.dimension == 3:
        edges["z"] = "wall"
    start = np.random.default_rng(1).random((lattice.size, *shape))
    sites = still.sites(shape, edges=edges, streaming=streaming, device=device)
    still.set_populations(sites, start)
    corners = 0
    for _ in range(2):
        before = still.populations(sites, outflow_speed=0.4)
        still.run(sites, 1, outflow_speed=0.4)
        after = still.populations(sites, outflow_speed=0.4)
        for q, e in enumerate(lattice.velocities):
            for place in np.ndindex(*shape):
                origin = [p - v for p, v in zip(place[::-1], e, strict=True)]
                outside = [not 0 <= o < n for o, n in zip(origin, shape[::-1], strict=True)]
                if any(outside[1:]):
                    assert after[q][place] == before[lattice.opposite[q]][place], f"direction {e} at {place}"
                    corners += outside[0]
    assert corners
