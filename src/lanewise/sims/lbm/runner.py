"""Runs as the command line makes them: a case with the user's wishes, or a checkpoint to continue
from.

Whether a case fits the memory is asked before any of its arrays is made: masks and initial fields
of a large box are large themselves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import lanewise as lw
from lanewise.io.source import reading
from lanewise.patterns.sitewise.fractions import CENTRAL
from lanewise.profiling.profile import Profile, span
from lanewise.sims.common.cards import TURN
from lanewise.sims.common.checks import (
    COMPLETE,
    HDF5,
    check_files,
    check_steps,
    last_step,
)
from lanewise.sims.common.devices import (
    CUDA,
    available_memory,
    first_of,
    other_device,
    target_of,
)
from lanewise.sims.common.meshes import available_on, place_of_run, processes_here, repeated
from lanewise.sims.common.run import Checkpoints, Run
from lanewise.sims.lbm.arguments import (
    LATTICES,
    chosen_numbers,
    chosen_streaming,
)
from lanewise.sims.lbm.asked import check_tolerance
from lanewise.sims.lbm.cases import Case, Request, Setup, find_case
from lanewise.sims.lbm.checkpoint import FIRST, Checkpoint, converted, read_checkpoint, restored
from lanewise.sims.lbm.checks import check_mach, check_memory, gigabytes
from lanewise.sims.lbm.obstacles.boxes import sites_text
from lanewise.sims.lbm.obstacles.surfaces import Surface
from lanewise.sims.lbm.options import HALF_WAY, INTERPOLATED, WALLS, End, Method, Output
from lanewise.sims.lbm.remembered import RememberedState, recall
from lanewise.sims.lbm.run import FlowRun, SimulatedFlow
from lanewise.sims.lbm.simulation import Simulation
from lanewise.sims.lbm.watch import FLOORS, Steadiness
from lanewise.support.attributes import unknown
from lanewise.support.errors import DeviceError, InputError

SUFFIXES = {
    "out": HDF5,
    "vti": (".vti",),
    "plot": (".png",),
    "movie": (".gif", ".mp4"),
    "forces": (".csv",),
}


def start(
    case: Case,
    request: Request,
    method: Method,
    end: End,
    output: Output,
    profile: Profile | None = None,
) -> FlowRun:
    """Check everything, build the flow, and set its initial state."""
    if end.steps is not None:
        check_steps(end.steps)
    check_mach([request.speed], f"speed of the case, {case.speed_of},")
    # a unit that shares GPUs makes its case before it has one, whose memory the simulation checks
    early = None if TURN.is_shared else place_of_run(method.device)
    check_room(
        case,
        request,
        precision=method.precision,
        storage=method.storage,
        streaming=method.streaming,
        place=early,
    )
    with span(profile, "setup", name="case"):
        setup = case.make(request)
    check_output(case, setup, output)
    place = place_of_run(method.device) if early is None else early
    simulation = Simulation(
        lattice=setup.lattice,
        shape=setup.shape,
        viscosity=setup.viscosity,
        collision=method.collision or case.collision,
        smagorinsky=method.smagorinsky,
        force=setup.force,
        mask=setup.mask,
        kinds=setup.kinds,
        edges=setup.edges,
        outflow_speed=setup.outflow_speed,
        surfaces=_surfaces(case, setup, method.walls),
        density=1.0 if setup.density is None else setup.density,
        velocity=setup.velocity,
        gradient=setup.gradient,
        precision=method.precision,
        storage=method.storage,
        streaming=method.streaming,
        layout=method.layout,
        device=place,
        profile=profile,
    )
    steadiness = _steadiness(setup, simulation, end)
    steps = end.steps if end.steps is not None else setup.steps
    state = SimulatedFlow(
        case=case, request=request, setup=setup, simulation=simulation, output=output,
        steadiness=steadiness, initial_mass=simulation.mass,
    )  # fmt: skip
    run = Run(state=state, steps=steps, checkpoints=_checkpoints(output))
    run.note = _parts_of(simulation)
    return run


def _parts_of(simulation: Simulation) -> str:
    """What is said of a mesh that has a GPU more than once, or ""."""
    return "" if simulation.mesh is None else repeated(simulation.mesh)


def resume(
    path: Path, method: Method, end: End, output: Output, profile: Profile | None = None
) -> FlowRun:
    """Continue a checkpoint by `end.steps` steps, or to its planned end.

    Everything else is as it was, so the same device, streaming form and layout give the same bits;
    `Run.note` says when not.
    """
    with span(profile, "setup", name="read the checkpoint"):
        saved = read_checkpoint(path)
        before = recall(saved)
    with span(profile, "setup", name="case"), reading(path, "checkpoint", ()):
        case = find_case(before.case)
        r = before.request
        asked = case.request(
            re=r.re,
            size=r.size,
            speed=r.speed,
            lattice=r.lattice,
            drive=r.drive or None,
            obstacle=r.obstacle,
        )
        setup = case.make(asked)
        _check_fit(saved, before, setup)
    last = last_step(path, saved.step, before.steps, end.steps)
    output = replace(
        output,
        out=output.out or path,
        checkpoint_every=output.checkpoint_every or before.checkpoint_every,
    )
    check_output(case, setup, output, resumed=path)
    simulation = restored(
        Simulation,
        saved,
        device=place_of_run(method.device, saved.settings.device),
        streaming=method.streaming,
        layout=method.layout,
        profile=profile,
    )
    until_steady = before.tolerance > 0 if end.until_steady is None else end.until_steady
    kept = before.tolerance or None if until_steady else None
    ending = End(end.steps, until_steady, kept if end.tolerance is None else end.tolerance)
    steadiness = _steadiness(setup, simulation, ending)
    if steadiness is not None and (end.steps, end.tolerance) == (None, None):
        _refuse_settled(path, saved.step, before)
    if steadiness is not None and before.compared is not None:
        steadiness.go_on(before.compared_step, before.compared, before.change)
    state = SimulatedFlow(
        case=case, request=before.request, setup=setup, simulation=simulation, output=output,
        steadiness=steadiness, initial_mass=before.initial_mass, rows=before.rows,
    )  # fmt: skip
    return Run(
        state=state,
        steps=last,
        checkpoints=_checkpoints(output, path),
        first_step=saved.step,
        note=_difference(path, saved, simulation),
    )


def _checkpoints(output: Output, resumed: Path | None = None) -> Checkpoints:
    """None before the first step: the state of a flow is large, and follows from the command."""
    return Checkpoints(output.out, output.checkpoint_every, first=False, resumed=resumed)


def _refuse_settled(path: Path, step: int, before: RememberedState) -> None:
    """Refuse to continue to where the flow is steady from where it is."""
    if before.change < before.tolerance:
        raise InputError(
            f"{path} {COMPLETE} {step:,}, where the flow is steady; say with --steps how many more"
        )


def _check_fit(saved: Checkpoint, before: RememberedState, setup: Setup) -> None:
    """Refuse a checkpoint whose case is not that of its flow."""
    if setup.shape != saved.settings.shape:
        raise InputError(
            f"damaged checkpoint: it has {saved.settings.shape} sites, and its case {setup.shape}"
        )
    columns = 1 + len(setup.probe.names) if setup.probe else 1
    steps = [step for step, _ in before.rows]
    if any(1 + len(values) != columns for _, values in before.rows):
        raise InputError(f"damaged checkpoint: its measurements have not {columns} columns")
    if steps != sorted(set(steps)) or (steps and not 0 <= steps[0] <= steps[-1] <= saved.step):
        raise InputError(
            f"damaged checkpoint: its measurements are not of growing steps up to {saved.step}"
        )
    if (
        setup.probe is not None
        and setup.probe.is_due(saved.step)
        and (not steps or steps[-1] != saved.step)
    ):
        raise InputError(f"damaged checkpoint: the measurement of step {saved.step} is missing")


def _surfaces(case: Case, setup: Setup, walls: str | None) -> Mapping[int, Surface]:
    """The surfaces of walls that are interpolated: all that are known, unless half-way walls are
    wanted.
    """
    if walls not in (None, *WALLS):
        raise InputError(unknown("walls", walls, WALLS))
    if walls == INTERPOLATED and not setup.surfaces:
        raise InputError(
            f"--walls {INTERPOLATED}: the surface of the walls of {case.name} is not known: flat "
            "walls and bodies from pictures or "
            f"arrays are {HALF_WAY}"
        )
    return {} if walls == HALF_WAY else setup.surfaces


def _steadiness(setup: Setup, simulation: Simulation, end: End) -> Steadiness | None:
    """How to tell that the flow is steady, or None.

    No tolerance is below what rounding keeps up.
    """
    until_steady = (
        setup.steady > 0 and end.steps is None if end.until_steady is None else end.until_steady
    )
    if end.tolerance is not None:
        check_tolerance(end.tolerance, until_steady)
    if not until_steady:
        return None
    s = simulation.settings
    floor = max(FLOORS[s.storage], FLOORS[s.precision])
    if end.tolerance is not None and end.tolerance < floor:
        raise InputError(
            f"the tolerance {end.tolerance:g} cannot be met: rounding alone changes velocities by "
            f"about {floor:g} in storage "
            f"{s.storage}; wanted {floor:g} or more, or precision f64"
        )
    every = max(1, round(setup.length / setup.speed))
    return Steadiness(end.tolerance or max(setup.steady or floor, floor), every, s.device)


def _difference(path: Path, saved: Checkpoint, simulation: Simulation) -> str:
    """Why the bits may not be those of an uninterrupted run."""
    before, after = saved.settings, simulation.settings
    if other := other_device(path, before.device, after.device):
        return other
    if converted(before, after):
        return (
            f"{path} was computed with {before.streaming} streaming in layout {before.layout}; its "
            "populations are converted to "
            f"{after.streaming} in {after.layout}, and the last places may differ"
        )
    cut = saved.geometry.fractions
    if saved.format == FIRST and cut is not None and (cut.fractions < CENTRAL).any():
        return (
            f"{path} is of an older version, in which links that a wall cuts before {CENTRAL:g} "
            "reflected with less damping; they continue with "
            "the rule of today, and drag may change"
        )
    return ""


# ------------------------------------------------------------ files


def check_output(case: Case, setup: Setup, output: Output, resumed: Path | None = None) -> None:
    """Refuse files that cannot be written or that are in each other's way, before anything is
    computed.
    """
    if output.forces is not None and setup.probe is None:
        raise InputError(f"{case.name} measures nothing on the way that --forces could write")
    if output.movie_every and output.movie is None:
        raise InputError(
            "--every needs --movie: it is the number of steps between two of its frames"
        )
    if output.checkpoint_every and output.out is None:
        raise InputError("--checkpoint-every needs --out: checkpoints go there")
    files = {name: getattr(output, name) for name in ("out", *SUFFIXES)}
    check_files(
        files, overwrite=output.overwrite, resumed=resumed, continued=("forces",), suffixes=SUFFIXES
    )


SMALL = 64  # sizes up to this one are made at once
PROBES = (4, 8)  # sizes from which the box of a larger one is foreseen
FLOAT64 = 8


def check_room(
    case: Case,
    request: Request,
    *,
    precision: str | None,
    storage: str | None,
    streaming: str | None,
    place: str | lw.Mesh | None,
) -> None:
    """Raise `DeviceError` for a size whose populations do not fit the device, or whose beginning
    does not fit the main memory. place: None for a GPU that is not known yet.
    """
    if request.size <= SMALL:
        return
    where = CUDA.name if place is None else first_of(place)
    lattice = LATTICES[request.lattice]
    shape = foreseen_shape(case, request)
    real, stored = chosen_numbers(precision, storage, where)
    form = chosen_streaming(streaming, where)
    if place is not None:
        check_memory(shape, lattice, stored, form, available_on(place))
    kept = (
        0
        if not target_of(where).host_memory
        else lattice.size * (1 if form == "in-place" else 2) * _size(stored)
    )
    sharing = 1 if place is None else processes_here(place)
    begins = initial_bytes(case, request, _size(real)) * sharing
    needed = math.prod(shape) * (kept + begins)
    if needed > (available := available_memory("cpu")):
        raise DeviceError(
            f"--size {request.size:,} makes about {sites_text(shape)}, whose initial state takes "
            f"{gigabytes(needed)} of main "
            f"memory, and {gigabytes(available)} are available; wanted a smaller size"
        )


def foreseen_shape(case: Case, request: Request) -> tuple[int, ...]:
    """About the shape that `case.make` will give: extents are proportional to the size, but for a
    constant.
    """
    low, high = (case.make(replace(request, size=n, obstacle=None)).shape for n in PROBES)
    slopes = ((b - a) / (PROBES[1] - PROBES[0]) for a, b in zip(low, high, strict=True))
    return tuple(
        round(a + slope * (request.size - PROBES[0])) for a, slope in zip(low, slopes, strict=True)
    )


def initial_bytes(case: Case, request: Request, real: int) -> int:
    """Bytes a site of what is there at once while a flow begins.

    Velocity and its gradient in float64 with what they are computed by, and one set of populations
    before it goes to the device.
    """
    setup = case.make(replace(request, size=PROBES[0], obstacle=None))
    dimension, lattice = len(setup.shape), LATTICES[request.lattice]
    fields = 0
    if setup.velocity is not None:
        fields += 2 * FLOAT64 * dimension
    if setup.gradient is not None:
        fields += 2 * FLOAT64 * dimension**2
    populations = (
        lattice.size * real + 2 * FLOAT64
        if fields or setup.force or setup.density is not None
        else 0
    )
    return fields + populations


def _size(name: str) -> int:
    return int(name[1:]) // 8
