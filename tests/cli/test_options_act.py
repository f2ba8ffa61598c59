"""An option that a run accepts does something: what was measured differs, or the option is refused
and the message says what it needs. Nothing is taken and then not looked at.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, fields
from typing import Any

import pytest
import typer

from lanewise.sims.boids.command import app as boids
from lanewise.sims.common.viewing import ViewSettings
from lanewise.sims.gravity.command import app as gravity
from lanewise.sims.lbm.command import app as lbm
from tests.cli.command import Command

# options that do not decide what is computed, or have tests of their own
AROUND = {"--device", "--layout", "--overwrite", "--profile", "--profile-trace", "--json", "--quiet"}
AROUND |= {f"--{f.name.replace('_', '-')}" for f in fields(ViewSettings)}  # tests/live
FILES = {"--out", "--resume", "--plot", "--movie", "--final", "--vti", "--forces"}


@dataclass(frozen=True)
class Product:
    """plain: a small run. measured: what it says of the physics. values: for each option another
    value than that of the plain run. same: options that choose how the same is computed or reported.
    """

    app: typer.Typer
    plain: str
    measured: tuple[str, ...]
    values: dict[str, str]
    same: frozenset[str] = frozenset()


PRODUCTS = {
    "gravity": Product(
        gravity,
        "gravity run --bodies 40 --steps 3 --dt 0.01",
        ("bodies", "step", "time", "energy_initial", "energy_final", "momentum_drift", "virial_ratio"),
        {
            "--ic": "uniform-sphere", "--bodies": "41", "--seed": "5", "--gravitational-constant": "2", "--steps": "4", "--dt": "0.02",
            "--softening": "0.5", "--integrator": "euler", "--precision": "f64", "--method": "tree", "--accuracy": "1e-2",
            "--theta": "0.9", "--order": "1", "--leaf": "16", "--walk": "dual", "--calibrate": "", "--diagnostics-every": "1", "--snapshot-every": "1",
            "--checkpoint-seconds": "1", "--movie-every": "1", "--colour": "speed", "--projection": "xz", "--show": "stars",
            "--width": "3", "--size": "300x200", "--fps": "10",
        },
        frozenset({"--diagnostics-every"}),  # how often energies are measured between the ends
    ),
    "lbm": Product(
        lbm,
        "lbm run cavity --size 8 --steps 40",
        ("lattice", "step", "mass_drift", "steady", "change", "results", "interpolated_links"),
        {
            "case": "channel", "--re": "50", "--size": "9", "--speed": "0.05", "--drive": "pressure", "--mask": "mask.npy", "--stl": "body.stl",
            "--steps": "41", "--until-steady": "", "--tolerance": "0.1", "--collision": "bgk", "--smagorinsky": "0.2", "--lattice": "D3Q19",
            "--walls": "interpolated", "--precision": "f64", "--storage": "f64", "--streaming": "pull", "--checkpoint-every": "5",
            "--every": "5",
        },
        frozenset({"--streaming"}),
    ),
    "boids": Product(
        boids,
        "boids run --agents 60 --steps 12 --start-radius 5",
        ("agents", "step", "time", "polarisation", "speed", "nearest_neighbour_distance", "cell_population", "search_chosen"),
        {
            "--agents": "61", "--from": "none.csv", "--world": "9.5", "--boundary": "open", "--obstacle": "sphere:0,0,0,3", "--start": "shell",
            "--start-radius": "6", "--seed": "5", "--semantics": "seq", "--k": "3", "--search": "dynamic-grid", "--think-every": "3", "--dimension": "2", "--collide": "",
            "--steps": "13", "--dt": "0.02", "--precision": "f64", "--radius": "10", "--near-radius": "3", "--separation-radius": "3",
            "--separation-cosine": "0.5", "--separation-weight": "3", "--alignment-radius": "3", "--alignment-cosine": "-0.5",
            "--alignment-weight": "3", "--cohesion-radius": "3", "--cohesion-cosine": "0.5", "--cohesion-weight": "3", "--max-force": "3",
            "--max-speed": "3", "--mass": "3", "--agent-radius": "3", "--avoid-time": "3", "--every": "3", "--checkpoint-every": "3",
            "--colour": "speed", "--cluster-radius": "3", "--camera": "orbit", "--select": "3", "--size": "300x200", "--fps": "10",
        },
    ),
}  # fmt: skip

# what an option needs, with which it does something; and others with which it does not
NEEDED = {
    "gravity": [
        ("--theta 0.2", "--method tree --bodies 400 --steps 1", True), ("--order 1", "--method tree --bodies 400 --steps 1", True), ("--leaf 8", "--method tree --bodies 400 --steps 1", True),
        ("--accuracy 1e-4", "--method tree --bodies 400 --steps 1", True), ("--seed 3", "--ic two-body --bodies 2", False),
        ("--seed 3", "--ic figure-eight --bodies 3", False), ("--seed 3", "--ic pythagorean --bodies 3", False),
    ],
    "lbm": [("--tolerance 0.9", "--until-steady --steps 4000", True), ("--walls interpolated", "--size 9", False)],
    "boids": [
        ("--agent-radius 3", "--obstacle sphere:0,0,0,3", True), ("--avoid-time 9", "--boundary inside-sphere --world 9.5", True),
        ("--agent-radius 3", "--collide", True), ("--avoid-time 9", "--collide --boundary open", False),
        ("--agent-radius 3", "--boundary open", False), ("--avoid-time 9", "--boundary periodic", False),
        ("--cluster-radius 3", "--plot a.png", False), ("--cluster-radius 3", "--plot a.png --colour speed", False),
    ],
}  # fmt: skip


def options(product: Product) -> set[str]:
    """The first names of all options of `run`."""
    group: Any = typer.main.get_command(product.app)
    return {p.opts[0] for p in group.commands["run"].params}


@pytest.mark.parametrize("name", PRODUCTS)
def test_every_option_has_a_value_here(name: str) -> None:
    product = PRODUCTS[name]
    assert options(product) - AROUND - FILES == set(product.values)


def measured(lanewise: Command, product: Product, more: str) -> dict[str, Any] | str:
    """What a run measured, or the message that refused it."""
    plain = shlex.split(product.plain)
    for word in (extra := shlex.split(more)):  # the value of an option that the plain run has
        if word.startswith("--") and word in plain:
            at = plain.index(word)
            del plain[at : at + 2]
    again = ["--overwrite"] if FILES.intersection(extra) else []
    found = lanewise(*plain, *extra, *again, "--json", "--quiet")
    if found.code == 2:
        return found.err
    assert found.code == 0, found.err
    return {key: found.last_json[key] for key in product.measured}


@pytest.mark.slow
@pytest.mark.parametrize("name", PRODUCTS)
def test_each_option_alone_is_refused_or_changes_what_is_measured(lanewise: Command, name: str) -> None:
    product = PRODUCTS[name]
    plain = measured(lanewise, product, "")
    assert isinstance(plain, dict), plain
    idle: list[str] = []
    for option, value in product.values.items():
        if option == "case" or option in product.same:
            continue
        found = measured(lanewise, product, f"{option} {value}")
        if found == plain:
            idle.append(option)
        elif isinstance(found, str) and not found.startswith("error: "):
            idle.append(f"{option}: {found}")  # what this test gave is no value of the option
    assert not idle, "\n".join(idle)


@pytest.mark.slow
@pytest.mark.parametrize("name", PRODUCTS)
def test_options_act_beside_what_they_need(lanewise: Command, name: str) -> None:
    for option, beside, acts in NEEDED[name]:
        if acts:
            without = measured(lanewise, PRODUCTS[name], beside)
            found = measured(lanewise, PRODUCTS[name], f"{beside} {option}")
            assert isinstance(without, dict), (option, without)
            assert isinstance(found, dict), (option, found)
            assert found != without, (option, beside)


@pytest.mark.slow_cases("boids")
@pytest.mark.parametrize("name", PRODUCTS)
def test_options_are_refused_beside_what_does_not_look_at_them(lanewise: Command, name: str) -> None:
    for option, beside, acts in NEEDED[name]:
        if not acts:
            found = measured(lanewise, PRODUCTS[name], f"{beside} {option}")
            assert str(found).startswith("error: "), (option, beside, found)
            assert isinstance(without := measured(lanewise, PRODUCTS[name], beside), dict), without
