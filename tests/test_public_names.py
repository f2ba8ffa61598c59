"""Products and ladders stand on public names; what they take from inside is listed with a reason.

A list may become shorter. A longer one wants a public name instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.storeys import imports

PUBLIC = ("lanewise", "support", "io", "plot", "profiling", "layouts", "records")
"""The facade, documented `lanewise.layouts`, and rooms that know nothing of kernels."""

Inside = Mapping[str, tuple[str, tuple[str, ...]]]
"""A module, why it uses what nobody else should, and which modules that are."""

_KERNELS = "kernels written by hand, which pictures of many agents need"
_STEPS = "launches of a step with names for profiles"
_TYPES = "types of numbers, for ranges and for kernels that are made in each precision"

PRODUCTS: Inside = {
    # the frame of the products: the one place for each
    "sims.common.devices": (
        "what products ask of devices",
        ("language.target", "primitives.changes", "primitives.copying", "runtime.device", "runtime.devices", "runtime.memory", "runtime.mesh"),
    ),
    "sims.common.frame": ("kernels of a run are compiled side by side", ("runtime.compile_workers",)),
    "sims.common.plan_text": ("plans of older checkpoints lack fields", ("planning.plan",)),
    "sims.common.run": ("Ctrl-C waits for whole steps", ("runtime.compile_workers", "runtime.whole_steps")),
    # explained and tuned by the command line
    "sims.boids.explain": (
        "`lanewise explain boids` and `tune boids`",
        ("explanation.calls", "explanation.compiled", "patterns.search.tuning.job"),
    ),
    "sims.gravity.explain": (
        "`lanewise explain gravity`",
        ("explanation.calls", "explanation.compiled", "explanation.offline", "patterns.search.tuning.calibration", "tuning.job"),
    ),
    "sims.lbm.explain": ("`lanewise explain lbm`", ("explanation.compiled", "explanation.offline", "patterns.sitewise.tuning")),
    "sims.waves.explain": (
        "`lanewise explain waves`", ("explanation.calls", "explanation.compiled", "tuning.job"),
    ),
    # gravity
    "sims.gravity.checks": (_TYPES, ("language.types",)),
    "sims.gravity.launches": (_STEPS, ("loops.staged",)),
    "sims.gravity.trees": (
        "checkpoints keep a tree's order of the bodies, and what was calibrated",
        ("loops.orders", "patterns.search.tree.choice"),
    ),
    "sims.gravity.physics": (_TYPES, ("language.types", "language.record")),
    "sims.gravity.simulation": (
        "steps as graphs, and writes to bodies that are noticed",
        (
            "launch.compiled", "loops.steps",
            "runtime.whole_steps",
        ),
    ),
    # flocks: a search that is chosen, kept and asked for its order
    "sims.boids.choice": (
        "where cells lay when a checkpoint was written",
        ("patterns.search.base", "patterns.search.builders.geometry", "patterns.search.points", "patterns.search.worlds"),
    ),
    "sims.boids.choosing": (
        "the search that was tuned, or is best for where agents are",
        ("launch.tuned_plans", "patterns.search.automatic", "patterns.search.points"),
    ),
    "sims.boids.flock": (
        "steps as graphs over the search that was chosen",
        (
            "loops.steps", "patterns.search.base", "patterns.search.points", "runtime.whole_steps",
        ),
    ),
    "sims.boids.rules": (_TYPES, ("language.types",)),
    "sims.boids.semantics": (
        "the structure of a search, and agents that move one after another",
        (
            "launch.arguments", "launch.steps.task", "loops.functions", "loops.staged",
            "patterns.search.base", "patterns.search.searched_launch",
            "patterns.sequential.kernel", "runtime.programs",
        ),
    ),
    "sims.boids.storage": (
        "agents are brought into the order of the search, in graphs",
        (
            "patterns.search.base", "patterns.search.reordering",
        ),
    ),
    "sims.boids.view.colours": (_KERNELS, ("runtime.cpu",)),
    "sims.boids.view.raster": (_KERNELS, ("runtime.cpu",)),
    # flows
    "sims.lbm.arguments": (
        "the balance of moving walls before memory is taken, and names of streaming forms",
        ("patterns.sitewise.balance", "patterns.sitewise.kinds", "patterns.sitewise.streaming"),
    ),
    "sims.lbm.boundaries.faces": ("directions of a lattice", ("language.lattices.base",)),
    "sims.lbm.engine": (
        "types of what flows give",
        ("patterns.sitewise.observer", "patterns.sitewise.steppers", "patterns.sitewise.tuning"),
    ),
    "sims.lbm.operators.assembly": ("operators are put together from source", ("frontend.source",)),
    "sims.lbm.operators.kbc": ("directions of a lattice", ("language.lattices.base",)),
    "sims.lbm.operators.numbers": ("directions of a lattice", ("language.lattices.base",)),
    "sims.lbm.remembered_bandwidth": ("a measurement that lasts a week", ("runtime.cache",)),
    "sims.lbm.runner": ("older checkpoints reflect with less damping", ("patterns.sitewise.fractions",)),
}  # fmt: skip

LADDERS: Inside = {
    "ladders.boids_meetings": (
        "constants of structures, as papers have them", ("models.devices", "patterns.search.dynamic_grid", "patterns.search.static_grid"),
    ),
    "ladders.boids_run": ("the model of a device, and how long graphs are", ("models.devices", "runtime.programs")),
    "ladders.compiler": ("complete plans", ("planning.plan",)),
    "ladders.compiler_plans": ("plans by their declarations", ("ir.pattern", "planning.plan")),
    "ladders.compiler_run": (
        "predictions, and counts of operations", ("ir.nodes", "ir.traverse", "models.devices", "models.predict", "planning.plan"),
    ),
    "ladders.layouts": ("neutral plans", ("planning.plan",)),
    "ladders.lbm_model": (
        "predictions of a step, beside those of the paper",
        (
            "explanation.site_facts", "explanation.sites", "ir.names", "launch.executable", "models.devices",
            "models.formulas", "models.predict",
            "models.roofline", "patterns.sitewise.links", "patterns.sitewise.passes.splitting",
            "patterns.sitewise.sites",
            "runtime.occupancy",
        ),
    ),
    "ladders.lbm_run": (
        "types of sites and their calls", ("models.devices", "patterns.sitewise.calls", "patterns.sitewise.sites", "runtime.programs"),
    ),
    "ladders.lbm_truth": ("marks of in-place streaming", ("patterns.sitewise.flags", "patterns.sitewise.sites")),
    "ladders.memory": ("the model of layouts", ("advice.cost", "models.devices")),
    "ladders.memory_cells": (
        "clocks within a kernel, which no public kernel has",
        (
            "compiler.pipeline", "ir.nodes", "ir.names", "ir.verify", "language.record",
            "language.types",
            "launch.arguments", "launch.executable", "launch.support", "models.devices",
            "passes.clocking",
            "passes.gathering", "passes.layout_lowering", "passes.thread_mapping",
            "patterns.elementwise.build", "planning.plan",
        ),
    ),
    "ladders.run": (
        "predictions and steps in graphs",
        ("launch.executable", "models.devices", "models.least", "models.predict", "runtime.stepping"),
    ),
    "ladders.tree": ("calls that run without what a call checks", ("runtime.stepping",)),
    "ladders.tutorial": ("neutral plans", ("language.record", "planning.plan")),
}  # fmt: skip


def used(roof: str, own: Callable[[str, str], bool]) -> dict[str, set[str]]:
    """By module of products or ladders: what it imports that is not public."""
    inside: dict[str, set[str]] = {}
    for i in imports():
        if i.source.split(".")[0] == roof and i.target.split(".")[0] not in PUBLIC and not own(i.source, i.target):
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
