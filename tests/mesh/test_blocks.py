"""Boxes that are cut along several axes have the bits of one device, whatever the grid of parts."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise as lw
from lanewise import Mesh
from lanewise.patterns.sitewise import sites
from lanewise.patterns.sitewise.blocks import LEAST_LAYERS, MOST_SLABS, Cut, best_cut, grids, least_side
from lanewise.patterns.sitewise.halo import ghost_boxes, leaves_needed
from lanewise.patterns.sitewise.site_state import held_bytes, hold_bytes
from lanewise.patterns.sitewise.streaming import FORMS
from lanewise.sims.lbm import Simulation
from lanewise.support.errors import ArgumentError
from tests.lbm.boxes import D3Q15, WALL
from tests.lbm.kernels import INLET, colliding
from tests.mesh import interpreted_gpu
from tests.mesh.test_explained_bytes import Copied, copied
from tests.mesh.test_flows import blown, channel, same, seen
from tests.mesh.test_lattices import EDGES, Case, case, coupled, density, dye, follow, heated, observer_of, two_phases

__all__ = ["copied"]
BOXES = ((27, 33), (17, 19, 25), (16, 24, 9), (9, 26, 24))
"""Which no slabs of 4, 6, 9 or 12 parts fit."""


def blocked(seed: int) -> Case:
    """A case of `test_lattices` in one of these boxes."""
    c, rng = case(seed, "cpu"), np.random.default_rng(seed)
    shape = BOXES[0] if len(c.shape) == 2 else BOXES[1 + seed % 3]
    mask = rng.choice((0, 0, 0, 0, *np.unique(c.mask)), shape) if c.mask.any() else np.zeros(shape, int)
    values = dict(c.values)
    if "omega" in values and np.ndim(values["omega"]):
        values["omega"] = rng.uniform(0.8, 1.5, shape).astype(np.float32)
    return replace(c, shape=shape, mask=mask, values=values)


def fitting(shape: tuple[int, ...], parts: tuple[int, ...]) -> list[int]:
    return [n for n in parts if best_cut(shape, n, (True,) * len(shape)) is not None]


# ---------------------------------------------------------------- how a box is cut


@st.composite
def boxes(draw: st.DrawFn) -> tuple[tuple[int, ...], int, tuple[bool, ...]]:
    axes = draw(st.integers(1, 3))
    shape = tuple(draw(st.integers(1, 60)) for _ in range(axes))
    return shape, draw(st.integers(1, 30)), tuple(draw(st.booleans()) for _ in range(axes))


def sites_at_cuts(shape: tuple[int, ...], grid: tuple[int, ...], periodic: tuple[bool, ...]) -> int:
    """Counted between neighbours."""
    part_of = np.zeros(shape, int)
    for axis, (n, parts) in enumerate(zip(shape, grid, strict=True)):
        ends = [n * p // parts for p in range(1, parts + 1)]
        at = np.searchsorted(ends, np.arange(n), side="right")
        part_of = part_of * parts + at.reshape([-1 if a == axis else 1 for a in range(len(shape))])
    count = 0
    for axis, around in enumerate(periodic):
        if grid[axis] > 1:
            differ = part_of != np.roll(part_of, 1, axis)
            count += int(np.count_nonzero(differ if around else np.delete(differ, 0, axis)))
    return count


@given(boxes())
def test_a_cut_is_the_one_that_moves_the_least(box: tuple[tuple[int, ...], int, tuple[bool, ...]]) -> None:
    shape, parts, periodic = box
    every = [g for g in np.ndindex(*(parts + 1,) * len(shape)) if prod(g) == parts]
    assert sorted(grids(parts, len(shape))) == every
    thick = [g for g in every if all(p == 1 or n // p >= LEAST_LAYERS for n, p in zip(shape, g, strict=True))]
    cut = best_cut(shape, parts, periodic)
    if not thick:
        assert cut is None
        return
    assert cut is not None
    slabs = (parts, *[1] * (len(shape) - 1))
    if parts <= MOST_SLABS and slabs in thick:
        assert cut.grid == slabs
        return
    best = min(sites_at_cuts(shape, g, periodic) for g in thick)
    assert cut.grid == max(g for g in thick if sites_at_cuts(shape, g, periodic) == best)


@given(boxes(), st.integers(1, 2))
def test_parts_have_every_site_once_and_ghosts_of_their_owners(
    box: tuple[tuple[int, ...], int, tuple[bool, ...]], depth: int
) -> None:
    shape, parts, periodic = box
    if (cut := best_cut(shape, parts, periodic)) is None:
        cut = Cut(shape, (1,) * len(shape))
    blocks = cut.blocks(depth, periodic)
    times, held = np.zeros(shape, int), []
    for b in blocks:
        times[b.place] += 1
        numbers = np.full(b.shape, -1)
        own = np.arange(prod(shape)).reshape(shape)[b.place]
        numbers[b.inner] = own
        assert b.in_box(np.arange(numbers.size)[b.own]).tolist() == own.ravel().tolist()
        mine, among = b.owned_among(np.arange(prod(shape)))
        assert (numbers.ravel()[among] == np.flatnonzero(mine)).all()
        assert len(among) == own.size
        held.append(numbers)
    assert (times == 1).all()
    before = [h.copy() for h in held]
    for x in ghost_boxes(blocks):
        assert (held[x.part][x.place] == -1).all()
        held[x.part][x.place] = before[x.owner][x.source]
    for b, numbers in zip(blocks, held, strict=True):
        assert numbers.ravel().tolist() == b.in_box(np.arange(numbers.size)).tolist()


@pytest.mark.parametrize("lattice", [lw.D2Q5, lw.D2Q9, lw.D3Q19, D3Q15, lw.D3Q27], ids=lambda x: x.name)
@pytest.mark.parametrize("form", FORMS)
def test_ghosts_have_what_a_step_reads(form: str, lattice: lw.Lattice) -> None:
    """Found by following every link around a block of 3 sites along every axis."""
    phase, links = FORMS[form].phases[-1], [tuple(reversed(v)) for v in lattice.velocities]

    def there(site: tuple[int, ...], link: tuple[int, ...], times: int) -> tuple[int, ...]:
        return tuple(n + times * e for n, e in zip(site, link, strict=True))

    every = [tuple(n - 2 for n in at) for at in np.ndindex(*(7,) * lattice.dimension)]
    own = {site for site in every if set(site) <= {0, 1, 2}}
    updated = {site for site in every if any(there(site, e, 1) in own for e in links)} if phase.put_links else own
    wanted: dict[tuple[int, ...], set[int]] = {}
    for site in updated:
        for q, e in enumerate(links):
            source = there(site, e, -1) if phase.load_links else site
            steps = tuple(min(n, max(n - 2, 0)) for n in source)
            wanted.setdefault(steps, set()).add(lattice.opposite[q] if phase.load_opposite else q)
    firsts = {tuple(min(n, max(n - 2, 0)) for n in site) for site in updated}
    for at in np.ndindex(*(5,) * lattice.dimension):
        if not any(steps := tuple(n - 2 for n in at)):
            continue
        found, needed = leaves_needed(lattice, phase, steps), wanted.get(steps, set())
        assert len(set(found)) == len(found)
        if phase.load_links and phase.put_links and steps in firsts:
            assert needed <= set(found) == set(range(lattice.size))
        else:
            assert set(found) == needed


def test_what_moves_is_what_lies_at_faces_and_edges() -> None:
    """Of D3Q19 5 populations of a face, 1 of an edge and none of a corner."""
    flow = case(1, "cpu").pair.flow
    cube = flow.sites((24, 24, 24), streaming="pull", device=Mesh("cpu", parts=27))
    assert cube.box_cut.cut == Cut((24, 24, 24), (3, 3, 3))
    assert cube.exchange(cube.form.phases[0], 0).nbytes == 27 * 4 * (6 * 64 * 5 + 12 * 8)


def test_least_sides() -> None:
    assert [least_side(parts, 3) for parts in (1, 2, 4, 7, 8, 12)] == [8, 16, 16, 56, 16, 24]


# ---------------------------------------------------------------- bits


def check(seed: int, parts: tuple[int, ...], device: str = "cpu") -> None:
    c = blocked(seed)
    wanted = follow(c, device)
    assert np.ptp(wanted[0]) > 0
    for n in fitting(c.shape, parts):
        for one, other in zip(follow(c, Mesh(device, parts=n)), wanted, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other, err_msg=f"{n} parts, seed {seed}")


@pytest.mark.parametrize(("seed", "parts"), [pytest.param(8, 9, marks=pytest.mark.slow), (57, 12)])
def test_blocks_have_the_bits_of_one_device(seed: int, parts: int) -> None:
    check(seed, (parts,))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(120))
def test_many_blocks_have_the_bits_of_one_device(seed: int) -> None:
    check(seed, (3, 4, 6, 8, 9, 12))


@pytest.mark.cuda
@pytest.mark.parametrize("seed", range(300, 316))
def test_blocks_of_one_gpu_have_its_bits(seed: int) -> None:
    check(seed, (4, 6, 12), "cuda:0")


@pytest.mark.grid(every=100)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("edges", [*EDGES, {"x": ("slip", "hot"), "y": "outflow"}], ids=str)
def test_stencils_have_the_bits_of_one_device(edges: Any, masked: bool) -> None:
    shape = (19, 26)
    wanted = heated("cpu", edges, masked, shape)
    for parts in (3, 4, 6):
        for one, other in zip(heated(Mesh("cpu", parts=parts), edges, masked, shape), wanted, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.grid(every=100)
@pytest.mark.parametrize("edges", [{}, {"y": ("dry", "wet")}, {"x": ("dry", "wet"), "y": "dry"}], ids=str)
@pytest.mark.parametrize("forms", [("pull", "in-place"), ("in-place", "pull"), ("push", "push"), ("pull", "pull")])
def test_coupled_lattices_share_a_cut(forms: tuple[str, str], edges: Any) -> None:
    """Those that have fewer ghosts than others get rows of their own."""
    shape = (18, 24)
    wanted = coupled("cpu", forms, edges, shape)
    for parts in (3, 4, 6):
        for one, other in zip(coupled(Mesh("cpu", parts=parts), forms, edges, shape), wanted, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.quick("in-place")
@pytest.mark.parametrize("form", FORMS)
def test_a_state_goes_on_on_other_parts(form: str) -> None:
    """Blocks, slabs and one device have the same bytes."""
    c = replace(blocked(0), streaming=form, edges={"x": "slip"}, curved=False, layout=lw.AoSoA(8))
    flow, wanted = c.pair.flow, c.sites("cpu")
    flow.run(wanted, 4, **c.values)
    for first, then in ((9, 2), (2, 12), (6, 1)):
        one, two = c.sites(Mesh("cpu", parts=first)), c.sites(Mesh("cpu", parts=then))
        flow.run(one, 1, **c.values)
        two.step, two.fresh = one.step, one.fresh
        hold_bytes(two, held_bytes(one))
        flow.run(two, 3, **c.values)
        np.testing.assert_array_equal(held_bytes(two), held_bytes(wanted))


@pytest.mark.slow
@pytest.mark.parametrize("flow", ["channel", "blown"])
def test_a_simulation_has_the_bits_and_the_file_of_one_device(flow: str, tmp_path: Path) -> None:
    walls, numbers = {"channel": (("body",), (9, 12, 20)), "blown": ((), (4, 8, 12))}[flow]

    def make(device: Any) -> Simulation:
        return channel(device) if flow == "channel" else blown(device, (18, 26, 16))

    one = make("cpu")
    one.run(11)
    one.checkpoint(tmp_path / "one.h5")
    wanted = seen(one, walls)
    one.run(6)
    for parts in numbers:
        many = make(Mesh("cpu", parts=parts))
        many.run(11)
        same(seen(many, walls), wanted)
        many.checkpoint(tmp_path / "many.h5", overwrite=True)
        assert (tmp_path / "many.h5").read_bytes() == (tmp_path / "one.h5").read_bytes()
        for other in ("cpu", "cpu*2", "cpu*4"):
            again = Simulation.resume(tmp_path / "many.h5", device=other)
            same(seen(again, walls), wanted)
            again.run(6)
            same(seen(again, walls), seen(one, walls))


# ---------------------------------------------------------------- results, words, refusals


def test_results_are_arrays_on_the_mesh_in_the_order_of_the_box() -> None:
    fluid = two_phases.sites((18, 24), device="cpu*4")
    two_phases.set_populations(fluid, np.random.default_rng(0).random((9, 18, 24)))
    seen = density(fluid)
    assert [len(part) for part in seen.parts] == [96, 96 + 24, 96, 96 + 24]
    wanted = two_phases.populations(fluid).sum(axis=0)
    np.testing.assert_allclose(seen.numpy().reshape(18, 24), wanted, rtol=1e-5)
    assert (2 * seen).numpy().tolist() == (2 * seen.numpy()).tolist()


@pytest.mark.parametrize("given_as", [np.asarray, np.ravel, np.ndarray.tolist], ids=["box", "flat", "list"])
def test_values_of_sites_go_to_their_parts(given_as: Any) -> None:
    """Where some parts of an array on the mesh have no rows, too: there are 9 layers for 12."""
    flow, shape = case(0, "cpu").pair.flow, (9, 200)
    omega = given_as(np.random.default_rng(0).uniform(0.8, 1.5, shape).astype(np.float32))

    def run(device: str) -> Any:
        box = flow.sites(shape, device=device)
        flow.set_populations(box, 1e-3 * np.random.default_rng(1).standard_normal((9, *shape)))
        flow.run(box, 3, omega=omega)
        return flow.populations(box)

    np.testing.assert_array_equal(run("cpu*12"), run("cpu"))


@pytest.mark.quick("8-9")
@pytest.mark.parametrize(("seed", "parts"), [(8, 9), (11, 4), (27, 12), (5, 6), (12, 6)])
def test_explanations_say_the_bytes_that_are_copied(seed: int, parts: int, copied: Copied) -> None:
    c = blocked(seed)
    stepper = c.pair.flow.stepper(c.sites(Mesh("cpu", parts=parts)), **c.values)
    stepper.run(2)
    said = stepper.explain().mesh
    assert said is not None
    assert said.nbytes * 4 == copied.of(lambda: stepper.run(4)) > 0
    assert sum(said.step.rows) == prod(c.shape)


def test_explanations_name_the_grid() -> None:
    flow = case(1, "cpu").pair.flow
    box = flow.sites((48, 24, 32), edges=dict.fromkeys("xyz", "slip"), device="cpu*12")
    said = flow.stepper(box, omega=1.2).explain().mesh
    assert said is not None
    assert str(said).startswith("mesh: 12 parts of 3 x 2 x 2 blocks (12 x cpu), 3,072 sites each")
    assert said.json()["grid"] == [3, 2, 2]
    assert said.strong is not None
    assert set(said.strong.found) == {2, 4, 8}
    slabs = flow.stepper(flow.sites((48, 24, 32), device="cpu*3"), omega=1.2).explain().mesh
    assert slabs is not None
    assert str(slabs).startswith("mesh: 3 parts (3 x cpu), 12,288 sites each")


NO_BLOCKS = {
    ((23, 15), 3): "23 layers along y, and a mesh of 3 parts (3 x cpu) needs 8 for each: wanted a mesh of at most 2 "
    "parts, or at least 24 layers; blocks need 8 along every axis that is cut",
    ((20, 20), 9): "needs 8 for each: wanted a mesh of 4 parts, or at least 72 layers; blocks need 8",
    ((16, 16, 16), 9): "needs 8 for each: wanted a mesh of 8 parts, or at least 72 layers; blocks need 8",
    ((9, 15), 2): "needs 8 for each: wanted one device, or at least 16 layers; blocks need 8 along every axis",
}


@pytest.mark.parametrize(("shape", "parts"), NO_BLOCKS)
def test_boxes_that_no_grid_fits_are_refused(shape: tuple[int, ...], parts: int) -> None:
    flow = case(len(shape) - 2, "cpu").pair.flow
    with pytest.raises(ArgumentError) as error:
        flow.sites(shape, device=Mesh("cpu", parts=parts))
    assert NO_BLOCKS[shape, parts] in str(error.value)


def test_readers_of_another_cut_are_refused() -> None:
    seen = density.of(two_phases.sites((20, 30), edges={"y": "slip"}, device="cpu*4"))
    for edges, axes in (({}, "y"), ({"x": "slip"}, "y and x"), ({"x": "slip", "y": "slip"}, "x")):
        with pytest.raises(ArgumentError) as error:
            dye.stepper(dye.sites((20, 30), edges=edges, device="cpu*4"), rho=seen)
        assert f"wanted edges along {axes} that are both periodic, or both not, as its reader has" in str(error.value)


# ---------------------------------------------------------------- kernels of GPUs, run by the interpreter


@pytest.mark.quick("12")
@pytest.mark.parametrize("seed", range(0, 48, 4))
def test_kernels_of_gpus_have_the_bits_of_one(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """They run over all ghosts, which those of a CPU leave out."""
    interpreted_gpu.install(monkeypatch)
    c, shape = blocked(seed), (16, 18)
    values = {n: v[:16, :18] if np.ndim(v) == 2 else v for n, v in c.values.items()}
    c = replace(c, shape=shape, mask=c.mask[:16, :18], layout=lw.AoSoA(8) if seed % 3 else None, values=values)
    parts = follow(c, Mesh(interpreted_gpu.NAME, parts=4))
    for one, other in zip(parts, follow(c, interpreted_gpu.NAME), strict=True):
        np.testing.assert_array_equal(one, other)


def among_many_walls(shape: tuple[int, ...], storage: str, layout: lw.Layout | None) -> Case:
    lattice = lw.D2Q9 if len(shape) == 2 else lw.D3Q19
    pair, slow = colliding(lattice), "xyz"[len(shape) - 1]
    mask = np.random.default_rng(0).choice((0, 0, WALL, INLET), shape)
    mask[3:6], mask[..., 4:12] = WALL, WALL
    return Case(
        pair, observer_of(lattice, colliding), shape, mask, {slow: ("wall", "lid")}, "pull", layout, storage,
        {**pair.values, "lid_velocity": (0.05, *[0.0] * (len(shape) - 1))}, curved=False,
    )  # fmt: skip


def held_of(c: Case, device: Any) -> Any:
    """After two steps, into the populations that were set."""
    some = c.sites(device)
    c.pair.flow.run(some, 2, **c.values)
    return held_bytes(some)


@pytest.mark.parametrize("shape", [(17, 27), pytest.param((17, 16, 18), marks=pytest.mark.slow)], ids=str)
def test_walls_among_many_hold_the_bytes_of_one_device(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory of parts has other sectors than that of the box, which walls are written with."""
    interpreted_gpu.install(monkeypatch)
    monkeypatch.setattr(sites, "LEAST_DENSE", 10)
    c = among_many_walls(shape, "f32", lw.SoA())
    wanted = held_of(c, interpreted_gpu.NAME)
    for parts in (2, 4, 6) if len(shape) == 2 else (4, 8):
        np.testing.assert_array_equal(held_of(c, Mesh(interpreted_gpu.NAME, parts=parts)), wanted)


@pytest.mark.cuda
@pytest.mark.parametrize("storage", ["f16", "f32"])
def test_walls_among_many_on_a_gpu(storage: str) -> None:
    c = among_many_walls((66, 41, 39), storage, None)
    wanted, bits = held_of(c, "cuda:0"), follow(c, "cuda:0")
    for parts in (2, 9, 12):
        mesh = Mesh("cuda:0", parts=parts)
        np.testing.assert_array_equal(held_of(c, mesh), wanted)
        for one, other in zip(follow(c, mesh), bits, strict=True):
            np.testing.assert_array_equal(one, other)
