"""`lanewise gravity run`: watch bodies move under their own gravity."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from lanewise.errors import InputError

DEFAULT_ICS = ("plummer", "uniform-sphere", "two-body", "figure-eight", "pythagorean", "galaxies")
gravity_app = typer.Typer(no_args_is_help=True, help="Gravity by direct summation.")


@gravity_app.callback()
def _group() -> None:
    """Gravity by direct summation."""


# Every default is None here, so that an option given together with --resume can be told from one left out.
@gravity_app.command()
def run(
    ic: Annotated[str | None, typer.Option(help=f"{', '.join(DEFAULT_ICS)}, or a file: Gadget HDF5, Tipsy, NPZ, CSV  [default: plummer]")] = None,
    bodies: Annotated[int | None, typer.Option(help="number of bodies  [default: what the initial condition has, or 16384]")] = None,
    steps: Annotated[int | None, typer.Option(help="time steps  [default: 100; with --resume, what is left of the run]")] = None,
    dt: Annotated[float | None, typer.Option(help="time step  [default: 0.001]")] = None,
    softening: Annotated[float | None, typer.Option(help="Plummer softening length  [default: the initial condition's, or 0]")] = None,
    integrator: Annotated[str | None, typer.Option(help="leapfrog, euler or yoshida4  [default: leapfrog]")] = None,
    precision: Annotated[str | None, typer.Option(help="f32, f64, or mixed: float64 state, float32 forces  [default: f32]")] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, ...  [default: cpu; with --resume, as before]")] = None,
    layout: Annotated[str | None, typer.Option(help="soa, aos, aoas, soaoas or aosoa  [default: the device's best]")] = None,
    seed: Annotated[int | None, typer.Option(help="of random initial conditions  [default: 0]")] = None,
    gravitational_constant: Annotated[float | None, typer.Option("--gravitational-constant", "-G", help="G in the units of the bodies  [default: 1]")] = None,
    out: Annotated[Path | None, typer.Option(help="Gadget HDF5 file for the final state; checkpoints go there on the way")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace files that exist")] = False,
    resume: Annotated[Path | None, typer.Option(help="continue this checkpoint, bit-exact on the same device")] = None,
    diagnostics_every: Annotated[int, typer.Option(min=0, help="measure energies every so many steps (0: ten times a run)")] = 0,
    snapshot_every: Annotated[int, typer.Option(min=0, help="also write OUT_00000100.h5 and so on, every so many steps")] = 0,
    checkpoint_seconds: Annotated[float, typer.Option(min=0.0, help="wall time between checkpoints")] = 10.0,
    plot: Annotated[Path | None, typer.Option(help="PNG with the bodies and the energy error")] = None,
    json_: Annotated[bool, typer.Option("--json", help="end with one line of JSON")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="no progress bar")] = False,
) -> None:  # fmt: skip
    """Run a simulation and say how well energy and momentum were kept."""
    from lanewise.cli.progress import follow
    from lanewise.io.atomic import writable_target
    from lanewise.sims.gravity import runner

    for path in (out, plot):
        if path is not None and not (resume is not None and path == resume):
            writable_target(path, overwrite)
    output = runner.Output(out, diagnostics_every, snapshot_every, checkpoint_seconds)
    chosen = {
        "ic": ic, "bodies": bodies, "dt": dt, "softening": softening, "integrator": integrator, "precision": precision, "layout": layout,
        "seed": seed, "gravitational_constant": gravitational_constant,
    }  # fmt: skip
    given = {name: value for name, value in chosen.items() if value is not None}
    if resume is None:
        prepared = runner.start(**given, **({} if steps is None else {"steps": steps}), device=device, output=output)
    elif given:
        name = next(iter(given)).replace("_", "-")
        raise InputError(f"--{name} cannot be changed with --resume: the checkpoint keeps its own")
    else:
        prepared = runner.resume(resume, steps=steps, device=device, output=output)
    follow(prepared, quiet=quiet)
    if plot is not None:
        _plot(prepared, plot)
    summary = prepared.summary()
    _print_summary(summary)
    if json_:
        print(json.dumps(summary))


def _plot(prepared: Any, path: Path) -> None:
    from lanewise.plot.gravity import plot_gravity
    from lanewise.sims.gravity.runner import energy_curve

    particles, s = prepared.particles(), prepared.settings
    title = f"{len(particles.mass):,} bodies ({s.ic}), t = {prepared.simulation.time:.4g}, {s.integrator}, {s.precision}"
    times, errors = energy_curve(prepared)
    plot_gravity(path, particles.position, particles.velocity, times, errors, title)


def _print_summary(s: dict[str, Any]) -> None:
    print(f"{s['bodies']:,} bodies, {s['steps']:,} steps to t = {s['time']:.6g} on {s['device']} in {s['layout']}, {s['precision']}")
    print(f"{s['seconds']:.3f} s, {s['pairs_per_second']:.3e} pairs/s")
    print(f"energy {s['energy_initial']:.9g} -> {s['energy_final']:.9g}, drift {s['energy_drift']:+.3e}")
    print(f"momentum drift {s['momentum_drift']:.3e}, angular momentum drift {s['angular_momentum_drift']:.3e}, 2K/|W| = {s['virial_ratio']:.4f}")
    if s["out"]:
        print(f"written to {s['out']}")
