"""Every setting of every product: a resumed run keeps it, to the last bit and the last measurement, or the command
refuses it by name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from lanewise.sims.boids import options as boids
from lanewise.sims.boids.parameters import Parameters
from lanewise.sims.common.options import option_of
from lanewise.sims.gravity import options as gravity
from lanewise.sims.lbm import options as lbm
from tests.cli.command import Command

Words = tuple[object, ...]


@dataclass(frozen=True)
class Product:
    """A command, its settings, and values that are not their defaults.

    base: a short run. changed: for each setting another value, and with it what that one needs (in the place of what
    `base` says of the same). resumable: what may be given with --resume. steps: of the whole run, and of its first
    part.
    """

    name: str
    classes: tuple[type, ...]
    base: Mapping[str, object]
    changed: Mapping[str, Mapping[str, object]]
    resumable: frozenset[str]
    steps: tuple[int, int] = (12, 5)

    def command(self, options: Mapping[str, object], *more: object) -> Words:
        """`lanewise ARGUMENTS` for a run with these options; "" names an argument without a name."""
        words: list[object] = [self.name, "run"]
        for name, value in options.items():
            words += [value] if name == "" else [name] if value is True else [name, value]
        return (*words, *more)


FILES = {"--out", "--overwrite", "--plot", "--movie", "--vti", "--forces", "--final"}
GRAVITY = Product(
    "gravity", (gravity.Settings, gravity.Output, gravity.Asked, gravity.Pictures),
    {"--bodies": 20, "--softening": 0.05, "--dt": 0.01},
    {
        "ic": {"--ic": "uniform-sphere"}, "dt": {"--dt": 0.002}, "softening": {"--softening": 0.2},
        "integrator": {"--integrator": "yoshida4"}, "precision": {"--precision": "mixed"}, "layout": {"--layout": "aos"},
        "device": {"--device": "cpu"}, "gravitational_constant": {"-G": 2.5}, "seed": {"--seed": 7}, "bodies": {"--bodies": 31},
        "diagnostics_every": {"--diagnostics-every": 3}, "snapshot_every": {"--snapshot-every": 4},
        "checkpoint_seconds": {"--checkpoint-seconds": 0}, "method": {"--method": "tree"},
        "theta": {"--theta": 0.8, "--method": "tree"}, "order": {"--order": 2, "--method": "tree"}, "leaf": {"--leaf": 4, "--method": "tree"},
        "accuracy": {"--accuracy": 0.01, "--method": "tree"}, "walk": {"--walk": "dual", "--method": "tree"},
    },
    frozenset({"steps", "device", "diagnostics_every", "snapshot_every", "checkpoint_seconds"}),
)  # fmt: skip
FLOCKS = Product(
    "boids", (boids.Asked, boids.Length, Parameters, boids.Output, boids.Pictures),
    {"--agents": 40, "--world": 20, "--search": "all-pairs", "--dt": 0.05},
    {
        "agents": {"--agents": 31}, "world": {"--world": 25}, "boundary": {"--boundary": "periodic"},
        "obstacles": {"--obstacle": "sphere:3,0,1,4"}, "start": {"--start": "cube"}, "start_radius": {"--start-radius": 9},
        "seed": {"--seed": 7}, "semantics": {"--semantics": "thesis"}, "k": {"--k": 5}, "search": {"--search": "static-grid"},
        "think_every": {"--think-every": 3}, "dimension": {"--dimension": 2}, "collide": {"--collide": True, "--start-radius": 3}, "precision": {"--precision": "f64"}, "device": {"--device": "cpu"},
        "layout": {"--layout": "aos"}, "dt": {"--dt": 0.02}, "every": {"--every": 2, "--checkpoint-every": 3}, "checkpoint_every": {"--checkpoint-every": 3},
        "radius": {"--radius": 9.5}, "near_radius": {"--near-radius": 2.0}, "separation_radius": {"--separation-radius": 4},
        "separation_cosine": {"--separation-cosine": -0.2}, "separation_weight": {"--separation-weight": 20},
        "alignment_radius": {"--alignment-radius": 6}, "alignment_cosine": {"--alignment-cosine": 0.2},
        "alignment_weight": {"--alignment-weight": 15}, "cohesion_radius": {"--cohesion-radius": 6},
        "cohesion_cosine": {"--cohesion-cosine": 0.2}, "cohesion_weight": {"--cohesion-weight": 3}, "max_force": {"--max-force": 9},
        "max_speed": {"--max-speed": 5}, "mass": {"--mass": 2},
        "agent_radius": {"--agent-radius": 1, "--obstacle": "sphere:3,0,1,4"},
        "avoid_time": {"--avoid-time": 3, "--obstacle": "sphere:3,0,1,4"},
    },
    frozenset({"steps", "device", "dt", "every", "checkpoint_every", "colour", "cluster_radius", "camera", "select", "size", "fps"}),
)  # fmt: skip
KARMAN: dict[str, object] = {"": "karman", "--size": 4}
FLOWS = Product(
    "lbm", (lbm.Asked, lbm.End, lbm.Method, lbm.Output),
    KARMAN,
    {
        "case": {"": "cavity", "--size": 8}, "re": {"--re": 50}, "size": {"--size": 5}, "speed": {"--speed": 0.05},
        "drive": {"": "channel", "--size": 8, "--drive": "pressure"}, "lattice": {"": "duct", "--size": 6, "--lattice": "D3Q27"},
        "mask": {"--mask": "mask.npy"}, "stl": {"": "sphere", "--stl": "body.stl", "--size": 5},
        "collision": {"--collision": "mrt"}, "smagorinsky": {"": "karman", "--size": 4, "--smagorinsky": 0.1, "--collision": "regularised"}, "walls": {"--walls": "half-way"},
        "precision": {"--precision": "f64"}, "storage": {"--storage": "f64"}, "streaming": {"--streaming": "pull"},
        "layout": {"--layout": "aos"}, "device": {"--device": "cpu"}, "checkpoint_every": {"--checkpoint-every": 3},
        "until_steady": {"": "cavity", "--size": 4, "--speed": 0.1, "--re": 10, "--until-steady": True, "--tolerance": 1e-3, "--checkpoint-every": 50},
        "tolerance": {"": "cavity", "--size": 4, "--speed": 0.1, "--re": 10, "--until-steady": True, "--tolerance": 1e-2},
    },
    frozenset({"steps", "device", "streaming", "layout", "until_steady", "tolerance", "checkpoint_every", "movie_every"}),
)  # fmt: skip
PRODUCTS = {p.name: p for p in (GRAVITY, FLOCKS, FLOWS)}
ELSEWHERE = {
    "steps",
    "resume",
    "table",
    "movie_every",
    "colour",
    "cluster_radius",
    "camera",
    "select",
    "calibrate",  # what a clock chooses; test_a_calibrated_tree_stays_in_a_checkpoint
    "size",
    "fps",
    "bodies",
    "projection",
    "show",
    "width",
}
"""The length of the run and its start, which the tests choose themselves, and how pictures look."""
CASES = [(p.name, setting) for p in PRODUCTS.values() for setting in p.changed]
QUICK = {("gravity", "diagnostics_every"), ("boids", "every"), ("lbm", "until_steady")}


def options_of(product: Product) -> dict[str, Any]:
    return {f.name: o for cls in product.classes for f in fields(cls) if (o := option_of(f)) is not None}


@pytest.mark.parametrize("name", PRODUCTS)
def test_every_setting_is_looked_at(name: str) -> None:
    product = PRODUCTS[name]
    files = {f.lstrip("-") for f in FILES}
    assert options_of(product).keys() - files - ELSEWHERE <= product.changed.keys()


def contents(path: str) -> dict[str, Any]:
    """All of a file but the version: arrays, and attributes with what a run is to do."""
    found: dict[str, Any] = {}

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            found[name] = (item.dtype.str, item.shape, np.asarray(item).tobytes())
        for key, value in item.attrs.items():
            found[f"{name}@{key}"] = (
                json.loads(value) if isinstance(value, bytes) and value[:1] == b"{" else np.asarray(value).tolist()
            )

    with h5py.File(path) as file:
        visit("", file)
        file.visititems(visit)
    return found


def make_bodies() -> None:
    """What the obstacles of flows are read from."""
    mask = np.zeros((48, 96), bool)
    mask[20:28, 22:27] = True
    np.save("mask.npy", mask)
    corners = np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], float)
    lines = ["solid body"]
    for face in ((0, 2, 1), (0, 1, 3), (1, 2, 3), (2, 0, 3)):
        vertices = "\n".join("vertex {} {} {}".format(*corners[k]) for k in face)
        lines += ["facet normal 0 0 0", "outer loop", vertices, "endloop", "endfacet"]
    Path("body.stl").write_text("\n".join([*lines, "endsolid body"]))


@pytest.mark.parametrize(
    ("name", "setting"), [c if c in QUICK else pytest.param(*c, marks=pytest.mark.slow) for c in CASES]
)
def test_a_resumed_run_keeps_it(lanewise: Command, name: str, setting: str) -> None:
    product = PRODUCTS[name]
    make_bodies()
    steady = setting in ("until_steady", "tolerance")
    whole, first = product.steps if not steady else (2000, 0)
    changed = product.changed[setting]
    base = {} if "" in changed else product.base
    options = {**base, **changed}
    one = lanewise(*product.command(options, "--steps", whole, "--out", "whole.h5", "--json"))
    assert one.code == 0, one.err
    if steady:  # between the last two looks: the last one compares with what was seen before the checkpoint
        assert one.last_json["steady"]
        first = one.last_json["step"] - 7
    # As after a kill: the run that was to go on to the end was left behind its first part.
    part = lanewise(*product.command(options, "--steps", first, "--out", "parts.h5"))
    assert part.code == 0, part.err
    rest = lanewise(name, "run", "--resume", "parts.h5", "--steps", whole - first, "--json")
    assert rest.code == 0, rest.err
    assert "may differ" not in rest.err
    same = ("step", "change", "steady") if name == "lbm" else ("step",)
    assert [rest.last_json[n] for n in same] == [one.last_json[n] for n in same]
    found, wanted = contents("parts.h5"), contents("whole.h5")
    assert found.keys() == wanted.keys()
    # Ten measurements a run is a choice that a run of another length makes anew.
    chosen = {"lanewise@diagnostics_every", "lanewise/history"} if setting != "diagnostics_every" else set[str]()
    different = {n for n in wanted if found[n] != wanted[n]} - (chosen if name == "gravity" else set())
    assert {n for n in different if not n.startswith(tuple(chosen))} == set()


@pytest.mark.parametrize("name", PRODUCTS)
def test_what_is_given_with_a_checkpoint_is_refused_by_name_unless_it_may_be(lanewise: Command, name: str) -> None:
    """Before the file is read: no checkpoint is needed to see it."""
    product = PRODUCTS[name]
    refused: dict[str, str] = {}
    for setting, options in product.changed.items():
        flag, value = next((o, v) for o, v in options.items() if v != product.base.get(o) or setting == "case")
        mine = [o for o in options if o.lstrip("-").replace("-", "_") == setting] or [flag]
        words = product.command({mine[0]: options[mine[0]]} if setting != "case" else {"": value})
        outcome = lanewise(*words, "--resume", "absent.h5", "--steps", 1)
        shown = "CASE" if setting == "case" else mine[0]
        if f"{'--gravitational-constant' if shown == '-G' else shown} cannot be given with --resume" in outcome.err:
            refused[setting] = outcome.err
        else:
            assert "absent.h5" in outcome.err, (setting, outcome.err)
        assert outcome.code == 2
    assert product.changed.keys() - refused.keys() == product.resumable & product.changed.keys()
