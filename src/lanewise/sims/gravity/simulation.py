"""A gravity simulation: bodies, an integrator, and time.

simulation = Simulation(bodies, softening=0.02)
simulation.run(steps=100, dt=1e-3)
simulation.diagnostics().total
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from lanewise.arrays import RecordArray
from lanewise.errors import InputError
from lanewise.kernels.compiled import Call
from lanewise.layouts import Layout, default_layout
from lanewise.plan import Plan
from lanewise.runtime.devices import resolve
from lanewise.runtime.memory import array_module, require_memory
from lanewise.runtime.stepping import Stepper, make_stepper
from lanewise.sims.gravity.checks import (
    check_bodies,
    check_gravitational_constant,
    check_interval,
    check_range,
    check_softening,
    check_steps,
    check_time_step,
    self_force_vanishes,
)
from lanewise.sims.gravity.diagnostics import Diagnostics
from lanewise.sims.gravity.integrators import integrator as find_integrator
from lanewise.sims.gravity.physics import RECORDS, make_physics, pair_type, precision_of, state_type

Callback = Callable[["Simulation"], None]


class Simulation:
    """N bodies under their own gravity.

    Parameters
    ----------
    bodies: a record array with position, mass and velocity (see `physics.RECORDS`); it is advanced in place.
    softening: Plummer softening length, >= 0, in units of length.
    integrator: "leapfrog" (kick-drift-kick), "euler" (semi-implicit) or "yoshida4".
    gravitational_constant: G in the units of the bodies.
    time: the time of the initial state; step: how many steps led to it.
    plan: decisions for the force kernel.

    Raises `InputError` for values out of range and for NaN or infinity in the bodies, `DeviceError` when the memory does not suffice.
    """

    def __init__(
        self, bodies: RecordArray, *, softening: float = 0.0, integrator: str = "leapfrog", gravitational_constant: float = 1.0,
        time: float = 0.0, step: int = 0, plan: Plan | None = None,
    ) -> None:  # fmt: skip
        self.precision = precision_of(bodies.record)
        self._pair = pair_type(self.precision)
        check_softening(softening, self._pair)
        check_gravitational_constant(gravitational_constant)
        check_bodies(bodies, self._pair)
        self.bodies, self.softening, self.integrator = bodies, float(softening), find_integrator(integrator)
        self.gravitational_constant = gravitational_constant
        self.start_time, self.start_step, self.step = time, step, step
        self._physics = make_physics(bodies._python_class, self_force_vanishes(softening, self._pair))  # pyright: ignore[reportPrivateUsage]
        # One part: partial sums of few bodies would take more memory than the bodies themselves.
        wide = Plan(parts=1, accumulate="f64" if self.precision == "mixed" else None)
        self.plan = (plan or Plan()).filled(wide)
        count = len(bodies)
        require_memory(
            bodies.device, count * (12 + 4 + 4), f"a simulation of {count:,} bodies, besides the bodies themselves,"
        )
        module = array_module(bodies.device)
        self._survived = module.zeros(count, np.int32)
        self._force: Call = self._physics.acceleration.bind(bodies, bodies, softening2=softening**2, plan=self.plan)
        self._force()
        self._elapsed = 0.0  # of earlier steps with another dt
        self._stepper: Stepper | None = None
        self._dt = 0.0

    # ------------------------------------------------------------ advancing

    @property
    def time(self) -> float:
        """Start time plus all steps; computed by multiplication, so it does not drift."""
        return self.start_time + self._elapsed + (self.step - self.start_step) * self._dt

    @property
    def force_evaluations_per_step(self) -> int:
        return len(self.integrator.drifts)

    def advance(self, steps: int, dt: float) -> None:
        """Take `steps` steps of `dt` and wait for them. On CUDA they run as graphs.

        Raises `InputError` when a body leaves the finite numbers.
        """
        self.prepare(dt)
        assert self._stepper is not None
        before = self.step
        self._stepper.run(steps)
        self.step += steps
        self._check_survival(before)

    def prepare(self, dt: float) -> None:
        """Compile what steps of `dt` need, so that the first one costs no more than the others."""
        check_time_step(dt, state_type(self.precision), self.gravitational_constant)
        if dt != self._dt:
            self._elapsed += (self.step - self.start_step) * self._dt
            self.start_step, self._dt, self._stepper = self.step, dt, None
        if self._stepper is None:
            self._stepper = make_stepper(self.bodies.device, self._calls(dt))

    def continue_from(self, step: int, dt: float) -> None:
        """Say that the bodies are `step` steps of `dt` on: a resumed run computes its times as an uninterrupted one."""
        self.step, self._dt = self.start_step + step, dt

    def run(self, steps: int, dt: float, callback: Callback | None = None, every: int = 1) -> Simulation:
        """`steps` steps of `dt`; `callback(simulation)` after every `every` of them and after the last."""
        check_steps(steps)
        check_interval(every)
        if callback is None:
            self.advance(steps, dt)
            return self
        done = 0
        while done < steps:
            piece = min(every, steps - done)
            self.advance(piece, dt)
            done += piece
            callback(self)
        return self

    def steps(self, dt: float, every: int = 1) -> Iterator[Simulation]:
        """Iterate without end: `for state in simulation.steps(dt, every=10): ...`, each turn `every` steps on."""
        check_interval(every)
        while True:
            self.advance(every, dt)
            yield self

    def _calls(self, dt: float) -> list[Callable[[], Any]]:
        """One step as launches whose memory and numbers are bound."""
        physics, kicks, drifts = self._physics, self.integrator.kicks, self.integrator.drifts
        acceleration, g = self._force.results[0], self.gravitational_constant
        calls: list[Callable[[], Any]] = []
        for kick, drift in zip(kicks, drifts, strict=False):
            calls.append(physics.kick_drift.bind(self.bodies, acceleration, kick * dt * g, drift * dt))
            calls.append(self._force)
        calls.append(
            physics.kick.bind(self.bodies, acceleration, self._survived, kicks[-1] * dt * g, out=self._survived)
        )
        return calls

    def _check_survival(self, before: int) -> None:
        """Every body counts its finite steps on the device; the smallest count tells the step that broke, and its place the body."""
        module = array_module(self.bodies.device)
        survived = int(module.min(self._survived))
        if survived < self.step - before:
            body = int(module.argmin(self._survived))
            raise InputError(
                f"step {before + survived + 1}: body {body} has no finite position or velocity any more; "
                "a smaller dt or more softening keeps close encounters finite"
            )
        self._survived.fill(0)

    # ------------------------------------------------------------ looking

    @property
    def acceleration(self) -> Any:
        """Accelerations of the current positions for G = 1, shape (n, 3), on the device."""
        return self._force.results[0]

    def diagnostics(self) -> Diagnostics:
        """Energies and momenta, computed by the library's own kernels and summed in float64."""
        kinetic, momentum, angular, scale = self._physics.moments.sum(self.bodies)
        return Diagnostics(self.step, self.time, kinetic, self._potential(), momentum, angular, scale)

    def energy(self) -> float:
        """The total energy."""
        return self.diagnostics().total

    def _potential(self) -> float:
        potential = self._physics.potential.bind(
            self.bodies, self.bodies, softening2=self.softening**2, plan=Plan(parts=1, accumulate="f64")
        )
        return self.gravitational_constant * float(self._physics.potential_energy.sum(self.bodies, potential()))


def make_bodies(
    particles: Any, *, precision: str = "f32", layout: Layout | None = None, device: str | None = None
) -> RecordArray:
    """Record arrays from `Particles` (float64 arrays on the host) in a precision, layout and place."""
    if precision not in RECORDS:
        raise InputError(f"unknown precision {precision!r}; wanted one of {', '.join(RECORDS)}")
    where = resolve(device)
    cls: Any = RECORDS[precision]
    record = cls.__record__
    layout = layout or default_layout(record, where)
    if precision == "f32":
        check_range(particles)
    count = len(particles.mass)
    require_memory(where, layout.arrange(record.leaves).nbytes(count) + count * 24, f"a simulation of {count:,} bodies")
    bodies: RecordArray = cls.array(
        position=particles.position, mass=particles.mass, velocity=particles.velocity, layout=layout, device=where
    )
    return bodies
