"""Kernels of flow compile for every architecture without warnings, spills or a stack frame. Needs NVRTC, no GPU."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

import lanewise as lw
from lanewise.compiler.pipeline import build_program
from lanewise.language import types as t
from lanewise.patterns.sitewise.interpolated_walls import build_interpolated_walls
from lanewise.patterns.sitewise.momentum_exchange import build_momentum_exchange
from lanewise.patterns.sitewise.pattern import complete_site_plan
from lanewise.planning.plan import Plan
from tests.emit.sitewise import GPU, PHASES, site_program, sites_of
from tests.emit.test_cubins import ARCHITECTURES, check
from tests.lbm.boxes import LID, WALL
from tests.lbm.kernels import colliding

pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")

LATTICES = {x.name: x for x in (lw.D2Q9, lw.D3Q19, lw.D3Q27)}
LAYOUTS = {"AoSoA": lw.AoSoA(32), "SoA": lw.SoA(), "AoAS": lw.AoAS()}
TYPES = (("f16", "f32"), ("f32", "f32"), ("f64", "f64"))
"""(storage, arithmetic)."""
SPECIALS, BRANCHES = ("faces", "kinds", "dense"), ("together", "apart")


def legal(phase: str, special: str, branches: str) -> bool:
    """Dense boxes have two copies; what is not split is the same twice."""
    if special == "dense" and (phase not in ("pull", "push") or branches == "apart"):
        return False
    return branches == "together" or phase in ("pull", "push", "odd") or (special == "kinds" and phase != "first")


def compile_one(
    lattice: str,
    phase: str,
    layout: str,
    types: tuple[str, str],
    special: str,
    branches: str,
    arch: str,
    blocks: int = 0,
) -> None:
    storage, real = types
    p = site_program(
        LATTICES[lattice],
        phase,
        LAYOUTS[layout],
        storage=storage,
        special=special,
        real=real,
        plan=Plan(branches=branches, min_blocks=blocks),
    )
    check(p, arch)


QUICK = [
    ("D2Q9", "pull", "AoSoA", TYPES[0], "kinds", "together", "sm_80"),
    ("D2Q9", "odd", "AoAS", TYPES[2], "faces", "apart", "sm_100"),
    ("D3Q19", "pull", "AoSoA", TYPES[0], "faces", "together", "sm_90"),
    ("D3Q19", "even", "AoSoA", TYPES[1], "faces", "together", "sm_120"),
    ("D3Q19", "odd", "AoSoA", TYPES[0], "faces", "together", "sm_90"),
    ("D3Q19", "pull", "SoA", TYPES[1], "dense", "together", "sm_100"),
    ("D3Q27", "push", "AoAS", TYPES[1], "faces", "together", "sm_80"),
    ("D3Q27", "pull", "AoSoA", TYPES[1], "faces", "together", "sm_120"),
]


@pytest.mark.quick(
    "D2Q9-pull-AoSoA-f16-f32-kinds-together-sm_80",
    "D3Q19-even-AoSoA-f32-f32-faces-together-sm_120",
    "D3Q19-odd-AoSoA-f16-f32-faces-together-sm_90",
    "D3Q19-pull-SoA-f32-f32-dense-together-sm_100",
    "D3Q27-push-AoAS-f32-f32-faces-together-sm_80",
    "D3Q27-pull-AoSoA-f32-f32-faces-together-sm_120",
)
@pytest.mark.parametrize("row", QUICK, ids=lambda r: "-".join("-".join(x) if isinstance(x, tuple) else x for x in r))
def test_flow(row) -> None:
    compile_one(*row)


@pytest.mark.quick("odd")
@pytest.mark.parametrize(
    ("phase", "layout", "types"), [("pull", "AoSoA", TYPES[0]), ("odd", "AoSoA", TYPES[1])], ids=["pull", "odd"]
)
def test_interpolated_walls_and_their_force(phase: str, layout: str, types: tuple[str, str]) -> None:
    """The kernels over sites beside walls, one of which moves."""
    storage, real = types
    flow = colliding(lw.D3Q19, real)
    form, step = PHASES[phase]
    sites = sites_of(lw.D3Q19, form, LAYOUTS[layout], storage, "kinds", real)
    given = flow.flow.kernels.arguments(sites, step, False, flow.flow.kinds.values(sites, flow.values), ())
    plain = replace(given, dense=False, placed=False, framed=False)
    for reference in (
        build_interpolated_walls(plain, t.I32),
        build_momentum_exchange(plain, t.I32, (WALL, LID), True, curved=True),
    ):
        check(build_program(reference, complete_site_plan(None, GPU, reference), "cuda"), "sm_90")


EVERYTHING = [
    (*row, branches)
    for *row, branches in product(PHASES, LAYOUTS, TYPES, SPECIALS, BRANCHES)
    if legal(row[0], row[3], branches)
]


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("lattice", LATTICES)
def test_flow_in_every_way(lattice: str, arch: str) -> None:
    """With as many registers as they like: the compiler spills some words to fit another block where it is not told to
    fit one.
    """
    for row in EVERYTHING:
        compile_one(lattice, *row, arch, blocks=1)
