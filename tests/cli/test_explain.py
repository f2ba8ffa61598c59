"""`lanewise explain`: for people, as JSON, as source; for the product's kernel and for kernels of files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lanewise.compiler.optimisations import OPTIMISATIONS
from lanewise.planning.plan import Plan
from tests.cli.command import Command
from tests.cli.test_user_errors import assert_refused

FILE = """\
import sys
import lanewise as lw

print("loaded with", len(sys.argv), "argument")

@lw.record
class Ball:
    place: lw.vec2
    weight: lw.f32

@lw.pairwise
def pull(target: Ball, source: Ball, softening2: lw.f32, axis: lw.vec2) -> lw.vec2:
    d = source.place - target.place
    return source.weight / (lw.dot(d, d) + softening2) * d + axis

@lw.elementwise
def grow(ball: Ball, push: lw.vec2, rate: lw.f32):
    ball.weight *= rate
    ball.place += push
"""
KEYS = {
    "kernel", "pattern", "device", "machine", "counts", "layout", "drawing", "plan", "plan_origin", "plan_reasons", "optimisations", "bound",
    "measured", "analysis",
    "resources", "invented", "invented_shapes", "warnings", "launches",
}  # fmt: skip
ROW = {
    "name",
    "field",
    "value",
    "applied",
    "reason",
    "predicted",
    "measured",
    "best",
    "registers",
    "occupancy",
    "place",
}


@pytest.fixture
def balls(lanewise: Command) -> Command:
    Path("balls.py").write_text(FILE)
    return lanewise


def check(found: dict[str, Any]) -> None:
    """The contract that programs rely on."""
    assert found.keys() - {"transfers"} == KEYS
    assert ("transfers" in found) == found["device"].startswith("cuda")
    assert found["plan"].keys() == Plan().as_dict().keys()
    assert None not in found["plan"].values()
    assert [o["field"] for o in found["optimisations"]] == [o.field for o in OPTIMISATIONS]
    for row in found["optimisations"]:
        assert row.keys() == ROW
        assert row["name"]
        assert row["reason"].strip()
        assert isinstance(row["applied"], bool)
        for number in (row["predicted"], row["measured"]):
            assert number is None or number > 0
    assert found["layout"].keys() == found["drawing"].keys()


@pytest.mark.parametrize(
    "options",
    [
        "gravity",
        pytest.param("gravity --device cuda --arch sm_90", marks=pytest.mark.slow),
        "gravity --precision mixed --layout aos",
    ],
)
def test_json_of_gravity(lanewise: Command, options: str) -> None:
    outcome = lanewise("explain", *options.split(), "--json")
    assert (outcome.code, outcome.err, outcome.out.count("\n")) == (0, "", 1)
    check(outcome.last_json)


@pytest.mark.slow_cases("waves --device cuda --arch sm_90 --set dterms=8 --set detectors=2")
@pytest.mark.parametrize("options", ["waves", "waves --device cuda --arch sm_90 --set dterms=8 --set detectors=2"])
def test_json_of_waves(lanewise: Command, options: str) -> None:
    found = lanewise("explain", *options.split(), "--bodies", 2000, "--json").last_json
    (kernel,) = found["kernels"]
    check(kernel)
    assert (kernel["pattern"], kernel["counts"]) == (
        "segmentwise",
        {"cells": 2000 * (2 if "detectors" in options else 1)},
    )
    said = "16 terms of Dirichlet's kernel each" if "dterms" in options else "their bins interpolated by polynomials"
    detectors = 2 if "detectors" in options else 1
    assert found["search"] == (
        f"the F-statistic of 2,000 templates at one place: 1 x {detectors} x 90 SFTs (stacks x detectors x SFTs), {said}"
    )


def test_text_of_waves_tells_its_source(lanewise: Command) -> None:
    outcome = lanewise("explain", "waves", "--bodies", 2000)
    assert outcome.out.startswith("the F-statistic of 2,000 templates at one place")
    assert outcome.out.endswith("\nThe generated source: lanewise explain waves --source cpu\n")
    assert "@user.amplitudes(" in lanewise("explain", "waves", "--bodies", 2000, "--source", "cpu").out


@pytest.mark.parametrize(("kernel", "device"), [("pull", "cpu"), ("grow", "cpu"), ("grow", "cuda")])
def test_json_of_a_file(balls: Command, kernel: str, device: str) -> None:
    outcome = balls("explain", f"balls.py:{kernel}", "--device", device, "--json", "--bodies", 5000)
    assert (outcome.code, outcome.err, outcome.out.count("\n")) == (0, "loaded with 1 argument\n", 1)
    found = outcome.last_json
    check(found)
    assert found["kernel"] == kernel
    assert set(found["counts"].values()) == {5000}
    invented = {"pull": {"softening2": pytest.approx(0.01), "axis": [1.0, 1.0]}, "grow": {"rate": 1.0}}
    assert found["invented"] == invented[kernel]


def test_values_are_set(balls: Command) -> None:
    found = balls("explain", "balls.py:pull", "--set", "softening2=1e-4", "--set", "axis=0", "--json").last_json
    assert found["invented"] == {}
    text = balls("explain", "balls.py:pull", "--set", "softening2=1e-4").out
    assert "\nmade up\n  axis = [1.0, 1.0]: values that were not given; choose them with --set NAME=VALUE\n" in text


@pytest.mark.parametrize("options", ["gravity", "balls.py:grow --arch sm_120"])
def test_text_fits_120_columns_and_names_every_optimisation(balls: Command, options: str) -> None:
    short, whole = (balls("explain", *options.split(), *more) for more in ((), ("--all",)))
    for outcome in (short, whole):
        assert outcome.code == 0
        assert max(map(len, outcome.out.splitlines())) <= 120
    assert len(short.out.splitlines()) < len(whole.out.splitlines())
    for o in OPTIMISATIONS:
        assert o.name in " ".join(short.out.split())
        assert f"\n{o.name} " in whole.out
    for title in ("plan", "layouts", "function", "resources"):
        assert f"\n{title}\n" in outcome.out
    name, device = ("gravity", "cpu") if options == "gravity" else ("balls.py:grow", "cuda")
    assert outcome.out.endswith(f"\nThe generated source: lanewise explain {name} --source {device}\n")


@pytest.mark.parametrize(("device", "word"), [("cpu", "@user.gravity("), ("cuda", "__global__")])
def test_source(lanewise: Command, device: str, word: str) -> None:
    outcome = lanewise("explain", "gravity", "--source", device)
    assert (outcome.code, outcome.err) == (0, "")
    assert word in outcome.out


def test_source_within_json(balls: Command) -> None:
    source = balls("explain", "balls.py:grow", "--source", "cuda", "--arch", "sm_90").out
    found = balls("explain", "balls.py:grow", "--source", "cuda", "--arch", "sm_90", "--json").last_json
    assert (found["device"], found["source"]) == ("cuda", source.removesuffix("\n"))


ARCHITECTURES = "sm_75, sm_80, sm_86, sm_87, sm_89, sm_90, sm_100, sm_103, sm_120, sm_121"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("gravity --arch foo", f"no device model of the architecture 'foo'; known are {ARCHITECTURES}"),
        ("gravity --device cuda --arch sm_9", f"no device model of the architecture 'sm_9'; did you mean 'sm_90'? known are {ARCHITECTURES}"),
        ("gravity --device cpu --arch sm_90", "--arch sm_90 is an architecture of GPUs, and --device cpu is none"),
        ("gravity --source cpu --arch sm_90", "--arch sm_90 is an architecture of GPUs, and --source cpu is none"),
        ("gravity --source cpu --device cuda", "--source cpu and --device cuda are two devices; give one of them"),
        ("boids --method tree", "--method belongs to gravity and to kernels of files"),
        ("gravity --theta 0.5", "--theta needs --method tree: all pairs have no groups of bodies"),
        ("gravity --set softening2", "--set softening2: wanted NAME=NUMBER, as in --set softening2=1e-4"),
        ("gravity --set softening2=small", "--set softening2=small: wanted NAME=NUMBER, as in --set softening2=1e-4"),
        ("gravity --set x=1 --set x=2", "--set x=2: x is set twice"),
        ("gravity --set mass=2", "gravity has no value 'mass' to set; it has softening2"),
        ("gravity --set softening2=nan", "--set softening2=nan: wanted a finite number"),
        ("balls.py:pull --precision f64", "--precision belongs to gravity, boids and lbm; the types of balls.py:pull are those of its file"),
        ("balls.py:pull --layout foo", "unknown layout 'foo'; wanted aos, soa, aoas, soaoas, aosoa, or a width with it as in aosoa(16)"),
        ("gravity --layout soaos", "unknown layout 'soaos'; did you mean 'soaoas'? wanted aos, soa, aoas, soaoas, aosoa, or a width with it as in aosoa(16)"),
        ("gravity --device cud", "unknown device 'cud'; did you mean 'cuda'? wanted cpu or cuda"),
        ("waves --precision f64", "--precision f64: waves has phases in f64 and sums in f32 on every device; leave it out"),
        ("waves --set sft=3", "waves has no value 'sft' to set; did you mean 'sfts'? it has sfts, detectors, stacks, dterms"),
        ("waves --set sfts=1.5", "--set sfts=1.5: wanted an integer from 1 to 10,000"),
        ("wave", "unknown kernel 'wave'; did you mean 'waves'? wanted boids, gravity, lbm, waves, or a kernel of a file as in path/to/file.py:name"),
        ("nothing.py:pull", "nothing.py: there is no such file"),
    ],
)  # fmt: skip
def test_refused(balls: Command, options: str, message: str) -> None:
    assert_refused(balls("explain", *options.split()), message)


def test_what_cannot_be_compiled_is_shown(lanewise: Command) -> None:
    Path("bad.py").write_text("import lanewise as lw\n@lw.elementwise\ndef f(x: lw.f32) -> lw.f32:\n    return x + y\n")
    outcome = lanewise("explain", "bad.py:f", "--json")
    assert (outcome.code, outcome.out) == (2, "")
    assert "bad.py:4:16: " in outcome.err
    assert "    return x + y\n" in outcome.err


def test_all_rows_are_shown_when_asked_for(lanewise: Command) -> None:
    short = lanewise("explain", "gravity", "--bodies", 2000)
    assert "\nonly on a GPU: " in short.out
    assert "\nnot for pairwise kernels: " in short.out
    assert "\nlaunch bounds  " not in short.out
    assert "\nA row for every optimisation: the same command with --all\n" in short.out
    full = lanewise("explain", "gravity", "--bodies", 2000, "--all").out
    assert "\nlaunch bounds  " in full
    assert "only on a GPU: " not in full
    assert "--all" not in full


@pytest.mark.parametrize("other", ["--json", "--source cpu"])
def test_all_rows_are_rows_of_the_table(lanewise: Command, other: str) -> None:
    message = f"--all is of the table, which {other.split()[0]} does not print"
    assert_refused(lanewise("explain", "gravity", "--all", *other.split()), message)


@pytest.mark.slow_cases("boids-80")
@pytest.mark.grid(every=40)
@pytest.mark.parametrize("columns", [60, 80])
@pytest.mark.parametrize("kernel", ["gravity", "boids", "waves", "lbm"])
def test_explanations_fit_the_terminal(
    kernel: str, columns: int, lanewise: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    outcome = lanewise("explain", kernel)
    assert (outcome.code, outcome.err) == (0, "")
    assert max(map(len, outcome.out.splitlines())) <= columns


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
@pytest.mark.parametrize("product", ["waves --set dterms", "boids --set k", "gravity --set softening2"])
def test_values_to_set_are_finite(lanewise: Command, product: str, value: str) -> None:
    found = lanewise("explain", *f"{product}={value}".split())
    name = product.split()[-1]
    assert (found.code, found.out, found.err) == (2, "", f"error: --set {name}={value}: wanted a finite number\n")


TREES = """\
import lanewise as lw
class B(lw.Record):
    position: lw.vec3
    mass: lw.f32
@lw.pairwise
def pull(target: B, source: B, eps: lw.f32) -> lw.vec3:
    d = source.position - target.position
    return source.mass * lw.rsqrt(lw.dot(d, d) + eps)**3 * d
over = pull.using(search=lw.Tree(order=1))
@lw.pairwise
def bare(target: B, source: B) -> lw.f32:
    d = source.position - target.position
    return lw.rsqrt(lw.dot(d, d) + source.mass)
@lw.elementwise
def grow(body: B) -> lw.f32:
    return body.mass
"""


@pytest.mark.slow_cases("pull --method tree --order 1 --device cuda")
@pytest.mark.parametrize(
    "options", ["pull --method tree --order 1", "over", "pull --method tree --order 1 --device cuda"]
)
def test_kernels_of_files_over_trees(lanewise: Command, tmp_path: Path, options: str) -> None:
    file = tmp_path / "trees.py"
    file.write_text(TREES)
    out = lanewise("explain", *f"{file}:{options}".split(), "--bodies", 500).out
    assert out.startswith(
        "by a tree: theta 0.6, order 1, leaves of 32\npull has a far field of tier R\n  weights: source.mass"
    )
    assert [
        name
        for name in ("tree order", "gather", "pull_leaf_moments", "pull_parent_moments", "pull_walk")
        if f"\n  {name}" not in out
    ] == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("bare --method tree", "source.mass stands under rsqrt: a group of sources has no mass"),
        ("grow --method tree", "is no pairwise kernel: it has no sources to sum up by a tree"),
        ("pull --leaf 3", "--leaf needs --method tree"),
        ("pull --method auto", "unknown method 'auto'; wanted one of direct, tree"),
        ("pull --method tree --theta 3", "error: --theta 3.0: wanted a number above 0 and at most 0.9"),
    ],
)
def test_what_no_tree_sums_up_is_refused(lanewise: Command, tmp_path: Path, options: str, message: str) -> None:
    file = tmp_path / "trees.py"
    file.write_text(TREES)
    found = lanewise("explain", *f"{file}:{options}".split())
    assert (found.code, found.out) == (2, "")
    assert message in found.err
