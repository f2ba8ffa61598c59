"""`lanewise gravity run`: watch bodies move under their own gravity."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import typer

from lanewise.cli import options as o
from lanewise.cli import profile as p
from lanewise.cli import runs as r
from lanewise.errors import InputError
from lanewise.profiling import span

gravity_app = typer.Typer(no_args_is_help=True, help="Gravity by direct summation.")


@gravity_app.callback()
def _group() -> None:
    """Gravity by direct summation."""


@gravity_app.command(cls=p.ProfiledCommand)
def run(
    ic: o.Ic = None,
    bodies: o.Bodies = None,
    seed: o.Seed = None,
    gravitational_constant: o.GravitationalConstant = None,
    steps: o.Steps = None,
    dt: o.Dt = None,
    softening: o.Softening = None,
    integrator: o.IntegratorName = None,
    precision: o.Precision = None,
    device: o.Device = None,
    layout: o.LayoutName = None,
    out: o.Out = None,
    resume: o.Resume = None,
    overwrite: o.Overwrite = False,
    diagnostics_every: o.DiagnosticsEvery = 0,
    snapshot_every: o.SnapshotEvery = 0,
    checkpoint_seconds: o.CheckpointSeconds = 10.0,
    plot: o.Plot = None,
    profile: p.Wanted = False,
    profile_trace: p.Trace = None,
    json_: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Run a simulation and say how well energy and momentum were kept."""
    from lanewise.cli.progress import follow
    from lanewise.io.atomic import writable_target
    from lanewise.runtime.compile_workers import side_by_side
    from lanewise.sims.gravity import runner
    from lanewise.sims.gravity.run import Output
    from lanewise.sims.gravity.snapshots import resumed_target

    if snapshot_every and out is None and resume is None:
        raise InputError("--snapshot-every needs --out: snapshots get its name and the step")
    if out is not None and resume is None:
        writable_target(out, overwrite)
    if plot is not None:
        _check_picture(plot, overwrite, out, resume)
    report = p.ProfileReport(profile, profile_trace, overwrite, out, resume, plot)
    chosen: dict[str, Any] = {
        "ic": ic, "bodies": bodies, "dt": dt, "softening": softening, "integrator": integrator, "precision": precision, "layout": layout,
        "seed": seed, "gravitational_constant": gravitational_constant,
    }  # fmt: skip
    given = {name: value for name, value in chosen.items() if value is not None}
    if resume is not None:
        if given:
            name = next(iter(given)).replace("_", "-")
            raise InputError(f"--{name} cannot be changed with --resume: the checkpoint keeps its own")
        out = resumed_target(resume, out, overwrite)
    output = Output(out, diagnostics_every, snapshot_every, checkpoint_seconds, overwrite)
    with side_by_side(), r.claimed_files(out, plot, profile_trace):
        if resume is None:
            planned: dict[str, Any] = {} if steps is None else {"steps": steps}
            prepared = runner.start(**given, **planned, device=device, output=output, profile=report.profile)
        else:
            prepared = runner.resume(resume, steps=steps, device=device, output=output, profile=report.profile)
            r.say_note(prepared.note)
        r.follow_to_the_end(prepared, partial(follow, quiet=quiet), report, "gravity")
        if plot is not None:
            with span(report.profile, "output", name="picture"):
                _plot(prepared, plot)
        summary = prepared.summary()
        report.finish(summary)
    _print_summary(summary)
    if prepared.warning:
        print(f"warning: {prepared.warning}", file=sys.stderr)
    if json_:
        r.print_json(summary)


def _check_picture(plot: Path, overwrite: bool, *others: Path | None) -> None:
    """The picture must not replace a checkpoint of the same command, not even with --overwrite."""
    from lanewise.io.atomic import writable_target

    for other in others:
        if other is not None and other.resolve() == plot.resolve():
            raise InputError(f"--plot {plot} would replace the checkpoint; wanted another file")
    writable_target(plot, overwrite)
    if plot.suffix.lower() != ".png":
        raise InputError(f"--plot {plot}: pictures are PNG; wanted a name that ends in .png")


def _plot(prepared: Any, path: Path) -> None:
    from lanewise.plot.gravity import plot_gravity

    particles, s = prepared.particles(), prepared.settings
    title = (
        f"{len(particles.mass):,} bodies ({s.ic}), t = {prepared.simulation.time:.4g}, {s.integrator}, {s.precision}"
    )
    times, errors = prepared.energy_curve()
    plot_gravity(path, particles.position, particles.velocity, times, errors, title)


def _print_summary(s: dict[str, Any]) -> None:
    done = f"{_counted(s['bodies'], 'body', 'bodies')}, {_counted(s['steps'], 'step', 'steps')} to t = {s['time']:.6g}"
    print(f"{done} on {s['device']} in {s['layout']}, {s['precision']}")
    print(f"{s['seconds']:.3f} s, {s['pairs_per_second']:.3e} pairs/s")
    print(f"energy {s['energy_initial']:.9g} -> {s['energy_final']:.9g}, drift {s['energy_drift']:+.3e}")
    drifts = f"momentum drift {s['momentum_drift']:.3e}, angular momentum drift {s['angular_momentum_drift']:.3e}"
    print(f"{drifts}, 2K/|W| = {s['virial_ratio']:.4f}")
    if s["out"]:
        print(f"written to {s['out']}")


def _counted(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
