"""Tables of pandas: an array of records as one, and one as an array."""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.support.errors import ArgumentError
from lanewise.support.installation import install
from tests.layouts.test_layouts import ALL
from tests.test_structured import Grain, assert_equal, values

COLUMNS = ["position_x", "position_y", "position_z", "alive", "mass", "kind"]


def test_a_sentence_where_pandas_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ArgumentError, match=re.escape(f"dataframe() needs pandas: {install('pandas')}")):
        Grain.zeros(2).dataframe()
    assert len(Grain.array(values())) == len(values())  # others do not ask for it


@pytest.mark.parametrize("layout", ALL, ids=str)
def test_there_and_back(layout: lw.Layout) -> None:
    pytest.importorskip("pandas")
    array = Grain.array(values(), layout=layout)
    frame = array[1:].dataframe()
    assert list(frame.columns) == COLUMNS
    assert [str(t) for t in frame.dtypes] == ["float32", "float32", "float32", "bool", "float64", "int32"]
    assert_equal(Grain.array(frame, layout=layout).to_structured(), array[1:].to_structured())
    frame["mass"] = 0.0
    assert array.mass.min() > 0
    assert len(Grain.array(Grain.zeros(0, layout=layout).dataframe())) == 0


def test_tables_that_are_no_plain_rows() -> None:
    pandas = pytest.importorskip("pandas")
    frame = Grain.array(values()).dataframe()
    shuffled = frame.sort_values("kind", ascending=False)[COLUMNS[::-1]]
    assert Grain.array(shuffled).kind.tolist() == list(range(5, -1, -1))  # rows count, and not the index
    cases: list[tuple[Any, str]] = [
        (frame.rename(columns={"mass": "mas"}), "Grain has no column 'mas'; did you mean 'mass'?"),
        (pandas.concat([frame, frame[["mass"]]], axis=1), "the table has two columns 'mass'"),
        (frame.assign(kind=frame["kind"] + 0.5), "Grain.kind holds i32: float64 would lose information"),
        (
            frame.assign(kind=pandas.array([1, None, 3, 4, 5, 6], dtype="Int64")),
            "Grain.kind holds i32: float64 would lose information",
        ),
        (frame.assign(mass="heavy"), "Grain.mass: an array of numbers is needed"),
        (
            frame.drop(columns="position_y"),
            "Grain.position is a vec3: the table has position_x, position_z, and no position_y",
        ),
    ]
    for wrong, text in cases:
        with pytest.raises(ArgumentError) as error:
            Grain.array(wrong)
        assert text in str(error.value)
    assert Grain.array(mass=frame["mass"]).mass.tolist() == frame["mass"].tolist()
    with pytest.raises(ArgumentError, match="an array of Grain is no array of numbers"):
        np.asarray(Grain.zeros(2))
