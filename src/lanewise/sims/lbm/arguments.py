"""What `Simulation` is called with, checked and completed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lanewise as lw
from lanewise.layouts import layout_by_name
from lanewise.patterns.sitewise.balance import wall_balance
from lanewise.patterns.sitewise.kinds import read_edges
from lanewise.patterns.sitewise.streaming import FORMS
from lanewise.sims.common.checks import check_known
from lanewise.sims.common.devices import CPU, target_of
from lanewise.sims.lbm.checks import check_mach, check_tau, warn_stiffness
from lanewise.sims.lbm.kinds import Edges, Kind, Open, Wall
from lanewise.sims.lbm.obstacles.arrays import as_kinds
from lanewise.sims.lbm.obstacles.boxes import check_shape
from lanewise.sims.lbm.obstacles.cut_links import cut_links
from lanewise.sims.lbm.obstacles.surfaces import Surface
from lanewise.sims.lbm.openings import check_opening
from lanewise.sims.lbm.operators import find_operator
from lanewise.sims.lbm.settings import Settings, SiteGeometry
from lanewise.sims.lbm.units import from_reynolds, relaxation
from lanewise.support.attributes import unknown
from lanewise.support.checks import host_array
from lanewise.support.errors import InputError

LATTICES: dict[str, lw.Lattice] = {
    lattice.name: lattice for lattice in (lw.D2Q9, lw.D3Q19, lw.D3Q27)
}
SCALARS: dict[str, lw.Lattice] = {lattice.name: lattice for lattice in (lw.D2Q5, lw.D3Q7)}
PRECISIONS, STORAGES = ("f32", "f64"), ("f16", "f32", "f64")
MOST_KINDS = 31


def chosen_lattice(lattice: str | lw.Lattice | None, dimension: int) -> lw.Lattice:
    """The lattice of this name, or the usual one of a dimension; raises `InputError` for another
    name or dimension.
    """
    if lattice is None:
        return lw.D2Q9 if dimension == 2 else lw.D3Q19
    if isinstance(lattice, str):
        if (other := SCALARS.get(lattice.upper())) is not None:
            raise InputError(_for_scalars(other))
        if lattice.upper() not in LATTICES:
            raise InputError(unknown("lattice", lattice, LATTICES))
        lattice = LATTICES[lattice.upper()]
    if lattice.isotropy < 4:
        raise InputError(_for_scalars(lattice))
    if lattice.dimension != dimension:
        shape = "(ny, nx)" if lattice.dimension == 2 else "(nz, ny, nx)"
        raise InputError(f"{lattice.name} needs a box of shape {shape}, found {dimension} axes")
    return lattice


def _for_scalars(lattice: lw.Lattice) -> str:
    return (
        f"{lattice.name} is for scalars: its weights are isotropic up to second order, a flow "
        "needs fourth; wanted "
        f"{', '.join(n for n, x in LATTICES.items() if x.dimension == lattice.dimension)}"
    )


def chosen_rate(
    viscosity: float | None,
    omega: float | None,
    re: float | None,
    speed: float | None,
    length: float | None,
) -> float:
    """The relaxation rate omega; raises `InputError` unless it is given in exactly one way, and for
    tau <= 1/2.
    """
    ways = [
        n
        for n, value in (("viscosity", viscosity), ("omega", omega), ("re", re))
        if value is not None
    ]
    if len(ways) != 1:
        raise InputError(
            f"the viscosity is given by {' and '.join(ways) or 'nothing'}; wanted one of "
            "viscosity, omega, re"
        )
    if re is not None:
        if speed is None or length is None:
            raise InputError("re is a Reynolds number; wanted speed and length as well")
        return relaxation(from_reynolds(re, length, speed))
    idle = [n for n, value in (("speed", speed), ("length", length)) if value is not None]
    if idle:
        raise InputError(
            f"the {' and the '.join(idle)} of a Reynolds number "
            f"{'is' if len(idle) == 1 else 'are'} given without re, "
            f"next to {ways[0]}; wanted re with speed and length, or {ways[0]} alone"
        )
    if viscosity is not None:
        return relaxation(viscosity)
    assert omega is not None
    check_tau(1 / omega if omega > 0 else math.nan)
    return omega


def chosen_numbers(precision: str | None, storage: str | None, device: str) -> tuple[str, str]:
    """Precision and storage type; raises `InputError` for names and combinations that are none."""
    for what, value, names in (
        ("precision", precision, PRECISIONS),
        ("storage", storage, STORAGES),
    ):
        if value is not None and value not in names:
            raise InputError(unknown(what, value, names))
    real = precision or ("f64" if storage == "f64" else "f32")
    stored = storage or real
    if stored == "f64" and real == "f32":
        raise InputError(
            "storage f64 holds more than precision f32 computes; wanted storage f32 or f16, or "
            "precision f64"
        )
    if stored == "f16" and target_of(device) is CPU:
        raise InputError(
            "storage f16 is for GPUs, which convert float16 in one instruction; on a CPU choose "
            "storage f32"
        )
    return real, stored


def chosen_streaming(streaming: str | None, device: str) -> str:
    """The streaming form: by default in place on a CPU, where caches gain by it, and two buffers on
    a GPU.
    """
    if streaming is None:
        return target_of(device).streaming
    check_known("streaming", streaming, FORMS)
    return streaming


def chosen_parameters(collision: str, chosen: Mapping[str, float] | None) -> dict[str, float]:
    """All parameters of a collision operator, its defaults with those that are given; raises
    `InputError` for others.
    """
    operator = find_operator(collision)
    for name, value in (chosen or {}).items():
        if name not in operator.parameters:
            names = ", ".join(operator.parameters) or "none besides omega"
            raise InputError(
                f"the collision operator {collision!r} has no parameter {name!r}; it has {names}"
            )
        if not math.isfinite(value):
            raise InputError(f"the parameter {name} is {value}; wanted a finite number")
        if (reason := operator.refusal(name, value)) is not None:
            raise InputError(reason)
    return {
        name: float((chosen or {}).get(name, default))
        for name, default in operator.parameters.items()
    }


def chosen_force(force: Sequence[float] | None, dimension: int) -> tuple[float, ...]:
    """The body force as a tuple, empty without one; raises `InputError` for another number of
    components.
    """
    if force is None:
        return ()
    values = tuple(float(g) for g in force)
    if len(values) != dimension or not all(map(math.isfinite, values)):
        raise InputError(f"the force is {tuple(force)}; wanted {dimension} finite components")
    return values


def asked_settings(
    lattice: lw.Lattice,
    sizes: tuple[int, ...],
    rate: float,
    *,
    collision: str,
    parameters: Mapping[str, float] | None,
    smagorinsky: float,
    force: Sequence[float] | None,
    precision: str | None,
    storage: str | None,
    streaming: str | None,
    layout: str | None,
    device: str,
    outflow_speed: float,
) -> Settings:
    """The settings of a flow by its arguments; raises `InputError` for values out of range."""
    warn_stiffness(1 / rate, collision)
    real, stored = chosen_numbers(precision, storage, device)
    return Settings(
        lattice.name, sizes, rate, collision, chosen_parameters(collision, parameters),
        check_smagorinsky(smagorinsky), chosen_force(force, len(sizes)), real, stored,
        chosen_streaming(streaming, device), layout or "", device,
        check_outflow_speed(outflow_speed),
    )  # fmt: skip


def check_settings(settings: Settings) -> lw.Lattice:
    """Refuse settings that no simulation could have had, as those of a file may be; returns their
    lattice.
    """
    shape = check_shape(settings.shape)
    lattice = chosen_lattice(settings.lattice, len(shape))
    check_tau(1 / settings.omega if settings.omega > 0 else math.nan)
    # whether the device has them is seen when there is one
    chosen_numbers(settings.precision, settings.storage, "cuda")
    chosen_streaming(settings.streaming, settings.device)
    chosen_parameters(settings.collision, settings.parameters)
    chosen_force(settings.force or None, len(shape))
    check_outflow_speed(settings.outflow_speed)
    layout_by_name(settings.layout)
    check_smagorinsky(settings.smagorinsky)
    return lattice


def check_smagorinsky(constant: float) -> float:
    """Refuse a constant of the turbulence model that is none."""
    if not (math.isfinite(constant) and constant >= 0):
        raise InputError(f"the constant of Smagorinsky is {constant:g}; wanted zero or more")
    return float(constant)


def check_outflow_speed(speed: float) -> float:
    """Refuse a speed at which nothing could leave, or leave faster than links are long."""
    if not 0 < speed <= 1:
        raise InputError(
            f"the outflow speed is {speed}; wanted above 0 and at most 1, in sites per step"
        )
    return float(speed)


def check_geometry(
    shape: tuple[int, ...], mask: Any, kinds: Mapping[int, Kind], edges: Edges
) -> SiteGeometry:
    """Kinds, mask and edges that fit together; raises `InputError` for what does not."""
    names: dict[str, int] = {}
    for number, kind in kinds.items():
        if not 1 <= number <= MOST_KINDS:
            raise InputError(
                f"kind {number} ({kind.name}): wanted a number from 1 to {MOST_KINDS}; 0 is fluid"
            )
        if kind.name in names:
            raise InputError(
                f"kinds {names[kind.name]} and {number} are both called {kind.name!r}; wanted "
                "different names"
            )
        names[kind.name] = number
        _check_kind(kind, len(shape))
    kind_names = {0: "fluid", **{n: k.name for n, k in kinds.items()}}
    array = None if mask is None else as_kinds(mask, shape, kind_names)
    for number, kind in kinds.items():
        if isinstance(kind, Open):
            check_opening(number, kind, shape, array)
    return SiteGeometry(
        array if array is not None and array.any() else None, dict(kinds), dict(edges)
    )


def with_surfaces(
    lattice: lw.Lattice, geometry: SiteGeometry, surfaces: Mapping[int, Surface]
) -> SiteGeometry:
    """The geometry with the fractions at which surfaces cut links, where sites on the upper side of
    a surface are walls.

    Raises `InputError` for a surface of what is no wall of the mask.
    """
    if not surfaces:
        return geometry
    present = set() if geometry.mask is None else {int(k) for k in np.unique(geometry.mask)}
    for number in surfaces:
        if number not in geometry.walls or number not in present:
            listed = (
                ", ".join(f"{n} ({w.name})" for n, w in geometry.walls.items() if n in present)
                or "none"
            )
            raise InputError(
                f"a surface is given for kind {number}, which is no wall of the mask; its walls "
                f"are {listed}"
            )
    assert geometry.mask is not None
    names = {n: w.name for n, w in geometry.walls.items()}
    links = cut_links(lattice, geometry.mask, geometry.edges, surfaces, names)
    return replace(geometry, mask=links.mask, fractions=links.fractions)


def check_motion(lattice: lw.Lattice, geometry: SiteGeometry, shape: tuple[int, ...]) -> None:
    """Refuse walls that move across a slip face, or so that a closed part of the box gains or loses
    mass.

    Raises `InputError`.
    """
    moving = {n: w for n, w in geometry.walls.items() if w.velocity is not None and any(w.velocity)}
    if not moving:
        return
    faces = read_edges(
        geometry.edges, lattice.dimension, {w.name: n for n, w in geometry.walls.items()}
    )
    kinds = (
        np.zeros(shape, np.uint8) if geometry.mask is None else np.asarray(geometry.mask, np.uint8)
    )
    velocities = {n: tuple(float(c) for c in w.velocity or ()) for n, w in moving.items()}
    names = {n: w.name for n, w in moving.items()}
    balance = wall_balance(lattice, kinds, faces, frozenset(geometry.walls), velocities)
    if (reason := balance.refusal(velocities, names)) is not None:
        raise InputError(reason)


def _check_kind(kind: Kind, dimension: int) -> None:
    if kind.velocity is not None:
        if len(kind.velocity) != dimension:
            raise InputError(
                f"the velocity of {kind.name!r} is {kind.velocity}; wanted {dimension} components"
            )
        match kind:
            case Wall():
                check_mach(kind.velocity, f"velocity of the wall {kind.name!r}")
            case Open():
                check_mach(kind.velocity, f"velocity of {kind.name!r}")


def check_initial(shape: tuple[int, ...], density: Any, velocity: Any, gradient: Any) -> None:
    """Refuse fields of another shape, densities that are no positive numbers, and velocities above
    Mach 0.3.
    """
    dimension = len(shape)
    rho = _numbers("the density", density)
    if rho.shape not in ((), shape):
        raise InputError(f"the density has shape {rho.shape}; wanted a number or shape {shape}")
    if not (np.isfinite(rho).all() and (rho > 0).all()):
        raise InputError(
            "the density holds numbers that are not finite or not positive; wanted densities about "
            "1"
        )
    for name, field in (("the velocity", velocity), ("the gradient", gradient)):
        if field is not None:
            _numbers(name, field)
    if velocity is not None:
        if np.shape(velocity) not in ((dimension,), (*shape, dimension)):
            raise InputError(
                f"the velocity has shape {np.shape(velocity)}; wanted {(dimension,)} or "
                f"{(*shape, dimension)}"
            )
        check_mach(velocity, "initial velocity")
    if gradient is not None and np.shape(gradient) != (*shape, dimension, dimension):
        raise InputError(
            f"the gradient has shape {np.shape(gradient)}; wanted {(*shape, dimension, dimension)}"
        )


def _numbers(name: str, values: Any) -> NDArray[Any]:
    array = host_array(name, values, InputError)
    if array.dtype.kind not in "fiu":
        raise InputError(f"{name} holds {array.dtype}; wanted numbers")
    return array
