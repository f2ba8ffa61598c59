from __future__ import annotations

import json
import math

import pytest

from lanewise.sims.common.frame import print_json
from tests.cli.command import Command


def test_json_has_null_for_what_is_no_number(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": math.nan, "b": {"c": math.inf, "d": 1.5}, "e": [1, -math.inf, (2.0, math.nan)], "f": "NaN"})
    found = json.loads(capsys.readouterr().out)
    assert found == {"a": None, "b": {"c": None, "d": 1.5}, "e": [1, None, [2.0, None]], "f": "NaN"}


@pytest.mark.parametrize(
    "run",
    [("gravity", "run", "--bodies", 8), ("lbm", "run", "cavity", "--size", 4), ("boids", "run", "--agents", 8)],
    ids=lambda r: r[0],
)
def test_overwrite_is_for_files(lanewise: Command, run: tuple[str | int, ...]) -> None:
    outcome = lanewise(*run, "--steps", 1, "--overwrite")
    assert (outcome.code, outcome.err) == (
        2, "error: --overwrite replaces files, and this run writes none; wanted --out or another option that names one\n",
    )  # fmt: skip
    for option in (("--plot", "a.png"), ("--profile", "a.json")):
        assert lanewise(*run, "--steps", 1, "--overwrite", *option, "--quiet").code == 0
