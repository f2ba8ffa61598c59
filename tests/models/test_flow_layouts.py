"""Predicted steps of flows in every layout against bench/results/ladders/lbm.json, measured on an NVIDIA H200."""

from __future__ import annotations

import json
import math

import pytest

import lanewise as lw
from lanewise.compiler.pipeline import build_program
from lanewise.ir.names import COUNT
from lanewise.language import types as t
from lanewise.language.target import Machine
from lanewise.layouts import Layout
from lanewise.models.devices import table_model
from lanewise.models.predict import predict
from lanewise.patterns.sitewise.kernel import sitewise
from lanewise.patterns.sitewise.links import box_counts
from lanewise.patterns.sitewise.pattern import complete_site_plan
from lanewise.runtime.nvrtc import Resources
from lanewise.sims.lbm.operators.bgk import make_bgk
from tests.models.measured import RESULTS
from tests.patterns.sitewise import read_by_place, reference_kernel

H200 = table_model("sm_90")
BOXES = {"D2Q9": (lw.D2Q9, (4096, 4096)), "D3Q19": (lw.D3Q19, (256, 256, 256))}
LAYOUTS = {"AoS": lw.AoS(), "AoAS": lw.AoAS(16), "SoA": lw.SoA(), "SoAoAS": lw.SoAoAS(), "AoSoA(32)": lw.AoSoA(32)}
RUNGS = json.loads((RESULTS / "ladders" / "lbm.json").read_text())["rungs"]
RESOURCES = Resources(48, 0, 0, 0, 0)


def measured(lattice: str, layout: str) -> float:
    """Seconds of a step of the large box."""
    shape = "x".join(map(str, BOXES[lattice][1]))
    (row,) = (r for r in RUNGS if (r["name"], r["shape"]) == (f"{lattice}, pull, {layout}", shape))
    return float(row["seconds"])


def predicted(lattice: str, layout: Layout) -> float:
    which, shape = BOXES[lattice]
    flow = sitewise(which)(make_bgk(which, "f32"))
    flow.wall(1, "wall")
    edges = dict.fromkeys("xyz"[: which.dimension], "wall")
    sites = flow.sites(
        (*(4,) * (which.dimension - 1), 64), edges=edges, layout=layout, streaming="pull", device="python"
    )
    sites.step, sites.fresh = 1, False
    sites = read_by_place(sites)
    reference = reference_kernel(flow, sites, t.I32, omega=1.7)
    program = build_program(reference, complete_site_plan(None, Machine("cuda", 132), reference), "cuda")
    environment = {COUNT: math.prod(shape), "omega": 1.7, **box_counts(shape, sites.row_block)}
    return predict(program, environment, H200, RESOURCES, in_graph=True).seconds


@pytest.mark.parametrize("lattice", BOXES)
def test_layouts_are_told_apart(lattice: str) -> None:
    """What streams is foreseen within a quarter, structures within 40 %, and nobody would choose the wrong ones."""
    found = {n: predicted(lattice, layout) for n, layout in LAYOUTS.items()}
    for name, seconds in found.items():
        within = 0.4 if name in ("AoS", "AoAS") else 0.25
        assert seconds == pytest.approx(measured(lattice, name), rel=within), name
    order = sorted(("AoS", "AoAS", "AoSoA(32)"), key=found.__getitem__)
    assert order == ["AoSoA(32)", "AoAS", "AoS"] == sorted(order, key=lambda n: measured(lattice, n))
