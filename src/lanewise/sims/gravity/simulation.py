"""A gravity simulation: bodies, an integrator, and time.

simulation = Simulation(bodies, softening=0.02)
simulation.run(steps=100, dt=1e-3)
simulation.diagnostics().total
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from lanewise.arrays import RecordArray
from lanewise.checks import checked
from lanewise.errors import InputError
from lanewise.io.particles import Particles
from lanewise.kernels.compiled import Call, Compiled
from lanewise.layouts import Layout, default_layout
from lanewise.plan import Plan
from lanewise.profiling.profile import Profile, span
from lanewise.runtime.devices import resolve
from lanewise.runtime.memory import require_memory
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
from lanewise.sims.gravity.launches import step_launches
from lanewise.sims.gravity.physics import RECORDS, make_physics, pair_type, precision_of, state_type
from lanewise.sims.gravity.plans import WANTED_POTENTIAL, Plans, wanted_force
from lanewise.sims.gravity.survival import Survival

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
    plan, potential_plan: decisions for the kernels of forces and of the potential energy; `plans` of another simulation
    on such a device give its bits.
    profile: is told where the time goes (`lw.Profile()`); results keep their bits.

    Raises `InputError` for values out of range and for NaN or infinity in the bodies, `DeviceError` when the memory does not suffice.
    """

    @checked(InputError)
    def __init__(
        self, bodies: RecordArray, *, softening: float = 0.0, integrator: str = "leapfrog", gravitational_constant: float = 1.0,
        time: float = 0.0, step: int = 0, plan: Plan | None = None, potential_plan: Plan | None = None,
        profile: Profile | None = None,
    ) -> None:  # fmt: skip
        self.profile = profile
        with span(profile, "setup", name="simulation"):
            self._begin(bodies, softening, integrator, gravitational_constant, time, step, plan, potential_plan)

    def _begin(
        self, bodies: RecordArray, softening: float, integrator: str, gravitational_constant: float, time: float, step: int,
        plan: Plan | None, potential_plan: Plan | None,
    ) -> None:  # fmt: skip
        """Check everything, allocate, and compute the first forces."""
        self.precision = precision_of(bodies.record)
        self._pair = pair_type(self.precision)
        check_softening(softening, self._pair)
        check_gravitational_constant(gravitational_constant)
        check_bodies(bodies, self._pair)
        self.bodies, self.softening, self.integrator = bodies, float(softening), find_integrator(integrator)
        self.gravitational_constant = gravitational_constant
        self.start_time, self.start_step, self.step = time, step, step
        self._physics = make_physics(bodies._python_class, self_force_vanishes(softening, self._pair))  # pyright: ignore[reportPrivateUsage]
        self.plan = (plan or Plan()).filled(wanted_force(self.precision))
        self._wanted_potential = (potential_plan or Plan()).filled(WANTED_POTENTIAL)
        count = len(bodies)
        nbytes = count * (4 * self._pair.size + 4)  # accelerations and potential; counts of steps
        require_memory(bodies.device, nbytes, f"a simulation of {count:,} bodies, besides the bodies themselves,")
        self._survival = Survival(count, bodies.device)
        self._force: Call = self._physics.acceleration.bind(bodies, bodies, softening2=softening**2, plan=self.plan)
        self._force()
        self._potential: Compiled | None = None  # compiled when it is asked for
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

    @checked(InputError)
    def advance(self, steps: int, dt: float) -> None:
        """Take `steps` steps of `dt` and wait for them. On CUDA they run as graphs.

        Raises `InputError` when a body leaves the finite numbers.
        """
        check_steps(steps, least=0)
        self.prepare(dt)
        assert self._stepper is not None
        before = self.step
        self._stepper.run(steps)
        self.step += steps
        with span(self.profile, "check"):
            self._survival.check(before, self.step)

    @checked(InputError)
    def prepare(self, dt: float) -> None:
        """Compile what steps of `dt` need, so that the first one costs no more than the others."""
        check_time_step(dt, state_type(self.precision), self.gravitational_constant)
        if dt != self._dt:
            self._elapsed += (self.step - self.start_step) * self._dt
            self.start_step, self._dt, self._stepper = self.step, dt, None
        if self._stepper is not None:
            return
        with span(self.profile, "setup", name="launches of a step"):
            launches = step_launches(
                self._physics, self.integrator, self.bodies, self._force, self._survival, dt, self.gravitational_constant
            )  # fmt: skip
            self._stepper = make_stepper(self.bodies.device, launches, self.profile)

    @checked(InputError)
    def continue_from(self, step: int, dt: float) -> None:
        """Say that the bodies are `step` steps of `dt` on: a resumed run computes its times as an uninterrupted one."""
        self.step, self._dt = self.start_step + step, dt

    @checked(InputError)
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

    @checked(InputError)
    def steps(self, dt: float, every: int = 1) -> Iterator[Simulation]:
        """Iterate without end: `for state in simulation.steps(dt, every=10): ...`, each turn `every` steps on."""
        check_interval(every)
        while True:
            self.advance(every, dt)
            yield self

    # ------------------------------------------------------------ looking

    @property
    def acceleration(self) -> Any:
        """Accelerations of the current positions for G = 1, shape (n, 3), on the device."""
        return self._force.results[0]

    def diagnostics(self) -> Diagnostics:
        """Energies and momenta, computed by the library's own kernels and summed in float64."""
        first = self._potential is None
        with span(self.profile, "diagnostics", name="first (compiles)" if first else "measured"):
            kinetic, momentum, angular, scale = self._physics.moments.sum(self.bodies)
            return Diagnostics(self.step, self.time, kinetic, self._potential_energy(), momentum, angular, scale)

    def energy(self) -> float:
        """The total energy."""
        return self.diagnostics().total

    @property
    def plans(self) -> Plans:
        """The plans that its kernels over pairs run with, every field decided."""
        return Plans(self._force.compiled.plan, self._compiled_potential().plan)

    def _compiled_potential(self) -> Compiled:
        if self._potential is None:
            self._potential = self._physics.potential.compile(
                self.bodies, self.bodies, softening2=self.softening**2, plan=self._wanted_potential
            )
        return self._potential

    def _potential_energy(self) -> float:
        potential = self._compiled_potential()(self.bodies, self.bodies, softening2=self.softening**2)
        return self.gravitational_constant * float(self._physics.potential_energy.sum(self.bodies, potential))


@checked(InputError)
def make_bodies(
    particles: Particles, *, precision: str = "f32", layout: Layout | None = None, device: str | None = None,
    profile: Profile | None = None,
) -> RecordArray:  # fmt: skip
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
    nbytes = layout.arrange(record.leaves).nbytes(count)
    with span(profile, "transfer", name="bodies to the device", nbytes=nbytes):
        bodies: RecordArray = cls.array(
            position=particles.position, mass=particles.mass, velocity=particles.velocity, layout=layout, device=where
        )
    return bodies
