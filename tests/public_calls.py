"""A good call of everything that lanewise offers, for tests that replace its arguments; and what is no entry, with the
reason.

A name is that of `lw`, or follows `gravity.`, `boids.`, `lbm.`, `obstacles.`, `io.` or `plot.`; `Class.method` is a
method of a good instance. Every entry makes its arguments anew: calls may change them.
"""

from __future__ import annotations

import atexit
import functools
import inspect
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import lanewise as lw
from lanewise import io
from lanewise.patterns.elementwise.kernel import Elementwise
from lanewise.patterns.pairwise.kernel import Pairwise
from lanewise.patterns.segmentwise.kernel import Segmentwise
from lanewise.patterns.threadwise.kernel import Threadwise
from lanewise.sims import boids, gravity, lbm
from lanewise.sims.gravity.view import plot_gravity
from lanewise.sims.lbm import obstacles
from lanewise.sims.lbm.view.flow import flow_title, plot_flow
from tests.corpus_kernels import speed
from tests.pickled_kernels import Grain, Numbered, attract, bounce, grow, heaps, near, spread, walled, warm

Good = tuple[Callable[..., Any], list[Any], dict[str, Any]]
PLACES = {"gravity": gravity, "boids": boids, "lbm": lbm, "obstacles": obstacles, "io": io}
KERNELS = {
    "Elementwise": Elementwise,
    "Pairwise": Pairwise,
    "Segmentwise": Segmentwise,
    "Threadwise": Threadwise,
}  # not in lw.__all__, but what decorators give
NUMBERS = "abs acos asin atan cbrt ceil cos cosh erf erfc exp exp2 expm1 floor gamma isfinite isinf isnan log log10 log1p log2 round rsqrt sin sinh sqrt tan tanh trunc"
PAIRS = "atan2 hypot pow max min"
SCALARS = "f32 f64 i32 i64 u32 bool f16 i8 u8 i16 u16"
VECTORS = {"vec2": 2, "vec3": 3, "vec4": 4, "dvec2": 2, "dvec3": 3, "dvec4": 4, "ivec2": 2, "ivec3": 3, "ivec4": 4}

_INSIDE = "what kernels and tuning call; its arguments are lanewise's own"
EXEMPT = {
    **dict.fromkeys(
        ["ArgumentError", "CompileError", "CompileError.in_call", "DeviceError", "FarFieldWarning", "FileWarning", "InputError", "LanewiseError", "LanewiseWarning", "PlanError", "ProcessError", "RecordError",
         "StateError", "VerificationError", "boids.ResumeWarning", "lbm.FlowWarning"], "raised, not called",
    ),
    **{f"{s}.{m}": _INSIDE for s in ("AllPairs", "CellArray", "DynamicGrid", "Nearest", "NeighborLists", "Neighbors", "StaticGrid", "Tree") for m in ("make", "plan", "structure")},
    **{f"{s}.arrange": _INSIDE for s in ("AoAS", "AoS", "AoSoA", "Layout", "SoA", "SoAoAS")},
    **dict.fromkeys(["StaticGrid.geometry", "CellArray.geometry",  "Sight.leaves", "Sight.values", "SoAoAS.grouped", "Plan.filled", "Elementwise.tuning_job", "Pairwise.tuning_job", "Segmentwise.tuning_job", "Threadwise.tuning_job", "Sitewise.tuning_job", "Stencil.tuning_job"], _INSIDE),
    **dict.fromkeys(["Mesh.gather", "Mesh.lengths_of_all", "Mesh.own_rows"], "what arrays on a mesh call; its arguments are lanewise's own"),
    **dict.fromkeys(["Observer.of", "Observer.prepare", "SiteStepper.calls_now", "SiteStepper.check_observed", "SiteStepper.profiled"], _INSIDE),
    **dict.fromkeys(["SiteStepper.explain", "SiteStepper.prepare", "SiteStepper.run", "SiteStepper.sequence"], "of sites: tests/kernels/test_site_stepper.py"),
    **dict.fromkeys(["Compiled.explain"], "as explain of kernels"),
    **dict.fromkeys(["Profile.loop", "Profile.running", "Profile.sample", "Profile.watched"], _INSIDE),
    **dict.fromkeys(["RecordArray.from_fields", "RecordArray.zeros"], _INSIDE),
    "Fate": "its three members",
    **dict.fromkeys(["LiveView", "LiveView.close", "LiveView.update", "LiveView.widget", "view"], "they serve: tests/live/test_view.py"),
    **dict.fromkeys(["Call", "Compiled", "Direction", "InSlices", "Observer", "SiteStepper", "Steps", "Elementwise", "Pairwise", "Segmentwise", "Threadwise"], "made by kernels and decorators"),
    **{f"Search{m}": "what all searches have" for m in ("", ".describe", ".in_words", ".make", ".plan", ".structure")},
    **{f"{r}.row_of": _INSIDE for r in ("Record", "gravity.Body", "gravity.Body64", "gravity.BodyMixed", "boids.Boid", "boids.Boid64")},
    **dict.fromkeys(["Layout"], "abstract"),
    **dict.fromkeys(["index_of"], "of elements in kernels: in Python it raises"),
    **dict.fromkeys(["RecordArray", "LayoutChoice", "LayoutChoice.as_dict", "LayoutChoice.relative", "Ragged", "RaggedArray", "Sitewise", "Stencil"], "made by functions of the table"),
    **dict.fromkeys(["Elementwise", "Pairwise", "Segmentwise", "Threadwise"], "made by their decorators"),
    **dict.fromkeys(["Array1", "Array2", "Array3", "Field"], "annotations"),
    **dict.fromkeys(["Segmentwise.gradient", "Threadwise.gradient", "Sitewise.gradient"], "refused for every argument: tests/derivatives/test_refusals.py"),
    **dict.fromkeys(["torch_function", "jax_function"], "need PyTorch and JAX: tests/derivatives/test_interop.py"),
    **dict.fromkeys(["Elementwise.tune", "Pairwise.tune", "Segmentwise.tune", "Threadwise.tune", "Sitewise.tune", "Stencil.tune"], "measures for a minute; its arguments are those of compile"),
    **dict.fromkeys(["gravity.Diagnostics", "boids.Statistics", "boids.Statistics.as_dict"], "made by simulations"),
    **dict.fromkeys(["RaggedArray.awkward", "RecordArray.dataframe"], "needs a package of its own"),
    **dict.fromkeys(["lbm.Case", "lbm.Case.request", "lbm.Case.setup", "lbm.Setup"], "made by the modules of cases"),
    **dict.fromkeys([f"obstacles.{s}.fractions" for s in ("Round", "SignedDistance", "Surface")], _INSIDE),
    **dict.fromkeys(["obstacles.Surface"], "a protocol"),
    **dict.fromkeys(["obstacles.Mesh", "obstacles.Solid", "io.Particles"], "of checked arrays: `of` and the functions of bodies make it"),
    **{f"{r}.{m}": "as Record" for r in ("Record", "gravity.Body", "gravity.Body64", "gravity.BodyMixed", "boids.Boid", "boids.Boid64")
       for m in ("array", "zeros", "copy")},
}  # fmt: skip


def positions(count: int = 6) -> Any:
    return np.random.default_rng(0).random((count, 3)).astype("f4")


def grains(count: int = 6) -> Any:
    return Grain.array(position=positions(count), mass=np.ones(count))


def numbered() -> Any:
    """Grains that can be told apart."""
    return Numbered.array(serial=np.arange(4))


def lists() -> Any:
    return lw.ragged(grains(), counts=[4, 2])


def two_forms() -> Any:
    return lw.TwoForms(
        {"mass": [1.0]}, to_device=lambda v: Grain.array(mass=v["mass"]), to_host=lambda d: {"mass": d.mass.tolist()}
    )


def bodies() -> Any:
    return gravity.Body.array(position=positions(), mass=np.ones(6), velocity=positions())


@functools.cache
def _gravity() -> Any:
    return gravity.Simulation(bodies(), softening=0.1)


@functools.cache
def _flock() -> Any:
    return boids.Flock(16, world=20.0)


@functools.cache
def _flow() -> Any:
    return lbm.Simulation(shape=(6, 8), viscosity=0.1, edges={"y": "wall"})


@functools.cache
def _sites() -> Any:
    return bounce.sites((4, 4))


@functools.cache
def folder() -> Path:
    """Where files are written, for as long as the process lives."""
    made = tempfile.TemporaryDirectory(prefix="lanewise-public-calls-")
    atexit.register(made.cleanup)
    return Path(made.name)


def _file(name: str) -> str:
    path = folder() / name
    if not path.exists():
        match name:
            case "state.csv":
                boids.write_state(path, boids.make_state(4))
            case "bodies.csv":
                io.write_particles(path, gravity.make_initial_conditions("two-body"))
            case "rocks.toml":
                path.write_text("[[sphere]]\ncenter = [1, 2, 3]\nradius = 2\n")
            case "mask.npy":
                np.save(path, np.zeros((6, 8), bool))
            case "flock.h5":
                _flock().checkpoint(path)
            case "grains.h5":
                lw.save(path, grains())
            case "flow.h5":
                _flow().checkpoint(path)
            case _:
                pass
    return str(path)


def _mesh() -> Any:
    return obstacles.Mesh.of(
        [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]], [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]
    )


def _function(x: lw.f32) -> lw.f32:
    return x


def _nothing() -> None:
    pass


def _units() -> Any:
    return lbm.Units(length_m=0.1, velocity_m_s=0.1, viscosity_m2_s=1e-4, density_kg_m3=1000.0, sites=20)


def _within(name: Any) -> str:
    with lw.device(name):
        return lw.device.__name__


CALLS: dict[str, Callable[[], Good]] = {
    **{n: lambda n=n: (getattr(lw, n), [0.5], {}) for n in NUMBERS.split()},
    **{n: lambda n=n: (getattr(lw, n), [0.5, 0.25], {}) for n in PAIRS.split()},
    **{n: lambda n=n: (getattr(lw, n), [1], {}) for n in SCALARS.split()},
    **{n: lambda n=n: (getattr(lw, n), [1] * VECTORS[n], {}) for n in VECTORS},
    **{n: lambda n=n: (getattr(lw, n), [0.5, 0.25, 0.75], {}) for n in ("clamp", "fma", "mix")},
    "sum": lambda: (lw.sum, [np.ones(3)], {}),
    "compact": lambda: (lw.compact, [np.ones(3), np.ones(3, bool)], {}),
    "cumsum": lambda: (lw.cumsum, [np.ones(3)], {"exclusive": True, "out": np.ones(3)}),
    "histogram": lambda: (lw.histogram, [np.ones(3, np.int32)], {"bins": 4, "out": np.zeros(4, np.int64)}),
    **{n: (lambda n=n: (getattr(lw, n), [7, 1, 2], {})) for n in ("random", "random4", "drandom", "normal", "normal4", "unit_vector", "unit_vector2")},
    "save": lambda: (lw.save, [folder() / "saved.h5", grains()], {"overwrite": True}),
    "load": lambda: (lw.load, [_file("grains.h5")], {"record": Grain, "layout": lw.AoS(), "device": "cpu"}),
    "random_integer": lambda: (lw.random_integer, [0, 6, 7, 1], {}),
    "scatter_add": lambda: (lw.scatter_add, [np.zeros(3, np.int32), 1, 2], {}),
    "scatter_max": lambda: (lw.scatter_max, [np.zeros((2, 3)), (1, 2), 2.0], {}),
    "scatter_min": lambda: (lw.scatter_min, [np.zeros(3), 1, -2], {}),
    "dot": lambda: (lw.dot, [lw.vec3(1, 2, 3), lw.vec3(1, 2, 3)], {}),
    "cross": lambda: (lw.cross, [lw.vec3(1, 2, 3), lw.vec3(1, 2, 3)], {}),
    "length": lambda: (lw.length, [lw.vec3(1, 2, 3)], {}),
    "normalize": lambda: (lw.normalize, [lw.vec3(1, 2, 3)], {}),
    "select": lambda: (lw.select, [True, 1.0, 2.0], {}),
    "same": lambda: (lw.same, [1, 2], {}),
    "interpolate": lambda: (lw.interpolate, [np.ones((2, 3)), 0.5, 1.25], {"edge": "mirror"}),
    "zeros": lambda: (lw.zeros, [lw.f32, 4], {}),
    "Row": lambda: (lw.Row, [np.ones(3)], {}),
    "window": lambda: (lw.window, [lw.Row(np.ones(3)), 1, 2], {}),
    "ragged": lambda: (lw.ragged, [np.ones(3)], {"counts": [1, 2], "kind": lw.f64, "device": "cpu"}),
    "ragged lists": lambda: (lw.ragged, [[[1.0], [2.0, 3.0]]], {}),
    "Mesh": lambda: (lw.Mesh, ["cpu"], {"parts": 2}),
    "Mesh.over_ranks": lambda: (lw.Mesh.over_ranks, ["cpu"], {"parts": 2}),
    "Mesh.rows": lambda: (lw.Mesh("cpu", parts=2).rows, [5], {}),
    "SplitArray.copy": lambda: (lw.SplitArray(lw.Mesh("cpu", parts=1), [np.ones(2)]).copy, [], {}),
    "SplitArray.numpy": lambda: (lw.SplitArray(lw.Mesh("cpu", parts=1), [np.ones(2)]).numpy, [], {}),
    "SplitArray": lambda: (lw.SplitArray, [lw.Mesh("cpu", parts=2), [np.ones(2), np.ones(1)]], {}),
    "device": lambda: (_within, ["cpu"], {}),
    "elementwise": lambda: (lw.elementwise, [_function], {}),
    "pairwise": lambda: (lw.pairwise(search=lw.AllPairs()), [_function], {}),
    "function": lambda: (lw.function, [_function], {}),
    "segmentwise": lambda: (lw.segmentwise, [_function], {}),
    "threadwise": lambda: (lw.threadwise, [_function], {}),
    "sitewise": lambda: (lw.sitewise, [lw.D2Q9], {}),
    "stencil": lambda: (lw.stencil, [lw.D2Q5], {}),
    "steps": lambda: (lw.steps, [[_nothing]], {}),
    "Plan.neutral": lambda: (lw.Plan.neutral, [], {}),
    "Steps.run": lambda: (lw.steps([_nothing]).run, [3], {"every": 2}),
    "Steps.prepare": lambda: (lw.steps([_nothing]).prepare, [], {}),
    "Steps.sequence": lambda: (lw.steps([_nothing]).sequence, [2], {}),
    "Steps.explain": lambda: (lw.steps([_nothing]).explain, [], {}),
    "Direction.along": lambda: (lw.D2Q9[1].along, [(0.5, 0.25)], {}),
    "every": lambda: (lw.every, [3, _nothing], {"at": 1}),
    "by_step": lambda: (lw.by_step, [_function], {}),
    "couple": lambda: (lw.couple, [bounce.stepper(_sites()), warm.stepper(_plate())], {}),
    "record": lambda: (lw.record, [type("R", (), {"__annotations__": {"a": lw.f32}})], {}),
    "nearest": lambda: (lw.nearest, [positions(), 2], {"radius": 1.0, "queries": positions(), "world": lw.Open(), "device": "cpu"}),
    "neighbors": lambda: (lw.neighbors, [positions(), 0.5], {"queries": positions(), "search": None, "world": None, "device": "cpu"}),
    "choose_layout": lambda: (lw.choose_layout, [Grain, [grow, attract]], {"device": "cpu", "count": 100, "current": lw.SoA()}),
    "far_errors": lambda: (lw.far_errors, [attract.using(search=lw.Tree()), grains(), grains()], {"again": True}),
    "far_field": lambda: (lw.far_field, [attract], {"position": "position"}),
    "in_slices": lambda: (lw.in_slices, [attract], {"memory": 1_000_000, "device": "cpu", "group": 64}),
    "InSlices.explain": lambda: (lw.in_slices(attract, device="cpu").explain, [grains(), grains()], {}),
    "InSlices.slices": lambda: (lw.in_slices(attract, device="cpu").slices, [grains(), grains()], {}),
    "AllPairs": lambda: (lw.AllPairs, [], {"radius": 1.0, "k": 3, "world": lw.Open(), "position": "position"}),
    "StaticGrid": lambda: (lw.StaticGrid, [], {"radius": 1.0, "k": 3, "cells": (2, 2, 2), "side": None, "over": ((-1, 1), (-1, 1), (0, 2)), "build": "host", "index": "global", "sight": None}),
    "Tree": lambda: (lw.Tree, [], {"theta": 0.5, "order": 3, "leaf": 16, "method": "walk"}),
    "NeighborLists": lambda: (lw.NeighborLists, [], {"radius": 1.0, "k": 3, "skin": 0.2}),
    "Sight": lambda: (lw.Sight, [], {"heading": "forward", "cosine": -0.5, "near": 0.1}),
    "Sight.in_words": lambda: (lw.Sight(heading="forward", cosine=0).in_words, [], {}),
    "CellArray": lambda: (lw.CellArray, [], {"radius": 1.0, "k": 3, "over": ((-1, 1), (-1, 1), (0, 2))}),
    "DynamicGrid": lambda: (lw.DynamicGrid, [], {"radius": 1.0, "k": 3, "order": "sort", "leaf": 8, "leaves": "all"}),
    "Nearest": lambda: (lw.Nearest, [], {"radius": 1.0, "k": 3, "world": lw.Periodic((9, 9))}),
    "Neighbors": lambda: (lw.Neighbors, [], {"radius": 1.0, "position": "place"}),
    "Open": lambda: (lw.Open, [], {}),
    "Periodic": lambda: (lw.Periodic, [(1.0, 2.0, 3.0)], {"origin": (0.0, 0.0, 0.0)}),
    "Bounded": lambda: (lw.Bounded, [(0.0, 0.0), (1.0, 1.0)], {}),
    "AoS": lambda: (lw.AoS, [], {}),
    "SoA": lambda: (lw.SoA, [], {}),
    "AoAS": lambda: (lw.AoAS, [8], {}),
    "AoSoA": lambda: (lw.AoSoA, [8], {}),
    "SoAoAS": lambda: (lw.SoAoAS, [(("position", "mass"), ("kind",))], {}),
    "Plan": lambda: (
        lw.Plan, [],
        {"targets": 2, "tile": 32, "fast_math": True, "hoist": False, "self_term": "test", "rsqrt": "exact", "fission": True, "block": 128},
    ),
    "Plan.as_dict": lambda: (lw.Plan(tile=8).as_dict, [], {}),
    "Plan.short": lambda: (lw.Plan(tile=8).short, [], {}),
    "Use": lambda: (lw.Use, [grow], {"pattern": "streamed", "weight": 2.0, "neighbors": 3.0}),
    "Lattice": lambda: (lw.Lattice, ["mine", lw.D2Q9.velocities, lw.D2Q9.weights], {}),
    "Lattice.mirror": lambda: (lw.D2Q9.mirror, [3, frozenset({0})], {}),
    "Profile": lambda: (lw.Profile, [100], {}),
    "Profile.span": lambda: (lw.Profile().span, ["setup"], {"name": "a", "nbytes": 4}),
    "Profile.summary": lambda: (lw.Profile().summary, [], {}),
    "Profile.table": lambda: (lw.Profile().table, [], {}),
    "Profile.trace": lambda: (lw.Profile().trace, [], {}),
    "Profile.write_trace": lambda: (lw.Profile().write_trace, [_file("trace.json")], {"overwrite": True}),
    **{f"{s}.{m}": lambda s=s, m=m: (getattr(getattr(lw, s)(radius=1.0, k=None if s == "Neighbors" else 2), m), [], {})
       for s in ("AllPairs", "CellArray", "DynamicGrid", "Nearest", "Neighbors", "StaticGrid") for m in ("describe", "in_words")},
    **{f"NeighborLists.{m}": lambda m=m: (getattr(lw.NeighborLists(radius=1.0, skin=0.1), m), [], {}) for m in ("describe", "in_words")},
    **{f"Tree.{m}": lambda m=m: (getattr(lw.Tree(), m), [], {}) for m in ("describe", "in_words")},
    "Record.array": lambda: (
        Grain.array, [], {"position": positions(), "mass": np.ones(6), "kind": [1] * 6, "layout": lw.AoS(), "device": "cpu"}
    ),
    "Record.zeros": lambda: (Grain.zeros, [5], {"layout": lw.SoAoAS(), "device": "cpu"}),
    "Record": lambda: (Grain, [], {"position": (1, 2, 3), "mass": 2.0, "kind": 1, "alive": True}),
    "Record.copy": lambda: (grains()[1].copy, [], {}),
    "Record.field": lambda: (functools.partial(setattr, Grain(mass=1), "position"), [(1, 2, 3)], {}),
    "Record.row": lambda: (functools.partial(setattr, grains()[1], "position"), [(1, 2, 3)], {}),
    "RecordArray.field": lambda: (functools.partial(setattr, grains(), "mass"), [np.ones(6)], {}),
    "RecordArray.vector": lambda: (functools.partial(setattr, grains(), "position"), [(1, 2, 3)], {}),
    "RecordArray.row": lambda: (grains().__getitem__, [2], {}),
    "RecordArray.part": lambda: (grains().__getitem__, [slice(1, 5, 2)], {}),
    "RecordArray.mask": lambda: (grains().__getitem__, [np.arange(6) > 2], {}),
    "RecordArray.assigned": lambda: (grains().__setitem__, [slice(0, 6), grains()], {}),
    "RecordArray.append": lambda: (grains().append, [grains()], {}),
    "RecordArray.compact": lambda: (grains().compact, [np.arange(6) > 2], {}),
    "RecordArray.reserve": lambda: (grains().reserve, [20], {}),
    "concatenate": lambda: (lw.concatenate, [[grains(), grains()]], {}),
    "Population": lambda: (lw.Population, [numbered()], {"ids": "serial", "next_id": 9}),
    "Population.apply": lambda: (lw.Population(numbered(), ids="serial").apply, [np.array([0, 1, 2, 1])], {}),
    "Population.step": lambda: (lw.Population(numbered(), ids="serial").step, [lambda array: np.array([0, 1, 2, 1])], {}),
    "RecordArray.contiguous": lambda: (grains().contiguous, ["position"], {}),
    "RecordArray.to_structured": lambda: (grains().to_structured, [], {"copy": True}),
    "RecordArray.copy": lambda: (grains().copy, [], {}),
    "RecordArray.numpy": lambda: (grains().numpy, [], {}),
    "RecordArray.to": lambda: (grains().to, ["cpu"], {}),
    "RecordArray.with_layout": lambda: (grains().with_layout, [lw.AoSoA(4)], {}),
    "Ragged.row": lambda: (lw.neighbors(positions(), 0.5).__getitem__, [1], {}),
    "TwoForms": lambda: (lw.TwoForms, [{"mass": [1.0]}], {"to_device": lambda v: Grain.array(mass=v["mass"]), "to_host": lambda d: {"mass": d.mass.tolist()}}),
    "TwoForms.changing": lambda: (two_forms().changing, [], {}),
    "RaggedArray.append": lambda: (lists().append, [[grains()]], {}),
    "RaggedArray.to": lambda: (lists().to, ["cpu"], {}),
    "RaggedArray.list": lambda: (lists().__getitem__, [1], {}),
    **{f"RaggedArray.{m}": lambda m=m: (getattr(lists(), m), [], {}) for m in ("copy", "numpy", "tolist")},
    "Segmentwise.call": lambda: (heaps, [lists(), 1.0], {"out": np.zeros(2)}),
    "Segmentwise.bind": lambda: (heaps.bind, [lists(), 1.0], {"plan": lw.Plan(), "out": np.zeros(2)}),
    "Segmentwise.compile": lambda: (heaps.compile, [lists(), 1.0], {"plan": None}),
    "Threadwise.call": lambda: (spread, [np.ones(4), np.ones((3, 4)), 1.0], {"grid": (3, 4)}),
    "Threadwise.bind": lambda: (spread.bind, [np.ones(4), np.ones((3, 4)), 1.0], {"plan": lw.Plan(), "grid": (3, 4)}),
    "Threadwise.compile": lambda: (spread.compile, [np.ones(4), np.ones((3, 4)), 1.0], {"plan": None, "grid": (3, 4)}),
    "Elementwise.call": lambda: (grow, [grains()], {"by": 1.0, "out": np.zeros(6)}),
    "Elementwise.bind": lambda: (grow.bind, [grains(), np.ones(6)], {"plan": lw.Plan(), "out": np.zeros(6)}),
    "Elementwise.compile": lambda: (grow.compile, [grains(), 1.0], {"plan": None}),
    **{f"Elementwise.{m}": lambda m=m: (getattr(grow, m), [grains(), 1.0], {}) for m in ("sum", "min", "max")},
    "Pairwise.call": lambda: (attract, [grains(), grains()], {"out": np.zeros((6, 3), "f4")}),
    "Pairwise.search": lambda: (near, [grains(), grains()], {"out": np.zeros((6, 3), "f4")}),
    "Pairwise.bind": lambda: (near.bind, [grains(), grains()], {"plan": lw.Plan(), "out": None}),
    "Pairwise.compile": lambda: (attract.compile, [grains(), grains()], {"plan": lw.Plan(tile=0)}),
    "Pairwise.gradient": lambda: (attract.gradient, ["position"], {}),
    "Elementwise.gradient": lambda: (speed.gradient, ["velocity"], {}),
    "Pairwise.using": lambda: (attract.using, [lw.Nearest(k=2)], {}),
    "Sitewise.sites": lambda: (
        bounce.sites, [(4, 4)],
        {"mask": np.zeros((4, 4), int), "edges": {"x": "periodic"}, "storage": "f32", "streaming": "pull", "layout": lw.SoA(), "device": "cpu"},
    ),
    "Sitewise.set_populations": lambda: (bounce.set_populations, [_sites(), np.ones((9, 4, 4))], {}),
    "Sitewise.populations": lambda: (bounce.populations, [_sites()], {}),
    "Sitewise.run": lambda: (bounce.run, [_sites(), 2], {"plan": lw.Plan()}),
    "Sitewise.stepper": lambda: (bounce.stepper, [_sites()], {"plan": None}),
    "Sitewise.compile": lambda: (bounce.compile, [_sites()], {"plan": None}),
    "Sitewise.observer": lambda: (bounce.observer, [_function], {}),
    "Sitewise.kind": lambda: (lw.sitewise(lw.D2Q9)(bounce.python).kind, [1, "inlet"], {}),
    "Sitewise.wall": lambda: (lw.sitewise(lw.D2Q9)(bounce.python).wall, [1, "lid"], {"velocity": "u"}),
    "Sitewise.force": lambda: (walled.force, [walled.sites((4, 4), edges={"y": "wall"}), ["wall"]], {"weights": False}),
    "Sitewise.field": lambda: (lw.sitewise(lw.D2Q9)(bounce.python).field, ["psi"], {}),
    "Stencil.sites": lambda: (
        warm.sites, [(4, 4)],
        {"mask": np.zeros((4, 4), int), "edges": {"x": "slip"}, "storage": "f32", "layout": lw.SoA(), "device": "cpu", "t": 1.0},
    ),
    "Stencil.set_fields": lambda: (warm.set_fields, [_plate()], {"t": np.ones((4, 4))}),
    "Stencil.field": lambda: (warm.field, [_plate(), "t"], {}),
    "Stencil.run": lambda: (warm.run, [_plate(), 2], {"plan": lw.Plan()}),
    "Stencil.stepper": lambda: (warm.stepper, [_plate()], {"plan": None}),
    "Stencil.compile": lambda: (warm.compile, [_plate()], {"plan": None}),
    "Stencil.observer": lambda: (warm.observer, [_function], {}),
    "Stencil.kind": lambda: (lw.stencil(lw.D2Q5)(warm.python).kind, [1, "heater"], {}),
    "Stencil.wall": lambda: (lw.stencil(lw.D2Q5)(warm.python).wall, [1, "hot"], {"t": "hot"}),
    # ------------------------------------------------------------ gravity
    **{f"gravity.{n}": lambda n=n: (getattr(gravity, n), [], {"position": (1, 2, 3), "mass": 1.0}) for n in ("Body", "Body64", "BodyMixed")},
    "gravity.Integrator": lambda: (gravity.Integrator, ["mine", 1, (1.0, 0.0), (1.0,)], {}),
    "WallFractions": lambda: (lw.WallFractions, [np.array([9]), np.full((1, 9), 0.25)], {}),
    "gravity.Force": lambda: (gravity.Force, [near.bind(grains(), grains())], {"energy": grow.bind(grains(), np.ones(6))}),
    "gravity.Simulation": lambda: (
        gravity.Simulation, [bodies()],
        {"softening": 0.1, "integrator": "leapfrog", "gravitational_constant": 1.0, "time": 0.0, "step": 0, "plan": None, "profile": None},
    ),
    "gravity.Simulation.advance": lambda: (_gravity().advance, [1, 1e-3], {}),
    "gravity.Simulation.explain": lambda: (_gravity().explain, [], {}),
    "gravity.Simulation.prepare": lambda: (_gravity().prepare, [1e-3], {}),
    "gravity.Simulation.run": lambda: (_gravity().run, [2, 1e-3], {"callback": print_nothing, "every": 1}),
    "gravity.Simulation.steps": lambda: (_gravity().steps, [1e-3], {"every": 2}),
    "gravity.Simulation.continue_from": lambda: (gravity.Simulation(bodies()).continue_from, [1, 1e-3], {}),
    **{f"gravity.Simulation.{n}=": lambda n=n: (functools.partial(setattr, gravity.Simulation(bodies()), n), [getattr(_gravity(), n)], {})
       for n in ("softening", "gravitational_constant")},
    "gravity.Simulation.check_whole": lambda: (_gravity().check_whole, [], {}),
    **{f"gravity.Diagnostics.{n}": lambda n=n: (getattr(_gravity().diagnostics(), n), [_gravity().diagnostics()], {})
       for n in ("energy_error", "energy_drift", "momentum_drift", "angular_momentum_drift")},
    "gravity.Simulation.diagnostics": lambda: (_gravity().diagnostics, [], {}),
    "gravity.Simulation.energy": lambda: (_gravity().energy, [], {}),
    "gravity.Simulation.force_errors": lambda: (_gravity().force_errors, [], {}),
    "gravity.make_bodies": lambda: (
        gravity.make_bodies, [gravity.make_initial_conditions("two-body")], {"precision": "f32", "layout": lw.SoA(), "device": "cpu"}
    ),
    "gravity.make_initial_conditions": lambda: (gravity.make_initial_conditions, ["plummer"], {"bodies": 9, "seed": 3}),
    # ------------------------------------------------------------ boids
    **{f"boids.{n}": lambda n=n: (getattr(boids, n), [], {"position": (1, 2, 3), "speed": 1.0}) for n in ("Boid", "Boid64")},
    "boids.Flock": lambda: (
        boids.Flock, [12],
        {"world": 20.0, "semantics": "sync", "k": 3, "search": "auto", "boundary": "wrap", "obstacles": [boids.Sphere((1, 2, 3), 2.0)],
         "think_every": 1, "precision": "f32", "layout": "soa", "device": "cpu", "start": "ball", "start_radius": 3.0, "seed": 1, "mass": 2.0},
    ),
    "boids.Flock.state": lambda: (boids.Flock, [], {"state": boids.make_state(5), "search": "all-pairs", "profile": lw.Profile()}),
    "boids.Flock.advance": lambda: (_flock().advance, [1], {"dt": 0.01}),
    "boids.Flock.prepare": lambda: (_flock().prepare, [0.01], {}),
    "boids.Flock.sequence": lambda: (_flock().sequence, [2], {}),
    "boids.Flock.run": lambda: (_flock().run, [2], {"dt": 0.01, "callback": print_nothing, "every": 1}),
    "boids.Flock.steps": lambda: (_flock().steps, [0.01], {"every": 2}),
    "boids.Flock.checkpoint": lambda: (_flock().checkpoint, [_file("written.h5")], {"overwrite": True}),
    "boids.Flock.resume": lambda: (boids.Flock.resume, [_file("flock.h5")], {"device": "cpu"}),
    "boids.Flock.check_whole": lambda: (_flock().check_whole, [], {}),
    "boids.Flock.describe_search": lambda: (_flock().describe_search, [], {}),
    "boids.Flock.polarisation": lambda: (_flock().polarisation, [], {}),
    "boids.Flock.explain": lambda: (_flock().explain, [], {}),
    "boids.Flock.statistics": lambda: (_flock().statistics, [], {}),
    "boids.Boundary": lambda: (boids.Boundary, ["mine", "what it does", 1], {}),
    "boids.Parameters": lambda: (boids.Parameters, [], {"radius": 2.0, "mass": 1.0, "unit_side": True}),
    "boids.Sphere": lambda: (boids.Sphere, [(1, 2, 3), 2.0], {"seen": "inside"}),
    "boids.Box": lambda: (boids.Box, [(1, 2, 3), 2.0, 3.0, 4.0], {"forward": (0, 0, 1), "up": (0, 1, 0), "seen": "both"}),
    "boids.Rectangle": lambda: (boids.Rectangle, [(1, 2, 3), 2.0, 3.0], {"forward": (0, 0, 1), "up": (0, 1, 0)}),
    "boids.Plane": lambda: (boids.Plane, [(1, 2, 3)], {"normal": (0, 0, 1), "seen": "both"}),
    "boids.State": lambda: (boids.State, [positions()] * 3 + [np.ones(6), positions(), np.arange(6)], {}),
    "boids.make_state": lambda: (boids.make_state, [7], {"start": "disc", "radius": 2.0, "world": 9.0, "max_speed": 3.0, "seed": 1}),
    "boids.read_state": lambda: (boids.read_state, [_file("state.csv")], {}),
    "boids.write_state": lambda: (boids.write_state, [_file("out.csv"), boids.make_state(3)], {"overwrite": True}),
    "boids.read_obstacles": lambda: (boids.read_obstacles, [_file("rocks.toml")], {}),
    # ------------------------------------------------------------ flow
    "lbm.Simulation": lambda: (
        lbm.Simulation, [],
        {"shape": (6, 8), "lattice": "D2Q9", "viscosity": 0.1, "collision": "trt", "parameters": {"magic": 0.25}, "smagorinsky": 0.1,
         "force": (1e-5, 0.0), "mask": np.zeros((6, 8), bool), "kinds": {1: lbm.Wall("wall")}, "edges": {"y": "wall"}, "density": 1.0,
         "velocity": (0.01, 0.0), "gradient": None, "precision": "f32", "storage": "f32", "streaming": "pull", "layout": None,
         "device": "cpu", "outflow_speed": 1.0, "surfaces": None, "profile": None},
    ),
    "lbm.Simulation.re": lambda: (lbm.Simulation, [], {"shape": [6, 8], "re": 10.0, "speed": 0.05, "length": 6.0, "gradient": np.zeros((6, 8, 2, 2))}),
    "lbm.Simulation.omega": lambda: (lbm.Simulation, [], {"shape": (6, 8), "omega": 1.0, "velocity": np.zeros((6, 8, 2))}),
    "lbm.Simulation.advance": lambda: (_flow().advance, [1], {}),
    "lbm.Simulation.explain": lambda: (_flow().explain, [], {}),
    "lbm.Simulation.check": lambda: (_flow().check, [], {}),
    "lbm.Simulation.checkpoint": lambda: (_flow().checkpoint, [_file("written-flow.h5")], {"overwrite": True}),
    "lbm.Simulation.resume": lambda: (
        lbm.Simulation.resume, [_file("flow.h5")], {"device": "cpu", "streaming": "pull", "layout": None, "profile": None}
    ),
    "lbm.Simulation.force_on": lambda: (_flow().force_on, ["wall"], {}),
    "lbm.Simulation.prepare": lambda: (_flow().prepare, [], {}),
    "lbm.Simulation.prepare_looks": lambda: (_flow().prepare_looks, [2, "wall"], {}),
    "lbm.Simulation.stagger": lambda: (_flow().stagger, [], {}),
    "lbm.Simulation.run": lambda: (_flow().run, [2], {"callback": print_nothing, "every": 1}),
    "lbm.Wall": lambda: (lbm.Wall, ["lid"], {"velocity": (0.1, 0.0)}),
    "lbm.Open": lambda: (lbm.Open, ["in", "equilibrium", "x-"], {"velocity": (0.1, 0.0), "density": 1.0, "profile": None}),
    "lbm.Units": lambda: (
        lbm.Units, [],
        {"length_m": 0.1, "velocity_m_s": 0.1, "viscosity_m2_s": 1e-4, "density_kg_m3": 1e3, "sites": 20, "lattice_velocity": 0.05},
    ),
    "lbm.Units.at_reynolds": lambda: (
        lbm.Units.at_reynolds, [100.0], {"length_m": 0.1, "velocity_m_s": 0.1, "density_kg_m3": 1e3, "sites": 20}
    ),
    "lbm.Units.check": lambda: (_units().check, ["trt"], {}),
    "lbm.Units.describe": lambda: (_units().describe, [], {}),
    "lbm.Units.steps": lambda: (_units().steps, [1.0], {}),
    **{f"lbm.Units.force_{way}": lambda way=way: (getattr(_units(), f"force_{way}"), [1.0], {"dimensions": 2}) for way in ("to_si", "to_lattice")},
    **{f"lbm.Units.{q}_{way}": lambda q=q, way=way: (getattr(_units(), f"{q}_{way}"), [np.ones(3)], {})
       for q in ("acceleration", "density", "length", "pressure", "time", "velocity") for way in ("to_si", "to_lattice")},
    "obstacles.as_kinds": lambda: (obstacles.as_kinds, [np.zeros((3, 4), int), (3, 4), {0: "fluid"}], {"solid": 1}),
    "obstacles.as_solid": lambda: (obstacles.as_solid, [np.zeros((3, 4), bool), (3, 4)], {}),
    "obstacles.box": lambda: (obstacles.box, [(6, 8), (3, 3), (2, 2)], {}),
    "obstacles.disc": lambda: (obstacles.disc, [(6, 8), (3, 3), 2.0], {}),
    "obstacles.sphere": lambda: (obstacles.sphere, [(6, 8, 8), (3, 3, 3), 2.0], {}),
    "obstacles.cylinder": lambda: (obstacles.cylinder, [(6, 8, 8), (3, 3), 2.0], {"axis": "x"}),
    "obstacles.porous": lambda: (obstacles.porous, [(16, 16), 0.3], {"radius": 2.0, "seed": 1}),
    "obstacles.Round": lambda: (obstacles.Round, [(3.0, 3.0), 2.0], {"axes": "xy"}),
    "obstacles.SignedDistance": lambda: (obstacles.SignedDistance, [np.sum], {}),
    "obstacles.Placement": lambda: (obstacles.Placement, [], {"fraction": 0.5, "at": (0.5, 0.5)}),
    "obstacles.Placement.middle": lambda: (obstacles.Placement().middle, [(6, 8)], {}),
    "obstacles.Placement.sites_per_unit": lambda: (obstacles.Placement().sites_per_unit, [(3.0, 4.0), (6, 8), 0.5], {}),
    "obstacles.Mesh.of": lambda: (obstacles.Mesh.of, [[[0, 0, 0], [1, 0, 0], [0, 1, 0.0]], [[0, 1, 2]]], {}),
    "obstacles.read_mask": lambda: (obstacles.read_mask, [_file("mask.npy"), (6, 8)], {"placement": None, "report": None}),
    "obstacles.image_mask": lambda: (
        obstacles.image_mask, [_file("missing.png"), (6, 8)], {"solid": "dark", "threshold": 0.5, "placement": None, "report": None}
    ),
    **{f"obstacles.{n}": lambda n=n: (
        getattr(obstacles, n), [_mesh(), (6, 6, 6)], {"placement": None, "rotate": (0, 0, 0), "rule": "winding", "report": None, "name": "mesh"}
    ) for n in ("mesh_mask", "mesh_solid")},
    **{f"obstacles.{n}": lambda n=n: (
        getattr(obstacles, n), [_file("missing.stl"), (6, 6, 6)], {"placement": None, "rotate": (0, 0, 0), "rule": "winding", "report": None}
    ) for n in ("stl_mask", "stl_solid")},
    # ------------------------------------------------------------ files and pictures
    "io.Particles.of": lambda: (
        io.Particles.of, [positions(), positions(), np.ones(6)], {"ids": np.arange(6), "component": 1, "time": 0.0, "softening": 0.1}
    ),
    "io.Particles.take": lambda: (gravity.make_initial_conditions("two-body").take, [np.array([0])], {}),
    "io.read_particles": lambda: (io.read_particles, [_file("bodies.csv")], {}),
    "io.write_particles": lambda: (io.write_particles, [_file("again.csv"), gravity.make_initial_conditions("two-body")], {"overwrite": True}),
    "plot.flow_title": lambda: (flow_title, ["karman", (6, 8), 3], {"reynolds": 100.0}),
}  # fmt: skip

SLOW: dict[str, Callable[[], Good]] = {  # a second each: for long runs
    "plot.plot_gravity": lambda: (
        plot_gravity, [_file("g.png"), positions(), positions(), np.arange(3.0), np.zeros(3), "title"], {}
    ),
    "plot.plot_flow": lambda: (plot_flow, [_file("f.png"), np.zeros((6, 8, 2)), "title"], {"quantity": "speed", "limits": (0.0, 1.0)}),
}  # fmt: skip


COMPILING = (
    "gravity.Simulation", "gravity.Diagnostics", "boids.Flock", "lbm.Simulation", "Sitewise.", "Stencil.", "couple", "nearest", "neighbors", "Elementwise.", "Pairwise.", "Segmentwise.", "Threadwise.", "Ragged.",
)  # fmt: skip
"""Beginnings of the names whose calls compile kernels: some seconds each, the first time."""

ABSENT = ("obstacles.image_mask", "obstacles.stl_mask", "obstacles.stl_solid")
"""Good but for the file, which is missing: they need packages that are optional."""


def _plate() -> Any:
    return warm.sites((4, 4), t=1.0, device="cpu")


def print_nothing(_: Any) -> None:
    """A callback."""


def public_names() -> list[str]:
    """Everything that a user may call: functions, classes and their methods."""
    found: list[str] = []
    for place, module in (("", lw), *((f"{n}.", m) for n, m in PLACES.items())):
        for name in module.__all__:
            thing = getattr(module, name)
            if callable(thing):
                found.append(place + name)
            if isinstance(thing, type):
                found += [f"{place}{name}.{method}" for method in _methods(thing)]
    for name, cls in KERNELS.items():
        found += [name, *(f"{name}.{method}" for method in _methods(cls))]
    return found


def _methods(cls: type[Any]) -> list[str]:
    own = {n: v for base in cls.__mro__ if base.__module__.startswith("lanewise") for n, v in vars(base).items()}
    return sorted(
        n
        for n, v in own.items()
        if not n.startswith("_") and (isinstance(v, (staticmethod, classmethod)) or inspect.isfunction(v))
    )
