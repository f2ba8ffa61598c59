from __future__ import annotations

import json
import math

import pytest

from lanewise.ladders.rung import Rung


def test_keys_of_the_contract():
    rung = Rung(name="a", bodies=10, seconds=2.0, paper={"GPU": 3.0}, extra={"pairs_per_second": 50.0})
    row = rung.as_dict()
    contract = ("name", "seconds", "speedup", "predicted", "paper", "relative_error", "skipped", "bodies")
    assert row.keys() >= {*contract, "pairs_per_second"}
    assert (row["name"], row["seconds"], row["paper"], row["skipped"]) == ("a", 2.0, {"GPU": 3.0}, None)
    assert row["pairs_per_second"] == 50.0


def test_json_has_neither_nan_nor_infinity():
    rung = Rung(name="a", bodies=10, skipped="wrong", relative_error=math.inf, extra={"x": math.nan})
    row = json.loads(json.dumps(rung.as_dict(), allow_nan=False))
    assert (row["relative_error"], row["x"]) == (None, None)


@pytest.mark.parametrize("given", [{}, {"seconds": 1.0, "skipped": "why"}])
def test_a_rung_is_timed_or_skipped(given):
    with pytest.raises(ValueError, match="rung 'a': wanted either a time or the reason why there is none"):
        Rung(name="a", bodies=1, **given)


def test_extra_keys_do_not_hide_others():
    with pytest.raises(ValueError, match="rung 'a': plan, seconds cannot be an extra key"):
        Rung(name="a", bodies=1, seconds=1.0, extra={"seconds": 2.0, "plan": "x"}).as_dict()
