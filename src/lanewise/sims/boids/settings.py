"""Everything that decides how a flock continues, but for its agents: what a checkpoint keeps."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import lanewise as lw
from lanewise.io.schema import record
from lanewise.layouts import default_layout, layout_by_name
from lanewise.sims.boids.boundaries import find_boundary
from lanewise.sims.boids.images import check_images, images, look_ahead
from lanewise.sims.boids.obstacles import Obstacle, Plane, as_dict, check_obstacle, obstacle_of
from lanewise.sims.boids.parameters import (
    LONGEST,
    SHORTEST,
    THESIS_K,
    Parameters,
    check_parameters,
    check_semantics,
    make_parameters,
)
from lanewise.sims.boids.rules import BOUNDED, BOX, RECORDS, SPHERE, record_class
from lanewise.sims.boids.statistics import Statistics
from lanewise.sims.common.checks import (
    MOST_STEPS,
    check_known,
    check_time_step,
    readable,
)
from lanewise.sims.common.clock import Clock
from lanewise.sims.common.devices import first_of, is_mesh, place_of, target_of
from lanewise.sims.common.meshes import spelled
from lanewise.support.attributes import frozen
from lanewise.support.errors import InputError

FLAT = 2  # the dimension of a flock in the plane
RAREST_THOUGHT = 1024  # steps, each of which has its own launches


@frozen
@dataclass(frozen=True, slots=True)
class Settings:
    """Names and numbers. `obstacles`: besides those of the boundary. `search`: as it was requested,
    a name or "given". dimension: 2 in the plane y = 0; collide: whether agents that touch are moved
    apart. Older files lack these two.
    """

    semantics: str
    parameters: Parameters
    k: int | None
    search: str
    world: float
    boundary: str
    obstacles: tuple[Obstacle, ...]
    think_every: int
    precision: str
    layout: str
    device: str
    dimension: int = 3
    collide: bool = False

    @property
    def all_obstacles(self) -> tuple[Obstacle, ...]:
        """Those of the boundary first."""
        return (*find_boundary(self.boundary).obstacles(self.world), *self.obstacles)

    @property
    def met(self) -> tuple[Obstacle, ...]:
        """All that agents may meet on their way: in a periodic world with their images."""
        obstacles, p = self.all_obstacles, self.parameters
        return (
            images(obstacles, self.world, p.agent_radius, look_ahead(p))
            if self.is_periodic
            else obstacles
        )

    @property
    def seen(self) -> tuple[Obstacle, ...]:
        """All that stand in the world, for pictures: in a periodic one with the parts that come in
        at other faces.
        """
        obstacles = self.all_obstacles
        planes = tuple(o for o in obstacles if isinstance(o, Plane))
        others = tuple(o for o in obstacles if not isinstance(o, Plane))
        return (*images(others, self.world, 0.0, 0.0), *planes) if self.is_periodic else obstacles

    @property
    def touching(self) -> float:
        """How near to each other agents collide."""
        return 2 * self.parameters.agent_radius

    @property
    def is_periodic(self) -> bool:
        """Whether the world repeats."""
        return find_boundary(self.boundary).end == BOX


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What a run adds to its checkpoints: where it ends, its interval of frames, its last frame
    (-1: none), the statistics of step 0.

    checkpoint_every: steps between checkpoints, 0 where the run chooses; older files lack it.
    """

    steps: int
    dt: float
    every: int
    last_frame: int
    first: Statistics
    checkpoint_every: int = 0


def usual_k(k: int | None, semantics: str) -> int | None:
    """How many flockmates count: the semantics' own number where none is requested."""
    return THESIS_K if k is None and semantics == "thesis" else k


def asked_settings(
    *,
    semantics: str,
    constants: Mapping[str, float],
    k: int | None,
    search: str | lw.Search,
    world: float,
    boundary: str,
    obstacles: Sequence[Obstacle],
    think_every: int,
    precision: str,
    layout: str | None,
    device: str | lw.Mesh | None,
    dimension: int = 3,
    collide: bool = False,
) -> Settings:
    """The settings of the arguments of a flock; raises `InputError` for values out of range."""
    parameters = make_parameters(semantics, constants)
    check_world(world)
    check_precision(precision)
    check_think_every(think_every)
    check_dimension(dimension)
    find_boundary(boundary)
    for o in obstacles:
        check_obstacle(o)
    place = place_of(device)
    chosen = (
        layout_by_name(layout)
        if layout
        else default_layout(record_class(precision).__record__, first_of(place))
    )
    settings = Settings(
        semantics, parameters, usual_k(k, semantics), spelled_search(search), world, boundary,
        tuple(obstacles), think_every, precision, str(chosen).lower(), spelled(place),
        dimension, collide,
    )  # fmt: skip
    check_fit(settings)
    check_extent(settings)
    return settings


def spelled_search(search: str | lw.Search) -> str:
    """A search as settings name it."""
    return search if isinstance(search, str) else "given"


def as_parameters(settings: Settings) -> dict[str, Any]:
    """Flat names and values for the attributes of a file."""
    return {
        **{n: v for n, v in asdict(settings).items() if n not in ("obstacles", "parameters")},
        **asdict(settings.parameters),
        "obstacles": [json.dumps(as_dict(o)) for o in settings.obstacles] or None,
    }


def settings_to_json(settings: Settings) -> str:
    """One line; floats read back exactly."""
    return json.dumps({**asdict(settings), "obstacles": [as_dict(o) for o in settings.obstacles]})


def settings_from_json(text: str) -> Settings:
    """What `settings_to_json` wrote; raises `InputError` for anything else."""
    with readable("settings"):
        values: dict[str, Any] = json.loads(text)
        obstacles = [_obstacle(o) for o in values.pop("obstacles")]
        return replace(
            record(Settings, {**values, "obstacles": ()}, "a flock"), obstacles=tuple(obstacles)
        )


def _obstacle(values: Mapping[str, Any]) -> Obstacle:
    return obstacle_of(str(values["kind"]), {n: v for n, v in values.items() if n != "kind"})


# ------------------------------------------------------------ what is refused


def check_world(world: float) -> None:
    """Refuse what is no positive, finite length, and one whose square or its inverse float32 cannot
    hold.
    """
    if not (math.isfinite(world) and world > 0):
        raise InputError(f"the radius of the world is {world:g}; wanted a finite length above zero")
    if world > LONGEST:
        raise InputError(
            f"the radius of the world is {world:g}; wanted at most {LONGEST:g}: distances are "
            "squared"
        )
    if world < SHORTEST:
        raise InputError(
            f"the radius of the world is {world:g}; wanted at least {SHORTEST:g}: distances are "
            "squared"
        )


def check_extent(settings: Settings) -> None:
    """Refuse a world with an end that is nearer than what agents see.

    A periodic one asks for it of its search.
    """
    radius, end = settings.parameters.radius, find_boundary(settings.boundary).end
    if end in (SPHERE, BOUNDED) and settings.world < radius:
        raise InputError(
            f"the radius of the world is {settings.world:g}, and flockmates are seen up to the "
            f"radius {radius:g}; wanted a world at "
            "least as large, or a smaller radius"
        )


def check_stride(settings: Settings, dt: float) -> None:
    """Refuse steps in which an agent may fly through the whole of a spherical world: it would come
    back outside of it.
    """
    stride, across = settings.parameters.max_speed * dt, 2 * settings.world
    if find_boundary(settings.boundary).end == SPHERE and stride > across:
        raise InputError(
            f"the time step is {dt:g}, in which an agent flies {stride:g}, more than the world's "
            f"diameter of {across:g}; "
            "wanted a smaller one"
        )


def check_think_every(every: int) -> None:
    """Refuse less than every step, and so many that their launches fill the memory."""
    if every < 1:
        raise InputError(f"think-every is {every}; wanted a whole number of steps from 1 on")
    if every > RAREST_THOUGHT:
        raise InputError(f"think-every is {every}; wanted at most {RAREST_THOUGHT} steps")


def check_dimension(dimension: int) -> None:
    """Refuse other than two and three."""
    if dimension not in (FLAT, 3):
        raise InputError(
            f"the dimension is {dimension}; wanted 3, or 2 for a flock in the plane y = 0"
        )


def check_precision(precision: str) -> None:
    """Refuse an unknown one."""
    check_known("precision", precision, RECORDS)


def check_settings(settings: Settings) -> None:
    """Refuse settings that no flock could have had, as those of a file may be."""
    check_semantics(settings.semantics)
    check_parameters(settings.parameters)
    check_world(settings.world)
    check_precision(settings.precision)
    check_think_every(settings.think_every)
    check_dimension(settings.dimension)
    find_boundary(settings.boundary)
    layout_by_name(settings.layout)
    for obstacle in settings.obstacles:
        check_obstacle(obstacle)
    check_fit(settings)


def check_clock(clock: Clock) -> None:
    """Refuse steps and times that no flock could have come to."""
    times = (clock.start_time, clock.elapsed, clock.dt)
    if not (
        0 <= clock.start_step <= clock.step <= 2 * MOST_STEPS
        and all(map(math.isfinite, times))
        and clock.dt >= 0
    ):
        raise InputError(f"damaged checkpoint: its clock is {clock}")


def check_plan(plan: RunPlan, clock: Clock) -> None:
    """Refuse the plan of a run that cannot have come to this step."""
    check_time_step(plan.dt)
    if not (
        clock.step <= plan.steps <= 2 * MOST_STEPS
        and 0 <= plan.every <= MOST_STEPS
        and 0 <= plan.checkpoint_every <= MOST_STEPS
        and plan.last_frame <= clock.step
    ):
        raise InputError(
            f"damaged checkpoint: its run is to step {plan.steps}, at step {clock.step}: {plan}"
        )


def _check_touch(settings: Settings) -> None:
    """Refuse agents of a periodic world that would touch images of themselves."""
    if settings.collide and settings.touching > settings.world:
        raise InputError(
            f"agents of radius {settings.parameters.agent_radius:g} collide up to "
            f"{settings.touching:g} from each other; in a periodic world of "
            f"{2 * settings.world:g} that is at most half of it, {settings.world:g}: wanted a "
            "smaller agent_radius, or a larger world"
        )


def check_fit(settings: Settings) -> None:
    """Refuse obstacles that cannot be repeated, and what one agent after another cannot have."""
    if settings.is_periodic:
        check_images(settings.all_obstacles, settings.world, settings.parameters)
        _check_touch(settings)
    if is_mesh(settings.device) and settings.think_every != 1:
        raise InputError(
            "agents that do not think in every step are on one device, found "
            f"{settings.device}; leave think-every out, or name one device"
        )
    if settings.collide and is_mesh(settings.device):
        raise InputError(
            f"agents that collide are on one device, found {settings.device}; leave collide out, "
            "or name one device"
        )
    if settings.semantics != "seq":
        return
    if settings.collide:
        raise InputError(
            "semantics seq moves one agent after another, and those that touch are moved apart all "
            "at once; leave collide out, or use semantics sync"
        )
    if is_mesh(settings.device):
        raise InputError(
            f"semantics seq moves one agent after another, on one device, found "
            f"{settings.device}; wanted --device cpu, or --semantics sync"
        )
    if target_of(settings.device).has_blocks:
        raise InputError(
            f"semantics seq moves one agent after another, which {settings.device} cannot do; "
            "wanted --device cpu, or --semantics sync"
        )
    if settings.k is not None:
        raise InputError(
            "semantics seq sees all flockmates within the radius, as OpenSteer does; leave k out, "
            "or use semantics sync"
        )
    if settings.search not in ("auto", "all-pairs"):
        raise InputError(
            "semantics seq looks at all pairs, because a structure would be out of date after "
            f"every agent; found search {settings.search}"
        )
    if settings.boundary == "periodic":
        raise InputError(
            "semantics seq does not see across the faces of a periodic world; wanted another "
            "boundary, or semantics sync"
        )
    if settings.think_every != 1:
        raise InputError(
            "semantics seq lets every agent think in every step; leave think-every out, or use "
            "semantics sync"
        )
