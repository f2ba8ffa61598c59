"""The files of a run that people look at: a picture, a movie, and a field for ParaView."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lanewise.io.vti import write_vti
from lanewise.sims.common.devices import to_host
from lanewise.sims.common.processes import writes
from lanewise.sims.lbm.cases.registry import Setup
from lanewise.sims.lbm.kinds import Open
from lanewise.sims.lbm.view.flow import flow_title, plot_flow
from lanewise.sims.lbm.view.movie import FlowMovie
from lanewise.sims.lbm.view.slices import ReferenceScale

if TYPE_CHECKING:
    from lanewise.sims.lbm.run import SimulatedFlow


def write_picture(path: Path, flow: SimulatedFlow) -> None:
    """Speed or vorticity, whichever shows the case best, at the last step."""
    simulation, setup = flow.simulation, flow.setup
    solid, velocity = simulation.solid, to_host(simulation.velocity)
    if not writes():  # of several processes, which have all brought it together
        return
    plot_flow(
        path,
        velocity,
        flow_title(flow.case.name, simulation.shape, simulation.step, flow.request.re),
        quantity=setup.picture,
        solid=solid if solid.any() else None,
        reference=ReferenceScale(setup.speed, setup.length),
        periodic=periodic_axes(setup),
        streamlines=setup.streamlines,
    )


def open_movie(path: Path, flow: SimulatedFlow, *, overwrite: bool) -> FlowMovie:
    """Collects frames of what the picture would show."""
    simulation, setup = flow.simulation, flow.setup
    solid = simulation.solid
    sizes = " × ".join(f"{n:,}" for n in simulation.shape[::-1])
    return FlowMovie(
        path,
        f"{flow.case.name}, Re {flow.request.re:,.6g}, {sizes} sites",
        quantity=setup.picture,
        solid=solid if solid.any() else None,
        reference=ReferenceScale(setup.speed, setup.length),
        periodic=periodic_axes(setup),
        overwrite=overwrite,
    )


def write_vti_file(path: Path, flow: SimulatedFlow, *, overwrite: bool) -> None:
    """Density, velocity and the solid sites at the last step, in lattice units."""
    simulation = flow.simulation
    fields = {
        "density": to_host(simulation.density),
        "velocity": to_host(simulation.velocity),
        "solid": simulation.solid,
    }
    if not writes():
        return
    write_vti(path, fields, time=float(simulation.step), overwrite=overwrite)


def periodic_axes(setup: Setup) -> str:
    """The axes along which what leaves at one face comes in at the other; openings at faces make an
    axis another one.
    """
    axes = "xyz"[: len(setup.shape)]
    opened = {kind.face[0] for kind in setup.kinds.values() if isinstance(kind, Open)}
    return "".join(
        a for a in axes if setup.edges.get(a, "periodic") == "periodic" and a not in opened
    )
