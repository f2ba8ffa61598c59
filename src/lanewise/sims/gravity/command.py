"""`lanewise gravity run`: watch bodies move under their own gravity."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanewise.profiling import Profile
from lanewise.sims.common.checks import HDF5, check_ending
from lanewise.sims.common.commands import product_app, run_command
from lanewise.sims.common.frame import Product, carry_out
from lanewise.sims.common.options import GivenOptions
from lanewise.sims.common.tree_options import speaking_options
from lanewise.sims.common.viewing import ViewSettings
from lanewise.sims.gravity.options import ORDER, Asked, Output, Pictures, Settings
from lanewise.support.errors import InputError
from lanewise.support.numerals import counted

if TYPE_CHECKING:
    from lanewise.sims.gravity.run import GravityRun

app = product_app("gravity")


def check(given: GivenOptions) -> None:
    """Raise `InputError` for settings that `run` would refuse, without making any bodies."""
    from lanewise.sims.gravity import runner

    runner.check_settings(given["bodies"], given.of(Settings))


@run_command(app, Settings, Output, Asked, Pictures, ViewSettings, after=ORDER)
@speaking_options
def run(matched: GivenOptions) -> None:
    """Run a simulation and report how well it kept energy and momentum."""
    from lanewise.io.atomic import writable_target
    from lanewise.sims.gravity import runner
    from lanewise.sims.gravity.checkpoint import resumed_target

    pictures, resumed = matched.make(Pictures), matched["resume"]
    output = matched.make(Output, pictures=pictures)
    out, plot, movie = output.out, output.plot, pictures.movie
    if output.snapshot_every and out is None and resumed is None:
        raise InputError("--snapshot-every needs --out: snapshots get its name and the step")
    if output.checkpoint_seconds is not None and out is None and resumed is None:
        raise InputError("--checkpoint-seconds needs --out: checkpoints go there")
    if out is not None and resumed is None:
        writable_target(out, output.overwrite)
    if plot is not None:
        _check_picture("--plot", plot, output.overwrite, out, resumed)
        if plot.suffix.lower() != ".png":
            raise InputError(f"--plot {plot}: pictures are PNG; wanted a name that ends in .png")
    if movie is not None:
        _check_picture("--movie", movie, output.overwrite or resumed is not None, out, resumed)
    if out is not None and out != resumed:
        check_ending("--out", out, HDF5)
    if resumed is not None:
        matched.refuse_with_resume(Settings, Asked, but=("steps", "device", "resume"))
        out = resumed_target(resumed, out, output.overwrite)

    def prepare(profile: Profile | None) -> GravityRun:
        if resumed is None:
            return runner.start(
                bodies=matched["bodies"], output=output, profile=profile, **matched.of(Settings)
            )
        steps, device = matched["steps"], matched["device"]
        return runner.resume(resumed, steps=steps, device=device, output=output, profile=profile)

    product = Product("gravity", lambda _: "gravity", _rate, say)
    carry_out(product, matched, prepare, out, plot, movie)


def _rate(now: GravityRun) -> str:
    return f"{now.steps_per_second:,.1f} steps/s, {_speed(now.state.summary(now))}"


def _speed(s: dict[str, Any]) -> str:
    if s["pairs_per_second"] is None:
        return f"{s['bodies_per_second']:.3e} bodies/s"
    return f"{s['pairs_per_second']:.3e} pairs/s"


def _check_picture(option: str, path: Path, overwrite: bool, *others: Path | None) -> None:
    """A picture must not replace a checkpoint of the same command, not even with --overwrite."""
    from lanewise.io.atomic import writable_target

    for other in others:
        if other is not None and other.resolve() == path.resolve():
            raise InputError(f"{option} {path} would replace the checkpoint; wanted another file")
    writable_target(path, overwrite)


def say(done: GravityRun, s: dict[str, Any]) -> None:
    """Print what a run was and how good it is. s: its summary."""
    steps = (
        f"{counted(s['bodies'], 'body', 'bodies')}, {counted(s['steps'], 'step', 'steps')} to t "
        f"= {s['time']:.6g}"
    )
    print(f"{steps} on {s['device']} in {s['layout']}, {s['precision']}")
    print(f"{s['seconds']:.3f} s, {_speed(s)}")
    if (search := done.state.simulation.search) is not None:
        print(f"forces by a {search.describe()} ({s['method_reason']})")
        asked = "" if s["accuracy"] is None else f"; requested {s['accuracy']:g}"
        print(f"their errors: {done.state.errors}{asked}")
    elif s["method_reason"].startswith("auto"):
        print(f"forces by all pairs ({s['method_reason']})")
    print(
        f"energy {s['energy_initial']:.9g} -> {s['energy_final']:.9g}, drift "
        f"{s['energy_drift']:+.3e}"
    )
    drifts = (
        f"momentum drift {s['momentum_drift']:.3e}, angular momentum drift "
        f"{s['angular_momentum_drift']:.3e}"
    )
    virial = s["virial_ratio"]
    balance = "no potential energy" if math.isnan(virial) else f"2K/|W| = {virial:.4f}"
    print(f"{drifts}, {balance}")
    if done.state.warning:
        print(f"warning: {done.state.warning}", file=sys.stderr)
