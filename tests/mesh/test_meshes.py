"""What a mesh is made of: names of devices, and nothing else."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import lanewise as lw

NO_NAMES = [
    0.5,
    3,
    True,
    None,
    object(),
    1j,
    np.float32(3),
    np.array("1"),
    ...,
    slice(1),
    ValueError("x"),
    lambda: "cpu",
    dict,
]


@pytest.mark.parametrize("devices", NO_NAMES, ids=lambda value: re.sub(" at 0x[0-9a-f]+", "", repr(value)))
def test_what_holds_no_names(devices: Any) -> None:
    with pytest.raises(lw.ArgumentError) as error:
        lw.Mesh(devices)
    text = str(error.value)
    assert text.startswith("the devices of a mesh are a name or a list of names, found ")
    assert text.endswith("; wanted 'cuda:*', ['cuda:0', 'cuda:1'] or 'cpu' with parts=")


@pytest.mark.parametrize(
    "devices",
    [[], (), {}, b"", [1], [None], ["cpu", 3], [["cpu"]], b"cpu", {1: 2}],
    ids=lambda value: re.sub(" at 0x[0-9a-f]+", "", repr(value)),
)
def test_lists_of_other_things(devices: Any) -> None:
    with pytest.raises(lw.LanewiseError):
        lw.Mesh(devices)
    with pytest.raises(lw.LanewiseError):
        lw.Mesh(devices, parts=2)


def test_names_in_any_order_of_any_kind_of_list() -> None:
    names = ["cpu", "cpu"]
    for devices in (names, tuple(names), iter(names), (n for n in names), np.array(names), "cpu*2"):
        assert lw.Mesh(devices) == lw.Mesh("cpu", parts=2)
