"""What a search reads itself is known as read: positions and headings are the newest ones on both sides, and are
brought to every part of a mesh, whatever the function reads.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.support.errors import ArgumentError

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]
COUNT = 150


@lw.record
class Looker:
    number: lw.i64
    looks: lw.vec3
    position: lw.vec3


@lw.pairwise
def count(target: Looker, source: Looker) -> lw.i32:
    return 1


@lw.pairwise
def total(target: Looker, source: Looker) -> lw.i64:
    return source.number


SIGHT = lw.Sight(heading="looks", cosine=0.3)
SEARCHES = [
    lw.StaticGrid(radius=0.4, sight=SIGHT), lw.AllPairs(radius=0.4, sight=SIGHT), lw.StaticGrid(radius=0.4, k=3, sight=SIGHT),
    lw.AllPairs(radius=0.4, k=3, sight=SIGHT), lw.StaticGrid(radius=0.3), lw.AllPairs(radius=0.3), lw.DynamicGrid(radius=0.3),
    lw.CellArray(radius=0.3), lw.Neighbors(radius=0.3), lw.Neighbors(radius=0.3, world=lw.Periodic((1.0, 1.0, 1.0))),
]  # fmt: skip


def columns(seed: int, rows: int = COUNT) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    looks = rng.normal(size=(rows, 3))
    looks /= np.linalg.norm(looks, axis=1, keepdims=True)
    return {
        "number": rng.integers(1, 1 << 40, rows),
        "looks": looks.astype("f4"),
        "position": rng.random((rows, 3)).astype("f4"),
    }


def host(value: Any) -> np.ndarray[Any, Any]:
    return np.asarray(value.get() if hasattr(value, "get") else value)


def alone(kernel: Any, targets: dict[str, Any], sources: dict[str, Any] | None = None) -> np.ndarray[Any, Any]:
    """By a kernel of its own, over arrays that nothing has happened to."""
    t = Looker.array(**targets)
    s = t if sources is None else Looker.array(**sources)
    return host(kernel.using(kernel.search)(t, s))


def plain(kernel: Any, *arrays: Any) -> Callable[[], Any]:
    return lambda: kernel(*arrays)


def bound(kernel: Any, *arrays: Any) -> Callable[[], Any]:
    return kernel.bind(*arrays)


def looped(kernel: Any, *arrays: Any) -> Callable[[], Any]:
    call = kernel.bind(*arrays)
    steps = lw.steps([call])

    def run() -> Any:
        steps.run(1)
        return call.results[0]

    return run


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("how", [plain, bound, looped])
@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_what_one_side_is_assigned_is_met(search: lw.Search, how: Callable[..., Any], device: str) -> None:
    first, later = columns(1), columns(2)
    kernel = total.using(search)
    array = Looker.array(**first, device=device, layout=lw.AoS(), host_layout=lw.SoA())
    run = how(kernel, array, array)
    now = dict(first)
    assert np.array_equal(host(run()), alone(kernel, now))
    for field in ("looks", "position"):
        setattr(array.host, field, later[field])
        now[field] = later[field]
        assert np.array_equal(host(run()), alone(kernel, now)), field


@pytest.mark.parametrize("search", SEARCHES[:2], ids=str)
def test_of_other_targets_too(search: lw.Search) -> None:
    first, sources, later = columns(1, 70), columns(3), columns(2, 70)
    kernel, fixed = count.using(search), Looker.array(**sources)
    array = Looker.array(**first, layout=lw.AoS(), host_layout=lw.SoA())
    runs = [how(kernel, array, fixed) for how in (plain, bound, looped)]
    _ = [run() for run in runs]
    array.host.looks = later["looks"]
    wanted = alone(kernel, first | {"looks": later["looks"]}, sources)
    for run in runs:
        assert np.array_equal(host(run()), wanted)


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_parts_of_a_mesh_have_it(search: lw.Search, parts: int) -> None:
    mesh, first, fewer = lw.Mesh("cpu", parts=parts), columns(1), columns(2, 70)
    for kernel in (count.using(search), total.using(search)):
        sources, targets = Looker.array(**first, device=mesh), Looker.array(**fewer, device=mesh)
        assert np.array_equal(kernel(sources, sources).numpy(), alone(kernel, first))
        assert np.array_equal(kernel(targets, sources).numpy(), alone(kernel, fewer, first))
        call = kernel.bind(sources, sources)
        for field in ("looks", "position"):
            setattr(sources, field, columns(4)[field])
        assert np.array_equal(call().numpy(), alone(kernel, {**columns(4), "number": first["number"]}))


@pytest.mark.parametrize("parts", [0, 2])
def test_a_heading_that_is_not_there_is_refused(parts: int) -> None:
    array = Looker.array(**columns(1), device=lw.Mesh("cpu", parts=parts) if parts else "cpu")
    for field in ("number", "nothing"):
        kernel = count.using(lw.StaticGrid(radius=0.3, sight=lw.Sight(heading=field, cosine=0)))
        with pytest.raises(ArgumentError, match=f"count: .*and the targets have no field '{field}' with as many"):
            kernel(array, array)


def test_results_do_not_lie_in_a_heading() -> None:
    array = Looker.array(**columns(1), layout=lw.SoA())
    out = array.looks.T[0].view("i4")
    assert np.shares_memory(out, array.looks)
    with pytest.raises(ArgumentError, match=r"count: out shares memory with target\.looks, which the kernel reads"):
        count.using(SEARCHES[0])(array, array, out=out)
