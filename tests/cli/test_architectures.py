"""Kernels of all patterns, and all products, compiled and explained for every architecture that lanewise knows. Needs no GPU."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

import lanewise as lw
from lanewise.compiler.default_plans import complete_plan
from lanewise.compiler.work import describe_work
from lanewise.explanation.offline import compile_offline
from lanewise.launch.support import compile_kernel
from lanewise.models.devices import table_model
from lanewise.runtime.occupancy import LIMITS
from lanewise.sims import PRODUCTS
from tests import pickled_kernels as kernels
from tests.cli.command import Command
from tests.corpus import CASES
from tests.patterns.segmentwise import Case, power, reference_kernel
from tests.patterns.test_segmentwise import MIXED
from tests.patterns.test_threadwise import arguments
from tests.patterns.threadwise_kernels import BY_NAME

OLD = "sm_75"
FEW = {"pairs": kernels.attract, "elements": kernels.grow, "sites": kernels.bounce}
MANY = {c.name: c.kernel for c in CASES} | FEW
PRECISIONS = {"gravity": ("f32", "f64", "mixed"), "boids": ("f32", "f64"), "lbm": ("f32", "f64"), "waves": (None,)}


def check_explained(kernel: Any, arch: str, *, measure_resources: bool) -> None:
    """Compiled for a typical device of the architecture, by the plan that its rules choose."""
    made = compile_offline(kernel, 4096, "cuda", arch=arch)
    assert made.explain(measure_resources=measure_resources).rows
    assert made.subject.model is not None
    assert made.subject.model.arch == arch
    assert all(c.resources.registers for c in made.executable.cubins)


@pytest.mark.slow_cases("pairs")
@pytest.mark.parametrize("kernel", FEW.values(), ids=FEW)
def test_kernels_for_an_old_gpu(kernel: Any) -> None:
    check_explained(kernel, OLD, measure_resources=False)


@pytest.mark.slow
@pytest.mark.parametrize("arch", LIMITS)
@pytest.mark.parametrize("kernel", MANY.values(), ids=MANY)
def test_kernels_for_every_gpu(kernel: Any, arch: str) -> None:
    check_explained(kernel, arch, measure_resources=True)


def references(names: Iterable[str]) -> Iterator[Any]:
    """Kernels of patterns whose arrays and lists are those of a call."""
    for name in names:
        given, grid = arguments(BY_NAME[name])
        yield BY_NAME[name].kernel.compile(**given, grid=grid).reference
    yield reference_kernel(power, Case(MIXED).arguments(layout=lw.AoS()), {"scale": 0.5})


def check_compiled(reference: Any, arch: str) -> None:
    plan = complete_plan(None, table_model(arch).machine, describe_work(reference, 4096))
    assert all(c.resources.registers for c in compile_kernel(reference, plan, "cuda", arch=arch).cubins)


def test_arrays_and_lists_for_an_old_gpu() -> None:
    for reference in references(("matmul", "convolve")):
        check_compiled(reference, OLD)


@pytest.mark.slow
@pytest.mark.parametrize("arch", LIMITS)
def test_arrays_and_lists_for_every_gpu(arch: str) -> None:
    for reference in references(BY_NAME):
        check_compiled(reference, arch)


def check_product(lanewise: Command, name: str, arch: str, precision: str | None) -> None:
    wanted = ["--precision", precision] if precision else []
    outcome = lanewise("explain", name, "--arch", arch, *wanted, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    report = outcome.last_json
    kernels = report.get("kernels", [report])  # products of one law have one report
    assert kernels
    assert all(k["optimisations"] for k in kernels)
    assert lanewise("explain", name, "--arch", arch, "--source", "cuda").code == 0


@pytest.mark.slow
@pytest.mark.parametrize("arch", LIMITS)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_for_every_gpu(lanewise: Command, name: str, arch: str) -> None:
    for precision in PRECISIONS[name]:
        check_product(lanewise, name, arch, precision)


# ---------------------------------------------------------------- side by side


@pytest.mark.slow
def test_several_architectures_stand_side_by_side(lanewise: Command) -> None:
    """A row for each, with what one alone is told."""
    asked = ("explain", "gravity", "--bodies", 4096, "--arch", "sm_90,sm_121")
    several = lanewise(*asked, "--json").last_json["kernels"]
    assert [(r["arch"], r["machine"]) for r in several] == [(a, table_model(a).name) for a in ("sm_90", "sm_121")]
    alone = lanewise("explain", "gravity", "--bodies", 4096, "--arch", "sm_90", "--json").last_json
    row = several[0]
    assert row["predicted_seconds"] == pytest.approx(alone["bound"]["predicted_seconds"])
    assert row["bound_seconds"] == pytest.approx(alone["bound"]["seconds"])
    assert {**several[1]["plan"], **row["plan"]} == row["plan"]
    table = lanewise(*asked).out.splitlines()
    assert (
        table[0].split()
        == "kernel arch typical device predicted bound busiest registers occupancy copy in copy out copies".split()
    )
    assert [line.split()[1] for line in table[1:3]] == ["sm_90", "sm_121"]


def test_copies_are_counted_to_the_byte(lanewise: Command) -> None:
    """Position and mass of 4,096 bodies go in, in SoAoAS 32 bytes each with the velocity; accelerations come out.

    The second pair of fields begins at a multiple of 128 bytes, which an allocation has room for.
    """
    rows = lanewise("explain", "gravity", "--bodies", 4096, "--arch", "sm_75,sm_90,sm_121", "--json").last_json[
        "kernels"
    ]
    made = [r["transfers"] for r in rows]
    assert [(t["to_device_bytes"], t["to_host_bytes"]) for t in made] == [(4096 * 32 + 128, 4096 * 12)] * 3
    assert [t["seconds"] for t in made] == [
        pytest.approx((4096 * 44 + 128) / 13.4e9), pytest.approx((4096 * 44 + 128) / 53.6e9), 0.0,
    ]  # fmt: skip


def test_one_architecture_has_the_copies_of_its_row(lanewise: Command, tmp_path: Any) -> None:
    (tmp_path / "halve.py").write_text(
        "import lanewise as lw\n\n\n@lw.elementwise\ndef halve(x: lw.f32) -> lw.f32:\n    return 0.5 * x\n"
    )
    explain = ("explain", "halve.py:halve", "--bodies", 4096, "--arch")
    rows = lanewise(*explain, "sm_90,sm_121", "--json").last_json["kernels"]
    for arch, row, line in zip(("sm_90", "sm_121"), rows, ("copies, if its arrays lay on the host: ", ""), strict=True):
        assert lanewise(*explain, arch, "--json").last_json["transfers"] == row["transfers"]
        said = " ".join(lanewise(*explain, arch).out.split())
        assert line in said
        assert ("times the kernel" in said) == bool(line)


def test_copies_that_take_longer_than_the_kernel_are_said(lanewise: Command, tmp_path: Any) -> None:
    (tmp_path / "add.py").write_text(
        "import lanewise as lw\n\n\n@lw.threadwise\n"
        "def add(i: lw.index, a: lw.Array1[lw.f32], b: lw.Array1[lw.f32], c: lw.Array1[lw.f32]):\n    c[i] = a[i] + b[i]\n"
    )
    said = lanewise("explain", "add.py:add", "--bodies", 1_000_000, "--arch", "sm_80,sm_90")
    lines = [line for line in said.out.splitlines() if "copying takes" in line]
    assert len(lines) == 2
    assert lines[0].startswith("add on sm_80: copying takes ")
    assert lines[0].endswith(" times the kernel: keep the arrays on the device")


def test_source_is_of_one_architecture(lanewise: Command) -> None:
    said = lanewise("explain", "gravity", "--arch", "sm_80,sm_90", "--source", "cuda")
    assert (said.code, said.err.strip()) == (
        2, "error: --source is of one architecture, and --arch sm_80,sm_90 are several; name one of them",
    )  # fmt: skip
    unknown = lanewise("explain", "gravity", "--arch", "sm_80,sm_9")
    assert "no device model of the architecture 'sm_9'" in unknown.err
