"""Rules at the faces of a box: what is read, and what is refused with which words."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from lanewise.patterns.sitewise.kinds import OUTFLOW, Edges, read_edges
from lanewise.support.errors import ArgumentError
from tests.lbm.boxes import edges_of
from tests.sites.follow import WALLS

KNOWN = "'periodic', 'slip', 'outflow', 'wall', 'lid'"


@pytest.mark.parametrize(
    ("rules", "faces"),
    [
        (None, (("periodic", "periodic"), ("periodic", "periodic"))),
        ({}, (("periodic", "periodic"), ("periodic", "periodic"))),
        ({"y": "slip"}, (("periodic", "periodic"), ("slip", "slip"))),
        ({"x": "wall", "y": ("slip", "lid")}, ((30, 30), ("slip", 31))),
        ({"y": ["lid", "wall"], "x": ("wall", "outflow")}, ((30, OUTFLOW), (31, 30))),
        ({"x": ("periodic", "periodic")}, (("periodic", "periodic"), ("periodic", "periodic"))),
    ],
)
def test_rules_become_faces_x_first(rules: Any, faces: Any) -> None:
    assert read_edges(rules, 2, WALLS) == Edges(faces)


@given(edges_of("xyz"))
def test_every_face_is_found_by_the_step_that_reaches_it(rules: Any) -> None:
    edges = read_edges(rules, 3, WALLS)
    for axis, name in enumerate("xyz"):
        both = rules[name] if isinstance(rules[name], tuple) else (rules[name],) * 2
        assert [edges.face(axis, step) for step in (-1, 1)] == [WALLS.get(rule, rule) for rule in both]
    assert edges.walls == {number for name, number in WALLS.items() if any(name in rule for rule in rules.values())}
    assert edges.outlets == ()


def test_outlets_are_faces_that_cut_links_like_walls() -> None:
    edges = read_edges({"x": ("wall", "outflow"), "y": ("outflow", "slip")}, 2, WALLS)
    assert edges.outlets == ((0, 1), (1, -1))
    assert edges.walls == {30, OUTFLOW}


REFUSED: list[tuple[Any, str]] = [
    ({"z": "wall"}, "edges have the axes x, y, found 'z'"),
    ({0: "wall"}, "edges have the axes x, y, found '0'"),
    ({"x": "walls"}, f"the edge 'walls' of x is unknown; wanted one of {KNOWN}"),
    ({"y": 30}, f"the edge 30 of y is unknown; wanted one of {KNOWN}"),
    ({"y": ("wall", None)}, f"the edge None of y is unknown; wanted one of {KNOWN}"),
    ({"x": ("wall",)}, "the edges of x are one rule, or two: (low, high); found ('wall',)"),
    ({"x": ("wall", "lid", "slip")}, "the edges of x are one rule, or two: (low, high); found ('wall', 'lid', 'slip')"),
    ({"x": ("wall", "periodic")}, "x is periodic at both ends or at none, found ('wall', 'periodic')"),
    ({"y": ("periodic", "slip")}, "y is periodic at both ends or at none, found ('periodic', 'slip')"),
    ("wall", 'edges are rules by axis, for example {"x": "slip", "y": "periodic"}; found \'wall\''),
    ([("x", "wall")], 'edges are rules by axis, for example {"x": "slip", "y": "periodic"}; found [(\'x\', \'wall\')]'),
]  # fmt: skip


@pytest.mark.parametrize(("rules", "text"), REFUSED, ids=str)
def test_refusals(rules: Any, text: str) -> None:
    with pytest.raises(ArgumentError) as error:
        read_edges(rules, 2, WALLS)
    assert str(error.value) == text
