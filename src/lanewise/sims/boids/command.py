"""`lanewise boids run`: watch a flock fly."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanewise.profiling import Profile
from lanewise.sims.boids.options import ORDER, Asked, Length, Output, Pictures, Resumed
from lanewise.sims.boids.parameters import Parameters
from lanewise.sims.common.commands import product_app, run_command
from lanewise.sims.common.frame import Product, carry_out
from lanewise.sims.common.options import GivenOptions
from lanewise.sims.common.viewing import ViewSettings
from lanewise.support.errors import InputError
from lanewise.support.numerals import counted

if TYPE_CHECKING:
    from lanewise.sims.boids.run import FlockRun

app = product_app("boids")


def check(given: GivenOptions) -> None:
    """Raise `InputError` for settings that `run` would refuse, without making any agents."""
    from lanewise.sims.boids import run as runner

    chosen, table = _chosen(given)
    runner.check_settings(chosen, table=table, steps=given["steps"], dt=given["dt"])


@run_command(app, Asked, Length, Parameters, Output, Resumed, Pictures, ViewSettings, after=ORDER)
def run(matched: GivenOptions) -> None:
    """Run a flock and report its order and its distances."""
    from lanewise.sims.boids import run as runner

    pictures = matched.make(Pictures)
    if pictures.plot is None and pictures.movie is None:
        _refuse_unseen(matched)
    output = matched.make(Output, pictures=pictures, movie_every=matched["every"] or 0)
    resumed, steps, dt = matched["resume"], matched["steps"], matched["dt"]
    if resumed is not None:
        matched.refuse_with_resume(Asked, Parameters, but=("device",))

    def prepare(profile: Profile | None) -> FlockRun:
        if resumed is not None:
            return runner.resume(
                resumed,
                steps=steps,
                dt=dt,
                device=matched["device"],
                output=output,
                profile=profile,
            )
        chosen, table = _chosen(matched)
        return runner.start(chosen, table=table, steps=steps, dt=dt, output=output, profile=profile)

    product = Product("boids", lambda _: "boids", _rate, _say)
    carry_out(product, matched, prepare, output.out, output.final, pictures.plot, pictures.movie)


def _chosen(given: GivenOptions) -> tuple[dict[str, Any], Path | None]:
    """The arguments of `Flock` that were given, and the table of agents, if there is one."""
    from lanewise.sims.boids import run as runner

    chosen = {**given.of(Asked), **given.of(Parameters)}
    table, obstacles = chosen.pop("table", None), chosen.pop("obstacles", None)
    if obstacles:
        chosen["obstacles"] = runner.obstacles_of(obstacles)
    return chosen, table


def _rate(now: FlockRun) -> str:
    rate = now.steps_per_second
    return f"{rate:,.1f} steps/s, {rate * len(now.state.flock):.2e} agents/s"


def _refuse_unseen(matched: GivenOptions) -> None:
    """What says how a picture looks needs one."""
    for name in ("colour", "cluster_radius", "camera", "select", "size"):
        if matched[name] is not None:
            raise InputError(f"--{name.replace('_', '-')} needs --plot or --movie")


def _say(_: FlockRun, s: dict[str, Any]) -> None:
    agents = counted(s["agents"], "agent", "agents")
    done = f"{counted(s['steps'], 'step', 'steps')} to t = {s['time']:.6g}"
    print(
        f"{agents} ({s['semantics']}), {done} on {s['device']} in {s['layout']}, {s['precision']}"
    )
    print(f"search: {s['search_chosen']} ({s['search_reason']})")
    print(
        f"{s['seconds']:.3f} s, {s['steps_per_second']:,.1f} steps/s, {s['agents_per_second']:.3e} "
        "agents/s"
    )
    speed, nearest, cells = s["speed"], s["nearest_neighbour_distance"], s["cell_population"]
    print(
        f"polarisation {s['polarisation_initial']:.4f} -> {s['polarisation']:.4f}, mean speed "
        f"{speed['mean']:.4g}"
    )
    full = (
        f"{counted(cells['cells'], 'cell', 'cells')} in use with {cells['min']} to "
        f"{counted(cells['max'], 'agent', 'agents')}, "
        f"{cells['mean']:.4g} on average"
    )
    near = f"nearest flockmate {nearest['min']:.4g} away at least, {nearest['mean']:.4g} on average"
    print(f"{'no flockmate near' if math.isnan(nearest['mean']) else near}; {full}")
