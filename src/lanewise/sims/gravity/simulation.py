"""A gravity simulation: bodies, an integrator, and time.

simulation = Simulation(bodies, softening=0.02)
simulation.run(steps=100, dt=1e-3)
simulation.diagnostics().total

One class, and long, because what users read of a simulation is documented here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

import lanewise as lw
from lanewise.profiling.profile import Profile, span
from lanewise.records.binding import places_of, side_of
from lanewise.records.two_sides import EVERY
from lanewise.sims.common.checks import check_every, check_steps
from lanewise.sims.common.clock import Clock
from lanewise.sims.common.devices import array_module, on, read_only
from lanewise.sims.common.loops import orders_made, product_loop
from lanewise.sims.common.meshes import (
    in_one_place,
    lies_on,
    mesh_of,
    require_divided,
)
from lanewise.sims.common.processes import joined
from lanewise.sims.common.searches import device_order_of, is_order, order_of
from lanewise.sims.common.timed_steps import TimedSteps, run_steps
from lanewise.sims.gravity.checks import (
    DTYPES,
    check_bodies,
    check_gravitational_constant,
    check_softening,
    check_time_step,
)
from lanewise.sims.gravity.diagnostics import Diagnostics
from lanewise.sims.gravity.forces import Force, check_forces, potential_energy
from lanewise.sims.gravity.integrators import Integrator
from lanewise.sims.gravity.integrators import integrator as find_integrator
from lanewise.sims.gravity.launches import step_calls
from lanewise.sims.gravity.law import BoundGravity, wanted_plans
from lanewise.sims.gravity.physics import (
    pair_type,
    precision_of,
    state_type,
)
from lanewise.sims.gravity.plans import Plans
from lanewise.sims.gravity.trees import (
    ForceErrors,
    follow_order,
    force_errors,
)
from lanewise.sims.gravity.watch import Watch
from lanewise.support.attributes import sealed
from lanewise.support.checks import checked
from lanewise.support.errors import InputError
from lanewise.support.numerals import counted
from lanewise.support.uncopied import uncopied
from lanewise.support.whole_steps import WholeSteps

if TYPE_CHECKING:
    from lanewise.live.scenes import Scene
    from lanewise.sims.common.shown import LoopExplanation

Callback = Callable[["Simulation"], None]
SHORT = 1e-3  # a time step, for what is explained before one was given

_FIXED = {
    "bodies": "write to its fields, simulation.bodies.position[...] = ..., or make a new "
    "Simulation of other bodies",
    "acceleration": "it follows from the bodies",
    "forces": "make a new Simulation with forces=...",
    "precision": "it is that of the bodies: make_bodies(..., precision=...), and a new Simulation "
    "of them",
    "plan": "make a new Simulation with plan=...",
    "plans": "make a new Simulation with plan=... and potential_plan=...",
    "search": "make a new Simulation with search=...",
    "step": "it counts the steps that were taken; a new Simulation takes step=...",
    "time": "it follows from the steps; a new Simulation takes time=...",
}


@sealed(_FIXED)
class Simulation:
    """N bodies under their own gravity.

    You may assign softening, integrator, gravitational_constant and profile: the next step is then
    that of a new simulation of the same bodies. You may also write the fields of `bodies` before
    and after `run`, in its callbacks and between `steps`: the next step computes the forces again.
    Other attributes cannot be assigned (`AttributeError`).

    Parameters
    ----------
    bodies: a record array with position, mass and velocity (see `physics.RECORDS`), on a device or
    a mesh; it is advanced in place. On a mesh results have the same bits for any number of parts.
    softening: Plummer softening length, >= 0, in units of length.
    integrator: "leapfrog" (kick-drift-kick), "euler" (semi-implicit) or "yoshida4".
    gravitational_constant: G in the units of the bodies.
    forces: forces besides gravity (see `Force`).
    time: the time of the initial state; step: the number of steps before it.
    plan, potential_plan: plans of the kernels of forces and of the potential energy; with the
    `plans` of another simulation on such a device results have its bits.
    search: lw.Tree(...) sums far bodies in groups, for forces and for the potential energy; None
    computes every pair. `force_errors` measures the errors of a tree.
    profile: records where the time goes (`lw.Profile()`); results keep their bits.

    Raises `InputError` for values out of range and for NaN or infinity in the bodies, `DeviceError`
    when the memory does not suffice.
    """

    __slots__ = (
        "__weakref__",
        "_bodies",
        "_forces",
        "_g",
        "_integrator",
        "_law",
        "_order",
        "_pair",
        "_places",
        "_precision",
        "_rebuilds",
        "_search",
        "_steps",
        "_watch",
    )  # fmt: skip

    def __reduce__(self) -> NoReturn:
        uncopied(
            "a simulation",
            "copy its bodies, and make another one with time=, step= and the same settings",
        )

    @checked(InputError)
    def __init__(
        self,
        bodies: lw.RecordArray,
        *,
        softening: float = 0.0,
        integrator: str = "leapfrog",
        gravitational_constant: float = 1.0,
        forces: Sequence[Force] = (),
        time: float = 0.0,
        step: int = 0,
        plan: lw.Plan | None = None,
        potential_plan: lw.Plan | None = None,
        search: lw.Tree | None = None,
        profile: Profile | None = None,
    ) -> None:
        self._forces, self._search = tuple(forces), search
        clock = Clock(step, time, step, 0.0, 0.0)
        remedy = "start again from a checkpoint, or from the first state of the bodies"
        self._steps = TimedSteps(clock, profile, "the simulation", remedy)
        with span(profile, "setup", name="simulation"):
            self._begin(bodies, softening, integrator, gravitational_constant, plan, potential_plan)

    def _begin(
        self,
        bodies: lw.RecordArray,
        softening: float,
        integrator: str,
        gravitational_constant: float,
        plan: lw.Plan | None,
        potential_plan: lw.Plan | None,
    ) -> None:
        """Check everything, allocate, and compute the first forces."""
        self._precision = precision_of(bodies.record)
        self._pair = pair_type(self._precision)
        softening = float(check_softening(softening, self._pair))
        check_gravitational_constant(gravitational_constant)
        check_bodies(bodies, self._pair)
        tree = self._search is not None
        check_forces(self._forces, bodies, self._pair)
        self._bodies = bodies
        self._integrator, self._g = find_integrator(integrator), gravitational_constant
        count = len(bodies)
        # accelerations and potential; counts of steps; what they were
        row = 4 * DTYPES[self._pair].itemsize + 4 + -(-bodies.nbytes // max(1, count))
        what = f"a simulation of {counted(count, 'body', 'bodies')}, besides the bodies themselves,"
        require_divided(mesh_of(bodies) or bodies.device, count, row, what)
        plans = wanted_plans(self._precision, plan, potential_plan, tree=tree)
        self._law = BoundGravity(bodies, softening, self._search, *plans)
        self._places = places_of(bodies)  # bound calls keep an array with layout="auto" there
        for force in self._forces:
            force.acceleration()
        self._watch = Watch(bodies, self.step)
        self._order: NDArray[np.int32] | None = None  # of the forces, where no loop has one
        self._rebuilds = 0

    # ------------------------------------------------------------ settings

    @property
    def softening(self) -> float:
        """Plummer softening length."""
        return self._law.softening

    @softening.setter
    @checked(InputError)
    def softening(self, value: float) -> None:
        self._steps.whole.check()
        law = self._law.softened(float(check_softening(value, self._pair)))
        self._end_loop()
        self._law = law
        self._order = None  # that of the new call

    @property
    def integrator(self) -> Integrator:
        """Its kicks and drifts; it is set by its name."""
        return self._integrator

    @integrator.setter
    @checked(InputError)
    def integrator(self, value: str | Integrator) -> None:
        kind = value if isinstance(value, Integrator) else find_integrator(value)
        self._end_loop()
        self._integrator = kind

    @property
    def gravitational_constant(self) -> float:
        """G in the units of the bodies."""
        return self._g

    @gravitational_constant.setter
    @checked(InputError)
    def gravitational_constant(self, value: float) -> None:
        check_gravitational_constant(value)
        self._end_loop()
        self._g = value

    @property
    def profile(self) -> Profile | None:
        """The profile that records where the time goes."""
        return self._steps.profile

    @profile.setter
    @checked(InputError)
    def profile(self, value: Profile | None) -> None:
        self._end_loop()
        self._steps.profile = value

    def _end_loop(self) -> None:
        """The next steps have a separate loop, and the order of this one."""
        self._order = self.tree_order
        self._steps.end()

    @property
    def bodies(self) -> lw.RecordArray:
        """The bodies. They are advanced in place; you may write to them between steps."""
        return self._bodies

    @property
    def forces(self) -> tuple[Force, ...]:
        """Those besides gravity."""
        return self._forces

    @property
    def precision(self) -> str:
        """That of the bodies: "f32", "f64" or "mixed"."""
        return self._precision

    @property
    def search(self) -> lw.Tree | None:
        """The tree that sums far bodies in groups; None if every pair is computed."""
        return self._search

    @property
    def tree_order(self) -> NDArray[np.int32] | None:
        """The order of the bodies in the tree, (n,): with it `continue_from` gives the bits of an
        uninterrupted run. None without a tree.
        """
        if self._search is None:
            return None
        if (loop := self._steps.loop) is not None:
            return loop.orders[0]
        return order_of(self._law.gravity) if self._order is None else self._order

    @property
    def rebuilds(self) -> int | None:
        """How often steps of this simulation have rebuilt the tree instead of moving it with the
        bodies: in every 32nd step, and after the bodies were written to. None without a tree.
        """
        return None if self._search is None else self._rebuilds

    @property
    def _order_there(self) -> Any:
        """The `tree_order` where the bodies are, as it is then."""
        if (loop := self._steps.loop) is not None:
            return loop._orders[0].copies[0]  # pyright: ignore[reportPrivateUsage]
        if self._order is not None:
            with on(self._bodies.device):
                return array_module(self._bodies.device).asarray(self._order)
        return device_order_of(self._law.gravity)

    @property
    def plan(self) -> lw.Plan:
        """The fields of the plan of forces that were requested."""
        return self._law.plan

    # ------------------------------------------------------------ advancing

    @property
    def step(self) -> int:
        """How many steps led to the present state."""
        return self._steps.clock.step

    @property
    def scene(self) -> Scene:
        """What a live view shows."""
        from lanewise.sims.gravity.live import scene

        return scene(self)

    @property
    def whole(self) -> WholeSteps:
        """Its steps as a unit; observers between them register as `watched`."""
        return self._steps.whole

    @property
    def time(self) -> float:
        """Start time plus all steps; computed by multiplication, so it does not drift."""
        return self._steps.clock.time

    @property
    def force_evaluations_per_step(self) -> int:
        return len(self._integrator.drifts)

    @checked(InputError)
    def advance(self, steps: int, dt: float) -> None:
        """Take `steps` steps of `dt` and wait for them. On CUDA they run as graphs.

        Ctrl-C ends it after whole steps, which are counted. Raises `InputError` when a body leaves
        the finite numbers, and `StateError` after steps that were stopped in the middle (see
        `WholeSteps`).
        """
        check_steps(steps, least=0)
        self._steps.whole.check()
        self.prepare(dt)
        self._notice()
        first, loop = self.step, self._steps.loop
        assert loop is not None, "it is prepared"
        try:
            self._steps.take(steps)
        except BaseException as error:
            if isinstance(error, lw.ArgumentError) and joined() is None:
                self._refuse_lost()
            if not self._steps.whole.broken:  # Ctrl-C, after whole steps
                with suppress(InputError):  # which the next steps say again
                    self._watch.settle(self.step)
            raise
        finally:
            self._rebuilds += orders_made(loop, first, self.step)
        with span(self._steps.profile, "check"):
            self._watch.settle(self.step)

    def _refuse_lost(self) -> None:
        """A tree has refused positions within a step: say it as of bodies over all pairs."""
        self._watch.look()
        check_bodies(self._bodies, self._pair)

    def _notice(self) -> None:
        """Where a caller has written to the bodies, compute what was computed from them again."""
        if places_of(self._bodies) is not self._places:
            raise InputError(
                f"the bodies were {self._places.count:,} when the simulation was made, and are "
                f"{len(self._bodies):,} now; make a new "
                "Simulation of them"
            )
        side_of(self._bodies).read(EVERY)
        if not self._watch.changed():
            return
        check_bodies(self._bodies, self._pair)
        for call in (self._law.gravity, *(f.acceleration for f in self._forces)):
            call()
        if self._search is not None:
            self._rebuilds += 1
            if (loop := self._steps.loop) is not None:
                loop.orders = (order_of(self._law.gravity),)
        self._watch.restart(self.step)

    @checked(InputError)
    def prepare(self, dt: float) -> None:
        """Compile what steps of `dt` need, so that the first one costs no more than the others."""
        check_time_step(dt, state_type(self._precision), self._g)
        if dt != self._steps.clock.dt:
            self._end_loop()
        self._steps.prepare(dt, lambda: self._make_loop(dt))

    def _make_loop(self, dt: float) -> lw.Steps:
        law, kind = self._law, self._integrator
        calls = step_calls(
            law.physics, kind, self._bodies, law.gravity, self._forces, self._watch.counts, dt,
            self._g,
        )  # fmt: skip
        order = self.tree_order
        loop = product_loop(calls, None, self.profile, of="simulation")
        loop.step = self.step  # trees are made anew at steps of these numbers
        if order is not None:  # a loop makes one when it is made, at any step
            loop.orders = (order,)
        return loop

    @checked(InputError)
    def continue_from(self, step: int, dt: float, order: Any = None) -> None:
        """Declare that the bodies are those after `step` steps of `dt`: a resumed run then computes
        its times like an uninterrupted one, and its forces with the tree of that step.

        order: the `tree_order` of that step, if there is a tree. Raises `InputError` for an order
        that does not name each body once.
        """
        if order is not None and self._search is None:
            raise InputError("order= is that of a tree, and this simulation has none; leave it out")
        if order is not None and not is_order(order, len(self._bodies)):
            raise InputError(
                f"order= does not name each of {len(self._bodies):,} bodies once; wanted the "
                "tree_order of that step"
            )
        self._steps.clock = replace(
            self._steps.clock, step=self._steps.clock.start_step + step, dt=dt
        )
        self._end_loop()
        if order is not None:
            self._order = np.array(order, np.int32)
            follow_order(self._law.gravity, self._order)
        self._watch.restart(self.step)

    @checked(InputError)
    def run(
        self,
        steps: int,
        dt: float,
        callback: Callback | None = None,
        every: int = 1,
        *,
        progress: bool = False,
    ) -> Simulation:
        """`steps` steps of `dt`; `callback(simulation)` after every `every` of them and after the
        last. progress: with a bar.
        """
        return run_steps("gravity", self, steps, dt, callback, every, progress=progress)

    @checked(InputError)
    def steps(self, dt: float, every: int = 1) -> Iterator[Simulation]:
        """Iterate without end: `for state in simulation.steps(dt, every=10): ...` advances by
        `every` steps each time.
        """
        check_every(every)
        while True:
            self.advance(every, dt)
            yield self

    # ------------------------------------------------------------ looking

    def __repr__(self) -> str:
        where, how = lies_on(self._bodies), f"{self.integrator.name}, {self.precision}"
        return (
            f"<gravity of {counted(len(self._bodies), 'body', 'bodies')}, step {self.step:,}, "
            f"time {self.time:g}, {how} on {where}>"
        )

    @property
    def acceleration(self) -> Any:
        """Accelerations of the current positions, shape (n, 3), on the device: a copy, read-only on
        a CPU.

        In length / time², with the simulation's gravitational constant; of the scalar type of
        forces.
        """
        self._steps.whole.check()
        self._notice()
        gravity = self._law.gravity.results[0]  # for G = 1
        with on(self._bodies.device):
            total = gravity * gravity.dtype.type(self.gravitational_constant)
            for force in self._forces:
                total += force.acceleration.results[0]
        return read_only(total)

    def diagnostics(self) -> Diagnostics:
        """Energies and momenta, computed by the library's own kernels and summed in float64."""
        self._steps.whole.check()
        first = not self._law.is_measured
        with span(
            self._steps.profile, "diagnostics", name="first (compiles)" if first else "measured"
        ):
            bodies = in_one_place(self._bodies)
            kinetic, momentum, angular, scale = self._law.physics.moments.sum(bodies)
            potential = self._g * self._law.potential_energy(bodies)
            potential += sum(map(potential_energy, self._forces))
            return Diagnostics(self.step, self.time, kinetic, potential, momentum, angular, scale)

    def force_errors(self, accuracy: float | None = None) -> ForceErrors:
        """The errors of gravity now, for some of the bodies, spread evenly over all: of |a|,
        relative to all pairs in float64. accuracy: the wanted bound of 99 % of the errors; the
        sample is then large enough to tell whether it holds (None: about 1,024 bodies).
        """
        self._steps.whole.check()
        self._notice()
        with span(self._steps.profile, "diagnostics", name="errors of forces"):
            accelerations = self._law.gravity.results[0]
            return force_errors(self._bodies, accelerations, self.softening, accuracy)

    @checked(InputError)
    def explain(self) -> LoopExplanation:
        """All launches of the next step; on a mesh also the copies between its parts, their links,
        and the predicted speed of 2, 4 and 8 parts. Print it. On several GPUs it measures the rates
        of links, which takes some milliseconds.
        """
        self.prepare(self._steps.clock.dt or SHORT)
        loop = self._steps.loop
        assert loop is not None, "it is prepared"
        return loop.explain()

    def energy(self) -> float:
        """The total energy."""
        return self.diagnostics().total

    @property
    def plans(self) -> Plans:
        """The complete plans of its kernels over pairs."""
        return self._law.plans

    def check_whole(self) -> None:
        """Raise `StateError` if steps were stopped in the middle: their state is invalid."""
        self._steps.whole.check()
