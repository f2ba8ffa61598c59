"""Candidates are compared with the default plan element by element: a small element that is wrong beside large ones is
found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.launch.executable import Executable
from lanewise.patterns.search.tuning.job import SearchJob, space_of
from lanewise.patterns.search.tuning.tune import CallMeasurer
from lanewise.tuning import measure
from lanewise.tuning.compare import magnitudes, margins, sums, terms
from lanewise.tuning.job import Job
from lanewise.tuning.measure import KernelMeasurer
from lanewise.tuning.tune import tune_job
from tests.tuning.kernels import Point, attraction, drift

pytestmark = pytest.mark.usefixtures("own_store")
COUNT = 48


@lw.record
class Node:
    position: lw.vec3
    weight: lw.f32


@lw.pairwise
def largest(target: Node, source: Node) -> lw.Max[lw.f32]:
    return target.weight * source.weight


@lw.pairwise(search=lw.Neighbors(radius=0.6))
def near(target: Node, source: Node) -> lw.f32:
    return target.weight * (source.weight - 0.5) * lw.length(source.position - target.position)


@lw.segmentwise
def weighted(node: Node, item: Node) -> lw.f32:
    return node.weight * (item.weight - 0.3)


@lw.threadwise
def product(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32], c: lw.Array2[lw.f32], n: lw.i32):
    s = 0.0
    for k in range(n):
        s += a[y, k] * b[k, x]
    c[y, x] = s


@lw.threadwise
def stencil(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32], n: lw.i32):
    up, down = lw.max(y - 1, 0), lw.min(y + 1, n - 1)
    c[y, x] = 0.5 * a[y, x] + 0.25 * (a[up, x] + a[down, x])


def sizes() -> Any:
    """From a tenth to ten millions: what is right for the largest is not for the smallest."""
    return np.logspace(-1, 7, COUNT).astype("f4")


def nodes(record: Any) -> Any:
    return record.array(position=np.random.default_rng(1).random((COUNT, 3)), weight=sizes())


def rows() -> Any:
    return (sizes()[:, None] * np.random.default_rng(2).uniform(0.5, 1, (1, COUNT))).astype("f4")


def of_pairs() -> Job:
    far = np.random.default_rng(1).normal(size=(COUNT, 3)) * np.logspace(0, 4, COUNT)[:, None]
    cloud = Point.array(position=far, weight=np.ones(COUNT))  # type: ignore[attr-defined]
    return attraction.tuning_job(cloud, cloud, softening2=0.1)


def of_elements() -> Job:
    far = np.ones((COUNT, 3)) * sizes()[:, None]
    cloud = Point.array(position=far, weight=np.ones(COUNT))  # type: ignore[attr-defined]
    return drift.tuning_job(cloud, np.zeros((COUNT, 3), "f4"), dt=0.5)


def of_points(kernel: Any, **given: Any) -> Job:
    c = np.zeros((COUNT, COUNT), "f4")
    return kernel.tuning_job(**given, c=c, n=COUNT, grid=(COUNT, COUNT))


def of_segments() -> Job:
    items = Node.array(position=np.zeros((9, 3)), weight=np.linspace(0, 1, 9))  # type: ignore[attr-defined]
    return weighted.tuning_job(nodes(Node), lw.ragged(items, counts=[9]))


JOBS: dict[str, Callable[[], Job]] = {
    "elementwise": of_elements,
    "pairwise": of_pairs,
    "largest": lambda: largest.tuning_job(nodes(Node), nodes(Node)),
    "segmentwise": of_segments,
    "threadwise": lambda: of_points(product, a=rows(), b=np.random.default_rng(3).random((COUNT, COUNT)).astype("f4")),
    "stencil": lambda: of_points(stencil, a=rows()),
}


@dataclass
class Planted:
    """The default plan under another name, with something done to its result."""

    right: Executable
    result: str
    spoil: Callable[[Any], None]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.right, name)

    @property
    def tasks(self) -> Planted:
        return self

    def memory(self, environment: Any) -> int:
        return self.right.tasks.memory(environment)

    def bound(self, arrays: Any, environment: Any) -> Callable[[], None]:
        launch, data = self.right.tasks.bound(arrays, environment), arrays[self.result].data

        def run() -> None:
            launch()
            self.spoil(data.reshape(-1).view("f4"))

        return run


def smallest(values: Any) -> int:
    sized = np.where((values == 0) | ~np.isfinite(values), np.inf, np.abs(values))
    return int(np.argmin(sized))


def shifted(values: Any) -> None:
    values[smallest(values)] *= 1.01


def taken_from_another(values: Any) -> None:
    values[smallest(values)] = 2 * np.abs(values[smallest(values)])


def no_number(values: Any) -> None:
    values[smallest(values)] = np.nan


SPOILED = [shifted, taken_from_another, no_number]


def planted(monkeypatch: pytest.MonkeyPatch, job: Job, spoil: Callable[[Any], None]) -> Any:
    """A plan that differs from the default by name alone, and is spoiled."""
    plan, right = replace(job.default, block=7), measure.compile_kernel
    written = [a.name for a in job.reference.arrays if a.written]

    def compile_kernel(reference: Any, wanted: Any, device: str, **more: Any) -> Any:
        made = right(reference, job.default if wanted == plan else wanted, device, **more)
        return Planted(made, written[-1], spoil) if wanted == plan else made

    monkeypatch.setattr(measure, "compile_kernel", compile_kernel)
    return plan


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("spoil", SPOILED, ids=lambda f: f.__name__)
@pytest.mark.parametrize("pattern", JOBS)
def test_one_wrong_element_is_found(pattern: str, spoil: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    job = JOBS[pattern]()
    plan = planted(monkeypatch, job, spoil)
    found = KernelMeasurer(job).prepare([job.default, plan])
    assert found[job.default] is None
    failure = found[plan]
    assert failure is not None
    assert failure.status == "wrong"
    said = "values are finite in one result and not in the other" if spoil is no_number else "by more than rounding"
    assert said in failure.reason


@pytest.mark.parametrize("pattern", JOBS)
def test_what_is_right_is_kept(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    job = JOBS[pattern]()
    plan = planted(monkeypatch, job, lambda values: None)
    assert KernelMeasurer(job).prepare([job.default, plan]) == {job.default: None, plan: None}


def test_what_is_wrong_is_dropped_and_named_in_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    job = of_elements()
    right = measure.compile_kernel

    def compile_kernel(reference: Any, wanted: Any, device: str, **more: Any) -> Any:
        made = right(reference, wanted, device, **more)
        return made if wanted == job.default else Planted(made, job.reference.arrays[-1].name, shifted)

    monkeypatch.setattr(measure, "compile_kernel", compile_kernel)
    result = tune_job(job, 5.0)
    assert result.plan == job.default
    assert [t.status for t in result.failed if "by more than rounding explains" in (t.reason or "")]
    assert "wrong" in str(result)


def search_job(kernel: Any, records: Any) -> SearchJob:
    return kernel.searched.tuning_job(kernel._calls.given((records, records), {}), None)


@pytest.mark.parametrize("spoil", SPOILED, ids=lambda f: f.__name__)
def test_one_wrong_element_of_a_search_is_found(spoil: Any) -> None:
    job = search_job(near, nodes(Node))
    right, other, *_ = space_of(job).structures
    spoiled: list[Any] = []

    def bind(choice: Any) -> Any:
        call = job.bind(right)
        if choice == other:
            launch = call.launch

            def run() -> None:
                launch()
                spoil(call.results[0].reshape(-1))

            spoiled.append(call)
            return replace(call, launch=run)
        return call

    found = CallMeasurer(replace(job, bind=bind)).prepare([right, other])
    assert spoiled
    assert found[right] is None
    failure = found[other]
    assert failure is not None
    assert failure.status == "wrong"


def test_sums_in_another_order_are_kept() -> None:
    """Terms that cancel: sums of many of them in another order differ by more than units of what is left."""
    rng = np.random.default_rng(4)
    half = rng.normal(size=(4, 2048)).astype("f4")
    a = np.concatenate([half, -rng.permuted(half, axis=1)], 1)
    a[0] = np.abs(a[0])  # large beside the others
    b = np.ones((4096, 8), "f4")
    job = product.tuning_job(a=a, b=b, c=np.zeros((4, 8), "f4"), n=4096, grid=(4, 8))
    measurer = KernelMeasurer(job)
    measurer.prepare([job.default])
    assert measurer._expected is not None
    other = [np.repeat(a[:, ::-1].cumsum(1)[:, -1], 8)]
    assert measure.difference(other, measurer._expected, measurer._tolerance) != ""
    assert measure.difference(other, measurer._expected, measurer._tolerance, measurer._cancelled()) == ""


def test_what_is_estimated_is_never_more_than_of_the_largest() -> None:
    e = np.array([1.0, 1000.0])
    assert np.array_equal(margins([e], [[e + 1e9]], 1.0, 1e-3)[0], [1.0, 1.0])
    assert np.array_equal(margins([e], [], 1.0, 1e-3, [np.array([1e9, np.inf])])[0], [1e6, 0.0])


def test_what_has_no_sums_has_no_order() -> None:
    assert not sums(of_elements().reference, of_elements().environment)
    job = JOBS["threadwise"]()
    assert terms(job.reference, job.environment) == COUNT
    assert magnitudes(job.reference) is None
    assert magnitudes(of_pairs().reference) is not None
