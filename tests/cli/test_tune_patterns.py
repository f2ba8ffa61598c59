"""`lanewise tune FILE:kernel` for every kernel that `lanewise explain` takes: what it prints is in the store, and the next
`explain` with the same options shows it.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from lanewise import tuning
from lanewise.cli.tuned import OF_TOTALS
from lanewise.launch import tuned_plans as store
from lanewise.planning.plan import Plan
from lanewise.runtime import devices
from lanewise.tuning import replay, tune_job
from tests.cli import every_pattern as kernels
from tests.cli.command import Command
from tests.cli.test_explain_patterns import CASES
from tests.cli.test_user_errors import assert_refused

ACCURATE = "pull --method tree --accuracy 1e-2"
TWO_KERNELS = ["both --shape target=90 --shape source=100", "parts --shape x=20x30"]
QUICK = ["sorted_rows", "looked_up", "pull", "around", "gridded", "power", "flow", "gray_scott", "heat"]
COMMANDS = [
    *dict.fromkeys(f"{c.name} {c.options}".strip() for c in CASES),
    "flow --shape rates=5 --shape sites=8x9 --shape omega=8x9",
    "gridded",
    ACCURATE,
    *TWO_KERNELS,
]


def shown(command: str) -> Any:
    """As a parameter: one of each pattern is quick."""
    few = [next(c for c in COMMANDS if c.split()[0] == name) for name in QUICK]
    return pytest.param(command, marks=[] if command in (*few, TWO_KERNELS[1]) else pytest.mark.slow)


@pytest.fixture
def mine(lanewise: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    shutil.copy(kernels.__file__, "mine.py")
    monkeypatch.setattr(store, "store_directory", lambda: tmp_path / "tuned")
    return lanewise


def of_json(mine: Command, what: str, command: str, *more: object) -> list[dict[str, Any]]:
    """What a command says of each kernel."""
    name, *options = command.split()
    outcome = mine(what, f"mine.py:{name}", "--bodies", 400, *options, *more, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    found = outcome.last_json
    return found.get("kernels", [found])


@pytest.mark.slow_cases("flow", "gridded", "around")
@pytest.mark.parametrize("command", [shown(c) for c in COMMANDS])
def test_what_was_tuned_is_explained(mine: Command, command: str) -> None:
    before = of_json(mine, "explain", command)
    assert [e["plan_origin"] for e in before] == ["default"] * len(before)
    tuned = of_json(mine, "tune", command, "--seconds", 1.0 * len(before))
    assert len(tuned) == len(before) == (2 if command in TWO_KERNELS else 1)
    for found, old, new in zip(tuned, before, of_json(mine, "explain", command), strict=True):
        check_numbers(found)
        assert Path(found["path"]).parent == store.store_directory()
        assert found["kernel"] == new["kernel"]
        assert [n.split()[0] for n in found["elements"].split(", ")] == [f"{n:,}" for n in new["counts"].values()]
        assert new["plan_origin"] == "tune()"
        assert old["plan"] == Plan(**found["default"]).as_dict() or "structure" in found
        assert new["plan"] == found["plan"]
        over = "search" not in new["analysis"]  # whole calls were timed there, with what builds the structure
        assert new["measured"] == ({"seconds": found["seconds"], "by": "tune()"} if over else {})
        assert over or "measured" in new["analysis"]["search"]


def check_numbers(found: dict[str, Any]) -> None:
    """The default was measured beside the others, and what won is none that was slower."""
    assert found["factor"] == found["default_seconds"] / found["seconds"] >= 1
    if "structure" in found or "errors" in found:
        return
    times = {json.dumps(c["plan"]): c["seconds"] for c in found["candidates"] if c["status"] == "measured"}
    assert found["default_seconds"] in times.values()
    assert found["seconds"] in times.values()
    assert replay(found["path"]).plan == Plan(**found["plan"])


@pytest.mark.quick("scaled", "flow")
@pytest.mark.parametrize("name", ["scaled", "flow", "gray_scott", "around"])
def test_a_plan_of_the_store_is_explained_whatever_it_is(
    mine: Command, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where tuning made no difference, explanations alone would not show that they look."""
    of_json(mine, "tune", name, "--seconds", 1.0)
    (path,) = store.store_directory().iterdir()
    data = json.loads(path.read_text())
    path.write_text(json.dumps({**data, "plan": {"vector_bits": 256}, "seconds": 0.25}))
    (found,) = of_json(mine, "explain", name)
    assert (found["plan"]["vector_bits"], found["plan_origin"]) == (256, "tune()")
    # not of another device, another size, or where it was asked to be left alone
    (other,) = of_json(mine, "explain", name, "--arch", "sm_90")
    assert (other["plan_origin"], "measured:" in str(other["analysis"])) == ("default", False)
    assert of_json(mine, "explain", name, "--bodies", 9000)[0]["plan_origin"] == "default"
    monkeypatch.setenv(store.SWITCH, "off")
    assert of_json(mine, "explain", name)[0]["plan_origin"] == "default"


def test_steps_that_were_tuned_are_those_of_python(mine: Command) -> None:
    """The sites of the command are a periodic box, and what it found is used by a flow on one."""
    (found,) = of_json(mine, "tune", "gray_scott --shape sites=12x20", "--seconds", 1.0)
    assert found["elements"] == "240 sites"
    assert found["note"] == (
        "for steps of 20 x 12 sites of D2Q9, two-copies, periodic and without walls; others are tuned in Python: "
        "gray_scott.tune(sites, ...)"
    )
    path = Path(found["path"])
    path.write_text(json.dumps({**json.loads(path.read_text()), "plan": {"vector_bits": 256}}))
    kernel: Any = kernels.gray_scott
    sites = kernel.sites((12, 20), u=1.0, v=0.5, device="cpu")
    kernel.run(sites, 2, feed=0.04)
    compiled = kernel.compile(sites, feed=0.04)
    assert (compiled.plan.vector_bits, compiled.explain().origin) == (256, "tune()")


DEVICES = [c for c in COMMANDS if c.split()[0] in QUICK and " " not in c]


@pytest.mark.parametrize("command", [*DEVICES, TWO_KERNELS[0]])
def test_devices_that_are_not_there(mine: Command, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "missing_for_cuda", lambda: ("there is no driver",))
    name, *options = command.split()
    on = ("tune", f"mine.py:{name}", *options, "--device")
    assert_refused(mine(*on, "cuda"), "device 'cuda' cannot be used:\n  - there is no driver")
    assert_refused(
        mine(*on, "cpu*2"),
        "unknown device 'cpu*2'; wanted 'cpu', 'cuda', 'cuda:1' (a number for each GPU) or 'python' (the interpreter)",
    )
    kernel: Any = getattr(kernels, name)
    assert_refused(
        mine(*on, "python"),
        f"{kernel.__name__}: the device 'python' interprets kernels and has no plans to compare; move the arrays to 'cpu' "
        "or 'cuda'",
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("looked_up --shape table=4x3 --bodies 100", "looked_up: 'table' is read outside of its elements"),
        ("flow --shape rates=3", "flow: 'rates' is read outside of its elements"),
        ("placed --bodies 100", "placed: 'table' is read outside of its elements"),
    ],
)
def test_made_up_numbers_that_lead_out_of_arrays_are_not_measured(mine: Command, options: str, message: str) -> None:
    with Path("mine.py").open("a") as file:
        file.write(PLACED)
    name, *more = options.split()
    outcome = mine("tune", f"mine.py:{name}", *more, "--seconds", 0.1)
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err
    assert "choose them with" in outcome.err


PLACED = """

@lw.stencil(lw.D2Q5)
def placed(u: lw.Field[lw.f32], table: lw.Array1[lw.f32], far: lw.i32) -> lw.f32:
    return u[1] + table[lw.i32(1000.0 * u[0]) * far]
"""


def test_a_tree_of_which_every_number_was_requested_leaves_nothing(mine: Command) -> None:
    outcome = mine("tune", "mine.py:pull", "--method", "tree", "--bodies", 100)
    assert (outcome.code, outcome.out) == (2, "")
    assert "which was requested and leaves nothing to choose; wanted a tree with an accuracy" in outcome.err
    assert "(lanewise tune: --accuracy 1e-3)" in outcome.err


@pytest.mark.parametrize("options", ["power --lists 90", "pull --lists 90x2", "power --lists 9x2 --shape sample=9x2"])
def test_sizes_of_lists_are_refused_as_explain_does(mine: Command, options: str) -> None:
    name, *more = options.split()
    outcomes = [mine(what, f"mine.py:{name}", *more) for what in ("explain", "tune")]
    assert outcomes[0] == outcomes[1]
    assert outcomes[0].code == 2


@pytest.mark.parametrize("name", ["flow", "gray_scott"])
def test_values_of_sites_are_refused_as_explain_does(mine: Command, name: str) -> None:
    for options in ("--set feel=1", "--shape sites=5", "--shape sides=5x5", "--set sites=3", "--near 3"):
        outcomes = [mine(what, f"mine.py:{name}", *options.split()) for what in ("explain", "tune")]
        assert outcomes[0] == outcomes[1]
        assert outcomes[0].code == 2


def test_the_kernels_of_a_gradient_are_tuned_one_after_the_other(
    mine: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the time that was given for all of them; a total says what its plan is for."""
    given: list[float] = []

    def watched(job: Any, seconds: float, **more: Any) -> Any:
        given.append(seconds)
        return tune_job(job, seconds, **more)

    monkeypatch.setattr(tuning, "tune_job", watched)
    outcome = mine("tune", "mine.py:parts", "--shape", "x=20x30", "--seconds", 1)
    assert (outcome.code, outcome.err) == (0, "")
    heading, _, *reports = outcome.out.split("\n")
    assert heading == "the gradient of scaled with respect to x, weight: 2 kernels"
    assert [line.split()[0] for line in reports if " on cpu (" in line] == ["scaled_gradient"] * 2
    assert outcome.out.count(OF_TOTALS) == 1
    assert given == [0.5, 0.5]
    found = of_json(mine, "tune", "parts --shape x=20x30", "--seconds", 1.2)
    assert [f["note"] for f in found] == ["", OF_TOTALS]
    of_json(mine, "tune", "scaled", "--seconds", 1.0)
    assert given[2:] == [0.6, 0.6, 1.0]
