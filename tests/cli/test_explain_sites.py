"""`lanewise explain FILE:kernel` with a kernel over the sites of a lattice."""

import json
from pathlib import Path

import pytest

from tests.cli.command import Command
from tests.cli.test_explain import KEYS
from tests.cli.test_user_errors import assert_refused

FILE = """\
import lanewise as lw

@lw.sitewise(lw.D2Q9)
def flow(f: lw.populations, omega: lw.f32):
    total = lw.f32(0)
    for q in lw.D2Q9:
        total += f[q]
    for q in lw.D2Q9:
        f[q] += omega * (q.weight * total - f[q])
"""


def test_explained_for_both_devices(lanewise: Command) -> None:
    Path("flow.py").write_text(FILE)
    for device, form, layout in (("cpu", "in-place", "SoA"), ("cuda", "pull", "AoSoA(32)")):
        outcome = (
            lanewise("explain", "flow.py:flow", "--device", device, "--bodies", 1_000_000, "--arch", "sm_90", "--json")
            if (device == "cuda")
            else lanewise("explain", "flow.py:flow", "--device", device, "--bodies", 1_000_000, "--json")
        )
        assert (outcome.code, outcome.err) == (0, "")
        facts = json.loads(outcome.out)
        assert facts.keys() == (KEYS | {"transfers"} if device == "cuda" else KEYS)
        assert facts["counts"] == {"sites": 1_000_000}
        assert facts["layout"] == {"f": layout}
        assert facts["bound"]["predicted_seconds"] > 0
        assert (
            facts["bound"]["seconds"] is None
            if device == "cpu"
            else facts["bound"]["predicted_seconds"] > facts["bound"]["seconds"] > 0
        )
        text = lanewise("explain", "flow.py:flow", "--device", device).out
        assert f"128 x 128 sites of D2Q9, {form}, all of kind 0, without walls, periodic" in text
    assert "__global__" in lanewise("explain", "flow.py:flow", "--source", "cuda").out


def test_the_flow_of_the_product(lanewise: Command) -> None:
    for device, dimension in (("cpu", 3), ("cuda", 2)):
        options = ("explain", "lbm", "--device", device, "--set", f"dimension={dimension}", "--set", "omega=1.5")
        explained = lanewise(*options, "--json").last_json
        assert explained["search"].startswith(f"a flow: trt on {'D3Q19' if dimension == 3 else 'D2Q9'}")
        (kernel,) = explained["kernels"]
        assert kernel["pattern"] == "sitewise"
    assert_refused(lanewise("explain", "lbm", "--set", "dimension=4"), "--set dimension=4: wanted 2 or 3")


@pytest.mark.slow
@pytest.mark.parametrize(("columns", "most"), [(80, 80), (200, 120)])
def test_as_wide_as_the_terminal(columns: int, most: int, lanewise: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = lanewise("explain", "gravity", "--device", "cuda", "--arch", "sm_90").out.splitlines()
    assert max(map(len, lines[:-1])) <= most


@pytest.mark.slow
def test_what_is_applied_comes_first(lanewise: Command) -> None:
    lines = lanewise("explain", "gravity", "--device", "cuda", "--arch", "sm_90").out.splitlines()
    start = lines[2].index("applied")
    applied = [line[start : start + 3].strip() for line in lines[4 : lines.index("plan") - 1]]
    said = [word for word in applied if word in ("yes", "no")]
    assert said == sorted(said, reverse=True)
    assert {*said} == {"yes", "no"}
