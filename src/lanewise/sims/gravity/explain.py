"""The force kernel of gravity, to be explained, and as a simulation binds it, to be tuned."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import lanewise as lw
from lanewise.layouts import default_layout, layout_by_name
from lanewise.sims.common.checks import check_known
from lanewise.sims.common.devices import check_compiled
from lanewise.sims.common.searches import ResultsToAll
from lanewise.sims.common.shown import (
    Law,
    RowsDivided,
    RowsToAll,
    Sent,
    Shown,
    ShownCall,
    ShownDivision,
    ShownSize,
    ShownWork,
    TunedCall,
    even,
    listed,
)
from lanewise.sims.gravity.bodies import make_bodies
from lanewise.sims.gravity.checks import self_force_vanishes
from lanewise.sims.gravity.initial import make_initial_conditions
from lanewise.sims.gravity.options import Settings
from lanewise.sims.gravity.physics import RECORDS, make_physics, pair_type
from lanewise.sims.gravity.plans import wanted_force
from lanewise.sims.gravity.simulation import Simulation
from lanewise.sims.gravity.trees import law_over, tree_of, with_method
from lanewise.support.errors import InputError
from lanewise.support.numerals import counted

READ = ("position", "mass")  # of a source
SOFTENING2 = 1e-4  # the square of a Plummer softening of 0.01


def explained(
    device: str,
    bodies: int,
    precision: str,
    layout: str | None,
    values: Mapping[str, float],
    **method: Any,
) -> tuple[str, tuple[Shown, ...]]:
    """What `lanewise explain gravity` shows: nothing above the one kernel over all pairs; above the
    launches of forces by a tree, of a Plummer sphere, what is proved of the force.

    method: how forces are found, as the settings of that name, which say what is not given. Raises
    `InputError`.
    """
    settings, why = with_method(Settings(**method, device=device), bodies)
    search = tree_of(settings)
    if search is None:
        return "", (force_of(bodies, precision, layout, values),)
    kernel, softening2 = _force(precision, values)
    particles = make_initial_conditions("plummer", bodies)
    chosen = layout_by_name(layout) if layout else default_layout(kernel_record(precision), device)
    arrays = make_bodies(particles, precision=precision, layout=chosen, device="cpu")
    made = ShownCall(
        kernel.using(search=search),
        (arrays, arrays),
        {"softening2": softening2},
        requested=wanted_force(precision, tree=True),
    )
    heading = (
        f"forces by a {search.describe()} ({why}), of "
        f"{counted(bodies, 'body', 'bodies')} of a Plummer sphere\n{lw.far_field(kernel)}"
    )
    return heading, (made,)


def divided(
    mesh: str,
    device: str,
    bodies: int,
    precision: str,
    layout: str | None,
    values: Mapping[str, float],
    **method: Any,
) -> tuple[str, ShownDivision]:
    """The same of a step of leapfrog on a mesh, by its text; device: the kind of its devices.

    method: as for `explained`.
    """
    heading, (force,) = explained(device, bodies, precision, layout, values, **method)
    cls: Any = RECORDS[precision]
    physics = make_physics(cls, softened=True)
    kind = layout_by_name(layout) if layout else None
    tree = isinstance(force, ShownCall)
    moves = [ShownSize(k, bodies, kind, {}) for k in (physics.kick_drift, physics.kick)]
    works = (ShownWork(force, pairs=not tree), *map(ShownWork, moves))
    name = force.kernel.__name__
    read = sum(x.type.size for x in kernel_record(precision).leaves if x.field in READ)
    laws: list[Law] = [RowsToAll(f"sources of {name}", read)]
    if tree:
        row = 3 * (8 if pair_type(precision) == "f64" else 4)
        pieces = force.kernel.search.method == "dual"
        laws.append(ResultsToAll(f"results of {name}", row, pieces))

    def sent(rows: tuple[int, ...]) -> tuple[Sent, ...]:
        return tuple(law(rows) for law in laws)

    divides = RowsDivided(even(bodies, len(listed(mesh))), sent)
    return heading, ShownDivision("bodies", divides.divide, divides.grow, works)


def kernel_record(precision: str) -> Any:
    """The record of bodies of a precision; raises `InputError` for an unknown one."""
    check_known("precision", precision, RECORDS)
    cls: Any = RECORDS[precision]
    return cls.__record__


def _force(precision: str, values: Mapping[str, float]) -> tuple[lw.Pairwise, float]:
    """The force kernel of a simulation, and the square of its softening."""
    kernel_record(precision)
    for other in set(values) - {"softening2"}:
        raise InputError(f"gravity has no value {other!r} to set; it has softening2")
    softening2 = values.get("softening2", SOFTENING2)
    if not softening2 >= 0:
        raise InputError(
            f"--set softening2={softening2}: the square of a softening is zero or more"
        )
    softened = self_force_vanishes(softening2**0.5, pair_type(precision))
    return make_physics(RECORDS[precision], softened).acceleration, softening2


def force_of(
    bodies: int,
    precision: str = "f32",
    layout: str | None = None,
    values: Mapping[str, float] | None = None,
) -> ShownSize:
    """The force kernel of a simulation of that many bodies, with the fields of its plan that a
    simulation fixes.

    As there, `softening2` (in `values`) decides whether it tests for a body that meets itself.
    Raises `InputError`.
    """
    kernel_record(precision)
    cls: Any = RECORDS[precision]
    numbers = {"softening2": SOFTENING2, **(values or {})}
    if (softening2 := numbers["softening2"]) < 0:
        raise InputError(
            f"--set softening2={softening2}: the square of a softening is zero or more"
        )
    softened = math.isnan(softening2) or self_force_vanishes(softening2**0.5, pair_type(precision))
    return ShownSize(
        make_physics(cls, softened).acceleration,
        bodies,
        layout_by_name(layout) if layout else None,
        numbers,
        requested=wanted_force(precision),
    )


def tuned_call(
    device: str,
    bodies: int,
    precision: str,
    layout: str | None,
    values: Mapping[str, float],
    **method: Any,
) -> TunedCall:
    """The force kernel as a simulation of a Plummer sphere binds it, with the fields of the plan
    that it fixes; by a tree, the trees that may keep its accuracy.

    method: how forces are found, as the settings of that name. Raises `InputError`.
    """
    check_compiled("gravity", device)  # before bodies are made, which takes long there
    _, softening2 = _force(precision, values)
    asked = Settings(**method, device=device)
    search = tree_of(asked) if with_method(asked, bodies)[0].method == "tree" else None
    if search is not None and search.accuracy is None:
        raise InputError(
            "--method tree needs --accuracy: what is measured is which tree keeps it in the least "
            "time"
        )
    kind = layout_by_name(layout) if layout else None
    arrays = make_bodies(
        make_initial_conditions("plummer", bodies), precision=precision, layout=kind, device=device
    )
    softening = softening2**0.5
    if search is not None:
        law = law_over(search, arrays, softening)
        return TunedCall(law, (arrays, arrays), {"softening2": softening2})
    simulation = Simulation(arrays, softening=softening)
    softened = self_force_vanishes(simulation.softening, pair_type(precision))
    physics = make_physics(type(arrays[0]), softened)
    given = {"plan": simulation.plan, "softening2": softening2}
    return TunedCall(physics.acceleration, (arrays, arrays), given)
