"""Imports lead down: no room uses one of its own storey or above, but by the names of `lanewise.facade`, each with its
reason.
"""

from __future__ import annotations

from graphlib import TopologicalSorter

from lanewise.facade import NAMES
from tests.storeys import FACADE, STOREYS, imports, leads_down, modules, room, storeys

PRODUCTS = ("lanewise", "sims", "sims")
"""`lw.sims`, which the stub of the package names: it is loaded when it is first requested."""


def test_every_room_has_a_storey() -> None:
    rooms = {room(m) for m in modules()}
    assert rooms == set(storeys()), "rooms that STOREYS of tests/storeys.py lacks, or that are gone"
    assert len(storeys()) == sum(map(len, STOREYS))


def test_imports_lead_down() -> None:
    wrong = [str(i) for i in imports() if not leads_down(i) and (i.source, i.target, i.name) != PRODUCTS]
    assert not wrong, "these imports lead upwards, or sideways:\n" + "\n".join(wrong)


def test_the_facade_has_what_leads_up_and_nothing_else() -> None:
    """Its table and what type checkers read are one list; each name is used, by a function that runs later or by a type
    checker, where a plain import would lead up or close a circle.
    """
    read = {i.name: i.target for i in imports() if i.source == FACADE and i.when == "types"}
    assert read == {name: above.module for name, above in NAMES.items()}
    assert all(above.why for above in NAMES.values())
    used = [i for i in imports() if i.target == FACADE]
    assert {i.name for i in used} == set(NAMES), "names that nobody imports any more"
    assert [str(i) for i in used if i.when == "top"] == []
    low = [str(i) for i in used if storeys()[room(NAMES[i.name].module)] < storeys()[room(i.source)]]
    assert low == [], "these lead down, and are imported from where they live"


def test_no_circles_at_import() -> None:
    """What files import at their top is without circles, name by name: Python loads them in any order."""
    files: dict[str, set[str]] = {m: set() for m in modules()}
    for i in imports():
        if i.when == "top" and i.source != i.target:
            files[i.source].add(i.target)
    TopologicalSorter(files).prepare()  # raises CycleError


def test_no_circles_when_functions_run() -> None:
    """Nor has what functions import, but through the facade; what type checkers alone read counts for nothing."""
    files: dict[str, set[str]] = {m: set() for m in modules()}
    for i in imports():
        if i.when != "types" and i.source != i.target and FACADE not in (i.source, i.target):
            files[i.source].add(i.target)
    files["lanewise"].discard("sims")
    TopologicalSorter(files).prepare()  # raises CycleError


def test_products_stand_alone() -> None:
    """A product uses the frame, and no other product; the frame uses none."""
    wrong = [
        str(i) for i in imports() if (here := _product(i.source)) and _product(i.target) not in ("", "common", here)
    ]
    assert not wrong, "imports from one product to another:\n" + "\n".join(wrong)


def _product(module: str) -> str:
    return module.split(".")[1] if module.startswith("sims.") else ""
