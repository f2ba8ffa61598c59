"""`lanewise lbm run CASE`: watch a fluid flow."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from lanewise.cli import lbm_options as o
from lanewise.cli import profile as p
from lanewise.cli import runs as r
from lanewise.errors import InputError

if TYPE_CHECKING:
    from lanewise.profiling.profile import Profile
    from lanewise.sims.lbm.cases.bodies import Obstacle
    from lanewise.sims.lbm.run import Output, Run
    from lanewise.sims.lbm.runner import End, Method

lbm_app = typer.Typer(no_args_is_help=True, help="Flow by the lattice Boltzmann method.")


@lbm_app.callback()
def _group() -> None:
    """Flow by the lattice Boltzmann method."""


@lbm_app.command(cls=p.ProfiledCommand)
def run(
    case: o.CaseName = None,
    re: o.Re = None,
    size: o.Size = None,
    speed: o.Speed = None,
    drive: o.Drive = None,
    mask: o.Mask = None,
    stl: o.Stl = None,
    steps: o.Steps = None,
    until_steady: o.UntilSteady = None,
    tolerance: o.Tolerance = None,
    collision: o.Collision = None,
    smagorinsky: o.Smagorinsky = None,
    lattice: o.LatticeName = None,
    walls: o.Walls = None,
    precision: o.Precision = None,
    storage: o.Storage = None,
    streaming: o.Streaming = None,
    layout: o.LayoutName = None,
    device: o.Device = None,
    out: o.Out = None,
    resume: o.Resume = None,
    checkpoint_every: o.CheckpointEvery = None,
    vti: o.Vti = None,
    plot: o.Plot = None,
    movie: o.Movie = None,
    every: o.Every = None,
    forces: o.Forces = None,
    overwrite: o.Overwrite = False,
    profile: p.Wanted = False,
    profile_trace: p.Trace = None,
    json_: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Run a case and say what it found."""
    from lanewise.runtime.compile_workers import side_by_side
    from lanewise.sims.lbm import runner
    from lanewise.sims.lbm.run import Output

    report = p.ProfileReport(profile, profile_trace, overwrite, out, resume, vti, plot, movie, forces)
    output = Output(out, vti, plot, movie, every or 0, forces, checkpoint_every or 0, overwrite)
    method = runner.Method(collision, precision, storage, streaming, layout, device, smagorinsky or 0.0, walls)
    end = runner.End(steps, until_steady, tolerance)
    if resume is not None:
        kept: dict[str, Any] = {
            "CASE": case, "--re": re, "--size": size, "--speed": speed, "--drive": drive, "--mask": mask, "--stl": stl,
            "--collision": collision, "--smagorinsky": smagorinsky, "--lattice": lattice, "--precision": precision,
            "--storage": storage, "--walls": walls,
        }  # fmt: skip
        _refuse_given(kept)
    with side_by_side(), r.claimed_files(out or r.resumed_file(resume), vti, plot, movie, forces, profile_trace):
        if resume is None:
            chosen = {"re": re, "size": size, "speed": speed, "lattice": lattice, "drive": drive}
            obstacle = _obstacle(mask, stl, quiet=quiet)
            prepared = _started(case, chosen, obstacle, method, end, output, report.profile)
        else:
            prepared = _resumed(resume, method, end, output, report.profile)
        _follow(prepared, report, quiet=quiet)
        summary = runner.finish(prepared)
        report.finish(summary)
    if (found := prepared.stagger()).warned:
        print(f"warning: {found.warning}", file=sys.stderr)
    _print_summary(summary)
    if json_:
        r.print_json(summary)


def _started(
    case: str | None, chosen: dict[str, Any], obstacle: Obstacle | None, method: Method, end: End, output: Output,
    profile: Profile | None,
) -> Run:  # fmt: skip
    """The run of a case with what the user chose of it; says its warnings on standard error, each once."""
    from lanewise.sims.lbm import runner
    from lanewise.sims.lbm.cases import find_case
    from lanewise.sims.lbm.checks import FlowWarning

    found = find_case(_required(case))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", FlowWarning)
        prepared = runner.start(found, found.request(**chosen, obstacle=obstacle), method, end, output, profile)
    for text in dict.fromkeys(str(w.message) for w in warned):
        print(f"warning: {text}", file=sys.stderr)
    return prepared


def _resumed(path: Path, method: Method, end: End, output: Output, profile: Profile | None) -> Run:
    """The run of a checkpoint; says on standard error why its bits may not be those of an uninterrupted one."""
    from lanewise.sims.lbm import runner

    prepared = runner.resume(path, method, end, output, profile)
    r.say_note(prepared.note)
    return prepared


def _follow(prepared: Run, report: p.ProfileReport, *, quiet: bool) -> None:
    """Run to the end; exits with the code of an interruption after Ctrl-C."""
    from lanewise.cli.lbm_progress import follow

    r.follow_to_the_end(prepared, partial(follow, quiet=quiet), report, "lbm")


def _required(case: str | None) -> str:
    from lanewise.sims.lbm.cases import CASES

    if case is None:
        raise InputError(f"no case is named; wanted one of {', '.join(CASES)}, or --resume FILE")
    return case


def _refuse_given(options: dict[str, Any]) -> None:
    for name, value in options.items():
        if value is not None:
            raise InputError(f"{name} cannot be given with --resume: the checkpoint keeps its own")


def _obstacle(mask: Path | None, stl: Path | None, *, quiet: bool) -> Obstacle | None:
    """What reads the obstacle once its box is known; says on standard error how it was fitted in."""
    if mask is not None and stl is not None:
        raise InputError("--mask and --stl both name an obstacle; wanted one of them")
    path = mask or stl
    if path is None:
        return None

    def place(shape: Sequence[int], centre: Sequence[float], width: float) -> Any:
        said: list[str] = []
        solid = _mask_sites(path, shape, said) if stl is None else _mesh_sites(path, shape, centre, width, said)
        if not quiet:
            print(*said, sep="\n", file=sys.stderr)
        return solid

    return place


def _mask_sites(path: Path, shape: Sequence[int], said: list[str]) -> Any:
    """The solid sites of a picture or an array that covers the box."""
    from lanewise.io.source import reading
    from lanewise.sims.lbm.obstacles import as_solid, read_mask

    found = read_mask(path, shape, report=said.append)
    with reading(path, "mask", ()):
        return as_solid(found, shape)


def _mesh_sites(path: Path, shape: Sequence[int], centre: Sequence[float], width: float, said: list[str]) -> Any:
    """The body of a mesh, `width` sites long about `centre`."""
    from lanewise.sims.lbm.obstacles import Placement, stl_solid

    if len(shape) == 2:
        raise InputError(
            f"--stl {path}: a mesh has three dimensions, and this case two; wanted the case sphere, or --mask with a picture "
            "of the body's section"
        )
    return stl_solid(path, shape, placement=Placement(length=width, centre=centre), report=said.append)


def _print_summary(s: dict[str, Any]) -> None:
    sizes = " x ".join(f"{n:,}" for n in reversed(s["shape"]))
    method = f"{s['lattice']}, {s['collision']}, {s['storage']}, {s['streaming']}, {s['layout']}"
    print(
        f"{s['case']} at Re {s['re']:g}: {sizes} sites, {s['steps']:,} steps to step {s['step']:,} on {s['device']} ({method})"
    )
    share = (
        "" if s["bandwidth_fraction"] is None else f", {100 * s['bandwidth_fraction']:.1f} % of the bandwidth of a copy"
    )
    print(f"{s['seconds']:.3f} s, {s['mlups']:,.1f} MLUPS{share}")
    if s["interpolated_links"]:
        print(f"walls interpolated on {s['interpolated_links']:,} links")
    steady = {None: "", True: "; steady", False: "; not steady yet"}[s["steady"]]
    print(f"tau {s['tau']:.4f}, mass drift {s['mass_drift']:+.3e}{steady}")
    for name, value in s["results"].items():
        print(f"  {name.replace('_', ' ')}: {value:.6g}")
    if s["out"]:
        print(f"written to {s['out']}")
