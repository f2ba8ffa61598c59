"""Products and ladders stand on public names; what they take from inside is listed with a reason.

A list may become shorter. A longer one wants a public name instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.storeys import imports

PUBLIC = ("lanewise", "support", "io", "plot", "profiling", "layouts", "records")
"""The facade, documented `lanewise.layouts`, and rooms that know nothing of kernels."""

FACES = ("models", "planning")
"""Rooms of which others take what the room itself names, and none of its modules."""

Inside = Mapping[str, tuple[str, tuple[str, ...]]]
"""A module, why it uses what nobody else should, and which modules that are."""

PRODUCTS: Inside = {
    # the frame of the products: the one place for each
    "sims.common.devices": (
        "what products ask of devices, which to users are names",
        (
            "language.target", "primitives.changes", "primitives.remembered_bandwidth", "runtime.compile_workers", "runtime.device",
            "runtime.devices", "runtime.memory", "runtime.mesh",
        ),
    ),
    "sims.common.loops": (
        "errors that name the product, and launches of its own within graphs",
        ("launch.steps.task", "loops.functions", "loops.steps", "runtime.programs"),
    ),
    "sims.common.processes": ("what products ask of several processes", ("runtime.ranks", "runtime.transport")),
    "sims.common.viewing": ("runs are served from their own options", ("live.feed", "live.recording", "live.scales", "live.scenes", "live.server")),
    "sims.common.searches": (
        "the structure of a call and its order of elements, which no public object holds",
        (
            "launch.tuned_plans", "loops.orders", "patterns.part_rooms", "patterns.search", "patterns.search.automatic",
            "patterns.search.base", "patterns.search.builders.geometry", "patterns.search.near_rows", "patterns.search.part_orders",
            "patterns.search.picker", "patterns.search.points", "patterns.search.reordering",
            "patterns.search.searched_launch", "patterns.search.tree.choice", "patterns.search.tree.on_mesh", "patterns.search.tree.tail", "runtime.exchange",
            "runtime.memory",
        ),
    ),
    "sims.common.shown": (
        "steps on a mesh are explained by what products say of their parts",
        (
            "explanation.calls", "explanation.mesh_kernels", "explanation.mesh_scaling", "explanation.mesh_sites",
            "explanation.mesh_steps", "launch.sent", "loops.explanation", "patterns.sitewise.blocks", "runtime.mesh",
        ),
    ),
    # what only one product has
    "sims.boids.flock": ("the type of its scene", ("live.scenes",)),
    "sims.gravity.simulation": ("the type of its scene", ("live.scenes",)),
    "sims.lbm.simulation": ("the type of its scene", ("live.scenes",)),
    "sims.boids.live": ("what a view shows of a flock", ("live.clouds", "live.feed", "live.frame", "live.scenes")),
    "sims.gravity.live": ("what a view shows of bodies", ("live.clouds", "live.groups", "live.scenes", "patterns.search.tree.shape")),
    "sims.lbm.live": ("what a view shows of a flow", ("live.fields", "live.scenes")),
    "sims.waves.live": ("what a view shows of a search", ("live.boxes", "live.frame", "live.scales", "live.scenes")),
    "sims.boids.semantics": ("agents that move one after another, a pattern without a public name", ("patterns.sequential.kernel",)),
    "sims.lbm.arguments": (
        "the balance of moving walls before memory is taken, and names of streaming forms",
        ("patterns.sitewise.balance", "patterns.sitewise.kinds", "patterns.sitewise.streaming"),
    ),
    "sims.lbm.engine": ("the bytes of sites, which go on on any number of parts", ("patterns.sitewise.site_state",)),
    "sims.lbm.operators.assembly": ("operators are put together from source", ("frontend.source",)),
    "sims.lbm.runner": ("older checkpoints reflect with less damping", ("patterns.sitewise.fractions",)),
}  # fmt: skip

LADDERS: Inside = {
    "ladders.boids_meetings": ("constants of structures, as papers have them", ("patterns.search.dynamic_grid", "patterns.search.static_grid")),
    "ladders.lbm_sites": (
        "how a step marks, splits and addresses sites, which is what the paper is about",
        (
            "explanation.site_facts", "explanation.sites", "ir.names", "launch.executable", "models.roofline", "patterns.sitewise.calls",
            "patterns.sitewise.flags", "patterns.sitewise.links", "patterns.sitewise.passes.splitting", "patterns.sitewise.sites",
            "primitives.copying", "runtime.occupancy",
        ),
    ),
    "ladders.memory_cells": (
        "clocks within a kernel, which no public kernel has, and the model of layouts",
        (
            "advice.cost", "compiler.pipeline", "ir.names", "ir.nodes", "ir.verify", "language.record", "language.types", "launch.arguments",
            "launch.executable", "launch.support", "passes.clocking", "passes.gathering", "passes.layout_lowering", "passes.thread_mapping",
            "patterns.elementwise.build",
        ),
    ),
}  # fmt: skip


def used(roof: str, own: Callable[[str, str], bool]) -> dict[str, set[str]]:
    """By module of products or ladders: what it imports that is not public."""
    inside: dict[str, set[str]] = {}
    for i in imports():
        if (
            i.source.split(".")[0] == roof
            and i.target.split(".")[0] not in PUBLIC
            and i.target not in FACES
            and not own(i.source, i.target)
        ):
            inside.setdefault(i.source, set()).add(i.target)
    return inside


def listed(inside: Inside) -> dict[str, set[str]]:
    return {source: set(targets) for source, (_, targets) in inside.items()}


def shown(inside: Mapping[str, set[str]]) -> list[str]:
    return sorted(f"{source}: {target}" for source, targets in inside.items() for target in targets)


def test_products_take_public_names() -> None:
    found = used("sims", lambda source, target: target.split(".")[0] == "sims")
    assert shown(found) == shown(listed(PRODUCTS))


def test_ladders_take_public_names() -> None:
    found = used("ladders", lambda source, target: target.split(".")[0] in ("ladders", "sims"))
    assert shown(found) == shown(listed(LADDERS))
