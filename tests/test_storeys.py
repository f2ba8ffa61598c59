"""Imports lead down: no room uses one of its own storey or above, but for a few names of the facade, each with its reason."""

from __future__ import annotations

from graphlib import TopologicalSorter

from tests.storeys import STOREYS, imports, modules, room, storeys

FACADE = {
    # methods of what users hold, which are at hand there and belong to rooms above
    ("language", "records.arrays", "RecordArray"): "Body.array(...), Body.zeros(...)",
    ("language", "runtime.mesh", "Mesh"): "Body.array(..., device=mesh)",
    ("language", "layouts", "Layout"): "their argument `layout`, for type checkers",
    ("launch", "explanation", "Explanation"): "what .explain() returns",
    ("launch", "explanation.build", "explain_compiled"): "call.explain()",
    ("loops", "explanation.loops", "launches_of"): "loop.explain() has the launches of a step",
    ("launch", "tuning.job", "Job"): "what .tuning_job() returns",
    ("patterns.sitewise", "explanation", "Explanation"): "what .explain() returns",
    ("patterns.sitewise", "explanation.sites", "explain_step"): "stepper.explain()",
    ("patterns", "tuning", "tune_job"): "kernel.tune()",
    ("patterns", "tuning.job", "Job"): "what .tuning_job() returns",
    ("patterns", "tuning.job", "Workload"): "what .tuning_job() is made of",
    ("patterns", "tuning.job", "make_workload"): "what .tuning_job() is made of",
    ("patterns", "tuning.job", "check_tunable"): "kernel.tune() refuses what it cannot measure",
    ("patterns", "tuning.report", "Tuning"): "what .tune() returns",
    ("patterns", "advice.choose", "layout_advice"): "kernel.tune() names a faster layout",
    (
        "tuning",
        "patterns.search.tuning.tune",
        "replay_search",
    ): "lanewise.tuning.replay repeats every recorded search",
    ("lanewise", "sims", "sims"): "lw.sims, loaded when it is first asked for",
    ("language", "records.interchange", "array_of"): "Body.array(...)",
    ("language", "records.structures", "structure_of"): "Body.dtype",
    # pickle calls these functions by their names
    ("language", "records.pickled", "restored_row"): "pickle.dumps(row)",
}

CIRCLES = {
    ("records.arrays", "records.pickled"): "pickle.dumps(array)",
    ("patterns.elementwise.kernel", "patterns.elementwise.gradient"): "kernel.gradient(...)",
    ("patterns.pairwise.kernel", "patterns.pairwise.gradient"): "kernel.gradient(...)",
    ("explanation.report", "explanation.rendering"): "str(explanation), and what notebooks show",
    ("sims.boids.flock", "sims.boids.checkpoint"): "flock.checkpoint(...), Flock.resume(...)",
    ("sims.lbm.simulation", "sims.lbm.checkpoint"): "simulation.checkpoint(...), Simulation.resume(...)",
    ("sims.lbm.cases.registry", "sims.lbm.cases"): "a refusal names the cases that have an obstacle",
}
"""Files whose functions import, when they are called, what stands on them: methods that are at hand there."""


def test_every_room_has_a_storey() -> None:
    rooms = {room(m) for m in modules()}
    assert rooms == set(storeys()), "rooms that STOREYS of tests/storeys.py lacks, or that are gone"
    assert len(storeys()) == sum(map(len, STOREYS))


def test_imports_lead_down() -> None:
    wrong: list[str] = []
    used: set[tuple[str, str, str]] = set()
    for i in imports():
        here, there = room(i.source), room(i.target)
        if here == there or storeys()[there] < storeys()[here]:
            continue
        name = (here, i.target, i.name)
        used.add(name)
        if name not in FACADE or i.when == "top":
            wrong.append(str(i))
    assert not wrong, "these imports lead upwards, or sideways:\n" + "\n".join(wrong)
    assert used == set(FACADE), "names of the facade that nobody imports any more"


def test_no_circles_at_import() -> None:
    """What files import at their top is without circles, name by name: Python loads them in any order."""
    files: dict[str, set[str]] = {m: set() for m in modules()}
    for i in imports():
        if i.when == "top" and i.source != i.target:
            files[i.source].add(i.target)
    TopologicalSorter(files).prepare()  # raises CycleError


def test_no_circles_when_functions_run() -> None:
    """Nor has what functions import, but for `CIRCLES`; what type checkers alone read counts for nothing."""
    files: dict[str, set[str]] = {m: set() for m in modules()}
    used: set[tuple[str, str]] = set()
    for i in imports():
        if i.when == "types" or i.source == i.target or (room(i.source), i.target, i.name) in FACADE:
            continue
        if (pair := (i.source, i.target)) in CIRCLES:
            used.add(pair)
        else:
            files[i.source].add(i.target)
    assert used == set(CIRCLES), "circles that are no more"
    TopologicalSorter(files).prepare()  # raises CycleError


def test_products_stand_alone() -> None:
    """A product uses the frame, and no other product; the frame uses none."""
    wrong = [
        str(i) for i in imports() if (here := _product(i.source)) and _product(i.target) not in ("", "common", here)
    ]
    assert not wrong, "imports from one product to another:\n" + "\n".join(wrong)


def _product(module: str) -> str:
    return module.split(".")[1] if module.startswith("sims.") else ""
