"""A class name means one thing: several classes share one only where they are the same idea, or where both names are public."""

from __future__ import annotations

import ast
from collections import defaultdict

from tests.storeys import SOURCE, all_statements

PRODUCTS = "each product has its own of what the frame asks for"
LADDERS = "each ladder has its own of what a ladder is"
PUBLIC = "public names, of different rooms"

SHARED = {
    "Asked": PRODUCTS,
    "Boundary": PRODUCTS,
    "Checkpoint": PRODUCTS,
    "Film": PRODUCTS,
    "Output": PRODUCTS,
    "Pictures": PRODUCTS,
    "Resumed": PRODUCTS,
    "Settings": PRODUCTS,
    "Simulation": PRODUCTS,
    "State": PRODUCTS,
    "Figure": LADDERS,
    "Truth": LADDERS,
    "Version": LADDERS,
    "Runner": "ladders run versions, and loops run steps: parts are made when they are first needed",
    "Block": "sites of a box that lie together, and one SFT of a file",
    "Body": "the record of a body, in gravity and in a paper's benchmark",
    "Buffer": "a piece of memory, as a layout divides it and as a task touches it",
    "Call": "a call: as an expression of the IR, and with its arguments bound",
    "Candidates": "what is looked at before one is chosen: sources of a walk, structures that tuning measures",
    "Choice": "what was chosen, and public in waves",
    "Clock": "which step it is, and what follows from that: of a product, of a loop",
    "Entry": "an entry of a store of plans, and one of the lists that maps are made of",
    "Every": "something in the steps n with n % interval == at",
    "Field": "a field of a record, which pickles name, and the public field of a lattice",
    "Geometry": "public in waves, and what cells of a search lie in",
    "Job": "something to do with all that decides its result, public in waves",
    "Kernel": "the user's function under a pattern, and its IR",
    "Launch": "a kernel over so many elements, as a task and of cells",
    "Mesh": PUBLIC,
    "Nearest": "what a search is requested, and the list that its walk fills",
    "Open": PUBLIC,
    "Part": "a part: of the sites, of a map",
    "Span": "a stretch: of the layers of a box, of records",
    "Program": "the kernels that a call runs",
    "Rectangle": PUBLIC,
    "Row": PUBLIC,
    "Search": PUBLIC,
    "Series": "public in cases of flow, and launches one after the other in the IR",
    "Slot": "a place in a row of them: of a scalar in a block, of an argument in a call",
    "Statistics": "public for flocks, and of a structure",
    "Step": "a step of a sequence: over elements, over sites",
    "Wall": PUBLIC,
}


def test_classes_share_a_name_only_with_a_reason() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for path in SOURCE.rglob("*.py"):
        for node in all_statements(ast.parse(path.read_text(encoding="utf-8"))):
            # a name with an underscore is known in its own file alone
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(f"{path.relative_to(SOURCE)}:{node.lineno}")
    shared = {name: places for name, places in found.items() if len(places) > 1}
    new = {name: places for name, places in shared.items() if name not in SHARED}
    assert not new, f"classes of one name; call each what it is, or give the reason in SHARED: {new}"
    assert sorted(SHARED) == sorted(shared), "these are shared no more"
