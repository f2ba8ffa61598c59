"""`lanewise explain FILE:kernel` with a kernel over the sites of a lattice."""

import json
from pathlib import Path

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
        assert facts.keys() == KEYS
        assert facts["counts"] == {"sites": 1_000_000}
        assert facts["layout"] == {"f": layout}
        assert facts["bound"]["predicted_seconds"] > facts["bound"]["seconds"] > 0
        text = lanewise("explain", "flow.py:flow", "--device", device).out
        assert f"128 x 128 sites of D2Q9, {form}, all of kind 0, without walls, periodic" in text
    assert "__global__" in lanewise("explain", "flow.py:flow", "--source", "cuda").out


def test_tune_has_nothing_to_choose(lanewise: Command) -> None:
    Path("flow.py").write_text(FILE)
    assert_refused(
        lanewise("tune", "flow.py:flow"),
        "flow.py: flow is a sitewise kernel, whose layout, streaming form and plan are chosen by rules; tune is for @lw.pairwise and "
        "@lw.elementwise, and lanewise explain shows what was chosen",
    )
