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
