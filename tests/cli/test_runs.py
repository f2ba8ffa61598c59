from __future__ import annotations

import json
import math

import pytest

from lanewise.sims.common.frame import print_json


def test_json_has_null_for_what_is_no_number(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": math.nan, "b": {"c": math.inf, "d": 1.5}, "e": [1, -math.inf, (2.0, math.nan)], "f": "NaN"})
    found = json.loads(capsys.readouterr().out)
    assert found == {"a": None, "b": {"c": None, "d": 1.5}, "e": [1, None, [2.0, None]], "f": "NaN"}
