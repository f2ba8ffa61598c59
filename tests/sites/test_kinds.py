"""Kinds of sites: numbers and names that may not be given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lanewise.patterns.sitewise.kinds import check_new
from lanewise.support.errors import ArgumentError

TAKEN = [(0, "flow"), (2, "wall")]
RANGE = "wanted an integer from 1 to 31; 0 is the function itself"

REFUSED: list[tuple[Any, Any, str]] = [
    (0, "inlet", f"kind 0 ('inlet'): {RANGE}"),
    (-1, "inlet", f"kind -1 ('inlet'): {RANGE}"),
    (32, "inlet", f"kind 32 ('inlet'): {RANGE}"),
    (True, "inlet", f"kind True ('inlet'): {RANGE}"),
    (1.0, "inlet", f"kind 1.0 ('inlet'): {RANGE}"),
    ("1", "inlet", f"kind '1' ('inlet'): {RANGE}"),
    (np.int64(1), "inlet", f"kind np.int64(1) ('inlet'): {RANGE}"),
    (1, 5, "kind 1 needs a name, for example \"inlet\"; found 5"),
    (1, "", "kind 1 needs a name, for example \"inlet\"; found ''"),
    (1, "periodic", "kind 1: 'periodic' is a rule of the edges; choose another name"),
    (1, "slip", "kind 1: 'slip' is a rule of the edges; choose another name"),
    (1, "outflow", "kind 1: 'outflow' is a rule of the edges; choose another name"),
    (2, "inlet", "kind 2 is 'wall' already; choose another number for 'inlet'"),
    (1, "wall", "'wall' is kind 2 already; choose another name for kind 1"),
    (1, "flow", "'flow' is kind 0 already; choose another name for kind 1"),
]  # fmt: skip


@pytest.mark.parametrize(("number", "name", "text"), REFUSED, ids=str)
def test_refusals(number: Any, name: Any, text: str) -> None:
    with pytest.raises(ArgumentError) as error:
        check_new(number, name, TAKEN)
    assert str(error.value) == text


@pytest.mark.parametrize("number", [1, 3, 31])
def test_what_is_free_is_taken(number: int) -> None:
    check_new(number, "inlet", TAKEN)
