"""`lanewise boids run`: watch a flock fly."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from lanewise.cli import boids_options as o
from lanewise.cli import profile as p
from lanewise.cli import runs as r
from lanewise.errors import InputError

if TYPE_CHECKING:
    from lanewise.sims.boids.pictures import Pictures

boids_app = typer.Typer(no_args_is_help=True, help="Flocks: Reynolds' boids, as in OpenSteer.")


@boids_app.callback()
def _group() -> None:
    """Flocks: Reynolds' boids, as in OpenSteer."""


@boids_app.command(cls=p.ProfiledCommand)
def run(
    agents: o.Agents = None,
    from_: o.From = None,
    world: o.World = None,
    boundary: o.Boundary = None,
    obstacles: o.Obstacles = None,
    start: o.Start = None,
    start_radius: o.StartRadius = None,
    seed: o.Seed = None,
    semantics: o.Semantics = None,
    k: o.K = None,
    search: o.Search = None,
    think_every: o.ThinkEvery = None,
    steps: o.Steps = None,
    dt: o.Dt = None,
    precision: o.Precision = None,
    device: o.Device = None,
    layout: o.LayoutName = None,
    radius: o.Radius = None,
    near_radius: o.NearRadius = None,
    separation_radius: o.SeparationRadius = None,
    separation_cosine: o.SeparationCosine = None,
    separation_weight: o.SeparationWeight = None,
    alignment_radius: o.AlignmentRadius = None,
    alignment_cosine: o.AlignmentCosine = None,
    alignment_weight: o.AlignmentWeight = None,
    cohesion_radius: o.CohesionRadius = None,
    cohesion_cosine: o.CohesionCosine = None,
    cohesion_weight: o.CohesionWeight = None,
    max_force: o.MaxForce = None,
    max_speed: o.MaxSpeed = None,
    mass: o.Mass = None,
    agent_radius: o.AgentRadius = None,
    avoid_time: o.AvoidTime = None,
    out: o.Out = None,
    final: o.Final = None,
    plot: o.Plot = None,
    movie: o.Movie = None,
    every: o.Every = None,
    colour: o.Colour = None,
    cluster_radius: o.ClusterRadius = None,
    camera: o.Camera = None,
    select: o.Select = None,
    size: o.Size = None,
    fps: o.Fps = None,
    resume: o.Resume = None,
    checkpoint_every: o.CheckpointEvery = None,
    overwrite: o.Overwrite = False,
    profile: p.Wanted = False,
    profile_trace: p.Trace = None,
    json_: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Run a flock and say what became of it."""
    chosen: dict[str, Any] = {
        "agents": agents, "world": world, "boundary": boundary, "start": start, "start_radius": start_radius, "seed": seed,
        "semantics": semantics, "k": k, "search": search, "think_every": think_every, "precision": precision, "layout": layout,
        "radius": radius, "near_radius": near_radius, "separation_radius": separation_radius, "separation_cosine": separation_cosine,
        "separation_weight": separation_weight, "alignment_radius": alignment_radius, "alignment_cosine": alignment_cosine,
        "alignment_weight": alignment_weight, "cohesion_radius": cohesion_radius, "cohesion_cosine": cohesion_cosine,
        "cohesion_weight": cohesion_weight, "max_force": max_force, "max_speed": max_speed, "mass": mass,
        "agent_radius": agent_radius, "avoid_time": avoid_time,
    }  # fmt: skip
    from lanewise.cli.boids_progress import follow
    from lanewise.runtime.compile_workers import side_by_side
    from lanewise.sims.boids import runner
    from lanewise.sims.boids.pictures import Pictures, parse_size
    from lanewise.sims.boids.run import Output

    given = {name: value for name, value in chosen.items() if value is not None}
    report = p.ProfileReport(profile, profile_trace, overwrite, out, resume, final, plot, movie)
    pixels = None if size is None else parse_size(size)
    pictures = Pictures(plot, movie, colour or "heading", cluster_radius, camera or "fixed", select, pixels, fps)
    _refuse_unseen(
        pictures, {"colour": colour, "cluster-radius": cluster_radius, "camera": camera, "select": select, "size": size}
    )
    output = Output(out, final, every or 0, checkpoint_every or 0, overwrite, pictures, every or 0)
    if resume is not None:
        _refuse_given({**given, **({"from": from_} if from_ else {}), **({"obstacle": obstacles} if obstacles else {})})
    with side_by_side(), r.claimed_files(out or r.resumed_file(resume), final, plot, movie, profile_trace):
        if resume is None:
            if obstacles:
                given["obstacles"] = runner.obstacles_of(obstacles)
            given["device"] = device
            prepared = runner.start(given, table=from_, steps=steps, dt=dt, output=output, profile=report.profile)
        else:
            prepared = runner.resume(resume, steps=steps, dt=dt, device=device, output=output, profile=report.profile)
            r.say_note(prepared.note)
        r.follow_to_the_end(prepared, partial(follow, quiet=quiet), report, "boids")
        summary = prepared.summary()
        report.finish(summary)
    _print_summary(summary)
    if json_:
        r.print_json(summary)


def _refuse_given(options: dict[str, Any]) -> None:
    for name in options:
        raise InputError(f"--{name.replace('_', '-')} cannot be given with --resume: the checkpoint keeps its own")


def _refuse_unseen(pictures: Pictures, options: dict[str, Any]) -> None:
    """What says how a picture looks needs one."""
    if pictures.plot is not None or pictures.movie is not None:
        return
    for name, value in options.items():
        if value is not None:
            raise InputError(f"--{name} needs --plot or --movie")


def _print_summary(s: dict[str, Any]) -> None:
    agents = f"{s['agents']:,} agent{'' if s['agents'] == 1 else 's'}"
    done = f"{s['steps']:,} step{'' if s['steps'] == 1 else 's'} to t = {s['time']:.6g}"
    print(f"{agents} ({s['semantics']}), {done} on {s['device']} in {s['layout']}, {s['precision']}")
    print(f"search: {s['search_chosen']} ({s['search_reason']})")
    print(f"{s['seconds']:.3f} s, {s['steps_per_second']:,.1f} steps/s, {s['agents_per_second']:.3e} agents/s")
    speed, nearest, cells = s["speed"], s["nearest_neighbour_distance"], s["cell_population"]
    print(f"polarisation {s['polarisation_initial']:.4f} -> {s['polarisation']:.4f}, mean speed {speed['mean']:.4g}")
    full = (
        f"{cells['cells']:,} cells in use with {cells['min']} to {cells['max']} agents, {cells['mean']:.4g} on average"
    )
    near = f"nearest flockmate {nearest['min']:.4g} away at least, {nearest['mean']:.4g} on average"
    print(f"{'no flockmate near' if math.isnan(nearest['mean']) else near}; {full}")
    for name in ("out", "final", "plot", "movie"):
        if s[name]:
            print(f"written to {s[name]}")
