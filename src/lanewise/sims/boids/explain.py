"""The kernels of a flock as they are compiled for a device, to be explained, and the steering as a flock binds it, to be tuned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lanewise.compiler.default_plans import complete_plan
from lanewise.compiler.work import describe_work
from lanewise.explanation.offline import DEFAULT_ARCH, Offline
from lanewise.explanation.subject import Subject
from lanewise.ir import nodes as ir
from lanewise.ir.names import COUNT, GATHER_STEP, turns_of
from lanewise.ir.pattern import Work
from lanewise.language.record import Record
from lanewise.language.types import F32, F64, I32, I64, Vector
from lanewise.launch.arguments import classify_arguments, name_arguments
from lanewise.launch.compiled import Compiled
from lanewise.launch.support import compile_kernel
from lanewise.layouts import default_layout
from lanewise.models.devices import DeviceModel, device_model, table_model
from lanewise.patterns.elementwise.build import ElementwiseArguments, build_elementwise
from lanewise.patterns.search.build import SEARCH
from lanewise.runtime.devices import missing_for_cuda
from lanewise.sims.boids.boundaries import find_boundary
from lanewise.sims.boids.choice import find_search, search_world
from lanewise.sims.boids.flock import Flock
from lanewise.sims.boids.options import DT
from lanewise.sims.boids.parameters import NUMBERS, move_values, pair_values
from lanewise.sims.boids.rules import record_class
from lanewise.sims.boids.semantics import URGES, rules_of, steering
from lanewise.sims.common.devices import CPU, check_compiled, target_of
from lanewise.support.attributes import near
from lanewise.support.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lanewise.patterns.search.tuning.job import SearchJob

SETTABLE = ("k", "world", "think_every", "start_radius", "seed", *NUMBERS)


def explained(
    device: str, agents: int, precision: str, layout: str | None, arch: str | None, values: Mapping[str, float]
) -> tuple[str, tuple[Offline, ...]]:
    """What finds flockmates and why, and the kernels of steering and of moving `agents` that fill a world of radius 50.

    On "cuda" no GPU is needed; the search is laid out on the host. `values`: k, world, think_every, and numbers of the rules.
    Raises `InputError`.
    """
    numbers = _numbers(values)
    chosen = layout or str(default_layout(record_class(precision).__record__, device)).lower()
    flock = Flock(agents, start="world", device="cpu", precision=precision, layout=chosen, **numbers)
    search = f"search: {flock.describe_search()} ({flock.search_reason})"
    if target_of(device) is CPU:
        kernels = (_steer(flock), _move(flock))
        model = device_model("cpu")
    else:
        model = table_model(arch or DEFAULT_ARCH) if arch or missing_for_cuda() else device_model("cuda")
        kernels = (_steer_on_gpu(flock), _move(flock, I32))
    return search, (_offline(flock, device, model, *kernels[0]), _offline(flock, device, model, *kernels[1]))


def tuning_job(device: str, agents: int, precision: str, layout: str | None, values: Mapping[str, float]) -> SearchJob:
    """The steering of a flock as `lanewise boids run` starts it, in a ball of 0.4 of the world, through every structure worth trying.

    `values`: k, world, start_radius, and numbers of the rules. Raises `InputError` and `DeviceError`.
    """
    check_compiled("boids", device)  # before agents are made
    numbers = _numbers(values)
    if "think_every" in numbers:
        raise InputError(
            "--set think_every: structures are measured for flocks whose agents think in every step; leave it out"
        )
    flock = Flock(agents, device=device, precision=precision, layout=layout, **numbers)
    s = flock.settings
    wish = find_search("auto", s.parameters.radius, s.k, search_world(find_boundary(s.boundary).end, s.world))
    kernel, arguments = steering(s, flock.boids, wish)
    assert kernel.searched is not None
    return kernel.searched.tuning_job(arguments, None, kernel.bind)


def _numbers(values: Mapping[str, float]) -> dict[str, Any]:
    """Arguments of `Flock` from numbers of the command line."""
    numbers: dict[str, Any] = dict(values)
    for name in numbers:
        if name not in SETTABLE:
            raise InputError(
                f"boids has no value {name!r} to set{near(name, SETTABLE) or ';'} it has {', '.join(SETTABLE)}"
            )
    for name in ("k", "think_every", "seed"):
        if name in numbers:
            if numbers[name] != int(numbers[name]):
                raise InputError(f"--set {name}={numbers[name]:g}: wanted a whole number")
            numbers[name] = int(numbers[name])
    return numbers


def _steer(flock: Flock) -> tuple[str, ir.Kernel, Mapping[str, Any]]:
    compiled = _compiled(flock)
    return compiled.name, compiled.reference, _told(compiled)


def _compiled(flock: Flock) -> Compiled:
    steer = rules_of(flock.settings).steer.using(flock.search)
    return steer.compile(flock.boids, flock.boids, **pair_values(flock.settings.parameters))


def _steer_on_gpu(flock: Flock) -> tuple[str, ir.Kernel, Mapping[str, Any]]:
    """As on the host, with the indices of a GPU."""
    steer = rules_of(flock.settings).steer.using(flock.search)
    over, structure = steer.searched, flock.structure
    assert over is not None
    assert structure is not None
    named = name_arguments(steer.signature, (flock.boids, flock.boids), pair_values(flock.settings.parameters))
    arguments = classify_arguments(steer.signature, named, arrays_allowed=False)
    copied = over.copied(arguments) if structure.order is not None else ()
    reference = over.reference(arguments, flock.search, structure, copied, I32)
    return steer.__name__, reference, {**_told(_compiled(flock)), GATHER_STEP: 1.0}


def _told(compiled: Compiled) -> Mapping[str, Any]:
    """The counts and values of a call, and how often the loops of its search run."""
    return {**compiled.environment, **{turns_of(n): turns for n, turns in compiled.turns().items()}}


def _move(flock: Flock, index: Any = I64) -> tuple[str, ir.Kernel, Mapping[str, Any]]:
    s, move = flock.settings, rules_of(flock.settings).move
    numbers: dict[str, Any] = {**move_values(s.parameters, DT), "world": s.world}
    vector = Vector(F64 if s.precision == "f64" else F32, 3)
    kinds = {n: k for n, k in move.signature.parameters.items() if n in numbers and not isinstance(k, Record)}
    arguments = ElementwiseArguments(
        {"b": (flock.boids.record, flock.boids.layout)}, dict.fromkeys(URGES, vector), kinds
    )
    weights = dict(zip(("weights.x", "weights.y", "weights.z"), numbers.pop("weights"), strict=True))
    return move.__name__, build_elementwise(move.lowered, arguments, index), {**numbers, **weights, COUNT: len(flock)}


def _offline(
    flock: Flock, device: str, model: DeviceModel, name: str, reference: ir.Kernel, environment: Mapping[str, Any]
) -> Offline:
    """The kernel with its default plan, compiled and loaded nowhere."""
    agents = len(flock)
    plan = complete_plan(None, model.machine, Work(reference.pattern, agents))
    executable = compile_kernel(reference, plan, device, arch=model.compiled_for)
    layouts = (
        {"target": flock.boids.layout, "source": flock.boids.layout}
        if reference.pattern is SEARCH
        else {"b": flock.boids.layout}
    )
    counts = dict.fromkeys(layouts if reference.pattern is SEARCH else ("elements",), agents)
    subject = Subject(
        name, reference, executable.program.plan, device, model, environment, counts, layouts, describe_work(reference, agents),
        tuple(c.resources for c in executable.cubins),
    )  # fmt: skip
    return Offline(subject, executable)
