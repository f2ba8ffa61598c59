"""Sitewise kernels of every lattice, shaped as they are launched on a GPU or a CPU; needs neither."""

from functools import cache
from typing import Any

import numpy as np

import lanewise as lw
from lanewise.compiler.pipeline import Program, build_program
from lanewise.language import types as t
from lanewise.language.target import Machine
from lanewise.layouts import Layout
from lanewise.patterns.sitewise.build import build_sitewise
from lanewise.patterns.sitewise.pattern import complete_site_plan
from lanewise.planning.plan import Plan
from tests.lbm.boxes import LID, WALL
from tests.lbm.kernels import INLET, colliding
from tests.patterns.sitewise import read_by_words

GPU, CPU = Machine("cuda", 132), Machine("cpu", 8)
EDGES = {"x": "slip", "y": ("wall", "lid"), "z": "periodic"}
PHASES = {
    "first": ("pull", 0),
    "pull": ("pull", 1),
    "push": ("push", 1),
    "even": ("in-place", 2),
    "odd": ("in-place", 1),
}


@cache
def sites_of(lattice: lw.Lattice, form: str, layout: Layout, storage: str, special: str, real: str) -> Any:
    """A small box: `special` is "faces" (walls, slip), "kinds" (also an inlet and walls in the mask) or "dense" (the
    same, by words).
    """
    shape = (4, 5, 6)[-lattice.dimension :]
    mask = np.zeros(shape, np.int32)
    if special != "faces":
        mask.ravel()[[9, 10, 11]] = INLET, WALL, LID
    edges = {a: e for a, e in EDGES.items() if a in "xyz"[: lattice.dimension]}
    flow = colliding(lattice, real).flow
    sites = flow.sites(shape, mask=mask, edges=edges, storage=storage, streaming=form, layout=layout, device="python")
    return read_by_words(sites, dense=True) if special == "dense" else sites


def site_program(
    lattice: lw.Lattice, phase: str, layout: Layout, kind: str = "cuda", *,
    storage: str = "f32", special: str = "faces", real: str = "f32", plan: Plan | None = None,
) -> Program:  # fmt: skip
    """BGK of one phase, with the default plan of a large GPU or of a CPU with AVX2."""
    pair = colliding(lattice, real)
    form, step = PHASES[phase]
    sites = sites_of(lattice, form, layout, storage, special, real)
    arguments = pair.flow.kernels.arguments(sites, step, phase == "first", pair.flow.kinds.values(sites, pair.values))
    reference = build_sitewise(arguments, t.I32 if kind == "cuda" else t.I64)
    return build_program(reference, complete_site_plan(plan, GPU if kind == "cuda" else CPU, reference), kind)
