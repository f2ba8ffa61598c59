"""Imports lead down: no room uses one of its own storey or above, but for a few names of the facade, each with its reason."""

from __future__ import annotations

from graphlib import TopologicalSorter

from tests.storeys import STOREYS, imports, modules, room, storeys

FACADE = {
    # methods of what users hold, which are at hand there and belong to rooms above
    ("record", "arrays", "RecordArray"): "Body.array(...), Body.zeros(...)",
    ("record", "layouts", "Layout"): "their argument `layout`, for type checkers",
    ("launch", "explanation", "Explanation"): "what .explain() returns",
    ("launch", "explanation.build", "explain_compiled"): "call.explain()",
    ("launch", "models.occupancy", "kernel_resources"): "call.compiled.resources, which models look at, too",
    ("launch", "tuning.job", "Job"): "what .tuning_job() returns",
    ("patterns.sitewise", "explanation", "Explanation"): "what .explain() returns",
    ("patterns.sitewise", "explanation.sites", "explain_step"): "stepper.explain()",
    ("patterns.calls", "advice.choose", "layout_advice"): "kernel.tune() names a faster layout",
    (
        "tuning",
        "patterns.search.tuning.tune",
        "replay_search",
    ): "lanewise.tuning.replay repeats every recorded search",
    ("tuning", "patterns.search.tuning.job", "SearchJob"): "kernel.tune() of a search takes the same way",
    ("lanewise", "sims", "sims"): "lw.sims, loaded when it is first asked for",
    ("record", "interchange", "array_of"): "Body.array(...)",
    ("record", "interchange", "structure_of"): "Body.dtype",
    ("arrays", "interchange", "dtype_of"): "array.dtype",
    ("arrays", "interchange", "structured"): "array.to_structured()",
    ("arrays", "interchange", "dataframe"): "array.dataframe()",
    ("arrays", "interchange", "contiguous"): "array.contiguous(...)",
    # pickle calls these functions by their names
    ("record", "pickled", "restored_row"): "pickle.dumps(row)",
    ("arrays", "pickled", "restored_array"): "pickle.dumps(array)",
}


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


def test_products_stand_alone() -> None:
    """A product uses the frame, and no other product; the frame uses none."""
    wrong = [
        str(i) for i in imports() if (here := _product(i.source)) and _product(i.target) not in ("", "common", here)
    ]
    assert not wrong, "imports from one product to another:\n" + "\n".join(wrong)


def _product(module: str) -> str:
    return module.split(".")[1] if module.startswith("sims.") else ""
