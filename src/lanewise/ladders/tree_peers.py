"""Forces of a cluster by other libraries, as far as they are installed: what each is called with,
and what it gives, accelerations (n, 3) for G = 1 in the caller's order.

Times are of whole calls from positions to accelerations, with what the library builds in them. What
only converts arrays to a library's own type is done before.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Forces = dict[str, Callable[[], Any]]
"""Versions by name."""

FOUR_PI = 4 * np.pi


@dataclass(frozen=True, slots=True)
class Peer:
    """A library that has forces of a cluster.

    package: what is imported. versions: of (positions, masses, softening, threads). on_gpu: whether
    it works on a GPU, else on a CPU. softened, unsoftened: whether it has the forces of a Plummer
    softening, and those without one.
    """

    package: str
    versions: Callable[[Array, Array, float, int], Forces]
    on_gpu: bool = False
    softened: bool = True
    unsoftened: bool = True

    def lacking(self, softening: float) -> str:
        """Why it has no forces of such a cluster here; "" where it has."""
        if find_spec(self.package) is None:
            return f"the package {self.package} is not installed"
        if not (self.softened if softening else self.unsoftened):
            return f"{self.package} has no forces of a softening of {softening:g}"
        return ""


def _pytreegrav(position: Array, mass: Array, softening: float, threads: int) -> Forces:
    """An octree with monopoles or quadrupoles, in Numba (float64)."""
    pytreegrav: Any = import_module("pytreegrav")
    del softening
    label = f"pytreegrav {version('pytreegrav')}"
    options: dict[str, Any] = {"method": "tree", "parallel": threads > 1}

    def walk(theta: float, quadrupole: bool) -> Callable[[], Any]:
        return partial(
            pytreegrav.Accel, position, mass, theta=theta, quadrupole=quadrupole, **options
        )

    return {
        f"{label}, monopole, theta 0.5": walk(0.5, False),
        f"{label}, quadrupole, theta 0.5": walk(0.5, True),
        f"{label}, quadrupole, theta 0.7": walk(0.7, True),
    }


def _rebound(position: Array, mass: Array, softening: float, threads: int) -> Forces:
    """Its octree with monopoles (float64, one thread): the tree is built in every call, as in every
    step of a simulation.
    """
    rebound: Any = import_module("rebound")
    del threads
    simulation = rebound.Simulation()
    simulation.gravity, simulation.softening = "tree", softening
    simulation.root_size = 2.01 * float(np.abs(position).max())
    simulation.N_root_x = simulation.N_root_y = simulation.N_root_z = 1
    for m, (x, y, z) in zip(mass.tolist(), position.tolist(), strict=True):
        simulation.add(m=m, x=x, y=y, z=z)
    update = rebound.clibrebound.reb_simulation_update_acceleration
    update.restype = None
    # accelerations where a particle has them
    stride = ctypes.sizeof(rebound.Particle)
    offset = rebound.Particle.ax.offset

    def walk(theta: float) -> Callable[[], Any]:
        def run() -> Any:
            simulation.opening_angle2 = theta**2
            update(ctypes.byref(simulation))
            first = ctypes.addressof(simulation.particles[0])
            raw: Any = (ctypes.c_char * (stride * len(mass))).from_address(first)
            flat: NDArray[np.uint8] = np.frombuffer(raw, np.uint8).reshape(len(mass), stride)
            return flat[:, offset : offset + 24].copy().view(np.float64)

        return run

    label = f"REBOUND {version('rebound')} tree"
    return {f"{label}, theta 0.5": walk(0.5), f"{label}, theta 0.7": walk(0.7)}


def _fmm3d(position: Array, mass: Array, softening: float, threads: int) -> Forces:
    """The fast multipole method of the Laplace kernel (float64; OMP_NUM_THREADS); 1 / (4 pi r)."""
    fmm3dpy: Any = import_module("fmm3dpy")
    del softening, threads
    columns = np.asfortranarray(position.T)

    def run(eps: float) -> Callable[[], Any]:
        def call() -> Any:
            found = fmm3dpy.lfmm3d(eps=eps, sources=columns, charges=mass, pg=2)
            return FOUR_PI * found.grad.T

        return call

    label = f"fmm3dpy {version('fmm3dpy')}"
    return {f"{label}, eps 1e-3": run(1e-3), f"{label}, eps 1e-4": run(1e-4)}


def _jzfmm(position: Array, mass: Array, softening: float, threads: int) -> Forces:
    """A fast multipole method in JAX and CUDA (float32); its tree is built in every call."""
    # else it takes three quarters of the memory of the device, whose rest is all that others have
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    numpy: Any = import_module("jax.numpy")
    config: Any = import_module("jzfmm.config")
    fmm: Any = import_module("jzfmm.fmm")
    data: Any = import_module("jztree.data")
    del threads
    bodies = data.PosMass(
        pos=numpy.asarray(position, numpy.float32), mass=numpy.asarray(mass, numpy.float32)
    )

    def run(order: int, theta: float) -> Callable[[], Any]:
        settings = config.FMMConfig(
            kernel=config.PlummerKernel(softening),
            p=order,
            opening=config.OpeningByAngle(theta),
            alloc_fac_ilist=300.0,  # the default of 64 overflows on a cluster
        )

        def call() -> Any:
            force = fmm.fast_multipole_method.jit(bodies, settings).force()
            return force.block_until_ready()

        return call

    label = f"jzfmm {version('jzfmm')}"
    cases = ((3, 0.6), (4, 0.7), (5, 0.8), (5, 0.6))
    return {f"{label}, p={p}, theta {theta}": run(p, theta) for p, theta in cases}


PEERS = (
    Peer("pytreegrav", _pytreegrav, softened=False),
    Peer("rebound", _rebound),
    Peer("fmm3dpy", _fmm3d, softened=False),
    Peer("jzfmm", _jzfmm, on_gpu=True, unsoftened=False),
)
