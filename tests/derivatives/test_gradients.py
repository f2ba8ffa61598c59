"""Gradients of kernels on the devices, in every layout and over every search, against the float64 twin of the function,
pair by pair.
"""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.derivatives.gradient import Cotangents, GradientValue
from lanewise.derivatives.gradient import _Maker as Maker  # pyright: ignore[reportPrivateUsage]
from lanewise.language import types as t
from lanewise.language.record import Record
from lanewise.patterns.variables import cotangent_leaves
from tests import corpus_kernels as corpus
from tests.corpus import CASES, Case
from tests.derivatives.differences import value, widened

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]
INTERPRETED = ["python", pytest.param("cpu", marks=pytest.mark.slow), pytest.param("cuda", marks=pytest.mark.cuda)]
LAYOUTS = [lw.SoA(), lw.AoS(), lw.AoAS(), lw.SoAoAS(), lw.AoSoA(32)]
PAIRS = [c for c in CASES if c.pairwise and c.name not in ("count_ranks", "order")]
ELEMENTS = [c for c in CASES if not c.pairwise and c.name in ("speed", "saxpy_norm", "histogram")]
Fields = dict[str, np.ndarray[Any, Any]]


def host(x: Any) -> Any:
    return x.get() if hasattr(x, "get") else x


def floats(kernel: Any) -> dict[str, t.ValueType]:
    """What a gradient can be taken by: fields of records by their full names, and values."""
    kinds: dict[str, t.ValueType] = {}
    for n, k in kernel.signature.parameters.items():
        kinds |= {f"{n}.{f.name}": f.type for f in k} if isinstance(k, Record) else {n: k}
    used = {p.name for p in kernel.lowered.function.parameters}
    return {n: k for n, k in kinds.items() if t.scalar_of(k).is_float and used & set(t.leaves(n, k))}


def element(fields: Fields, record: str, i: int) -> dict[str, Any]:
    scalars: dict[str, Any] = {}
    for n, a in fields.items():
        scalars |= (
            {f"{record}.{n}.{'xyz'[c]}": a[i, c] for c in range(a.shape[1])} if a.ndim == 2 else {f"{record}.{n}": a[i]}
        )
    return scalars


class Oracle:
    """The derivatives of all pairs, from the gradient of the float64 twin, which is held against differences
    elsewhere.
    """

    def __init__(
        self, kernel: Any, targets: Fields, sources: Fields, cotangents: list[Any], values: dict[str, Any], same: bool
    ) -> None:
        n, m = (len(next(iter(x.values()))) for x in (targets, sources))
        f, self.kinds = widened(kernel.lowered.function), floats(kernel)
        leaves = [x for name, k in self.kinds.items() for x in t.leaves(name, k)]
        names = cotangent_leaves(kernel.lowered)
        maker = Maker(
            f, "g", tuple(GradientValue((x,), t.F64) for x in leaves), Cotangents(names), ("target", "source")
        )
        g = maker.forward()
        self.pairs = {x: np.zeros((n, m)) for x in leaves}
        for i in range(n):
            weights = {f"target.{x}": w[i] for x, w in zip(names, cotangents, strict=True)}
            for j in range(m):
                arguments = element(targets, "target", i) | element(sources, "source", j) | values | weights
                for x, d in zip(leaves, value(g, arguments | {"$same": same and i == j}), strict=True):
                    self.pairs[x][i, j] = d

    def of(self, name: str) -> Any:
        """The derivative with respect to one thing: for a target, for a source, or in all."""
        axis = {"target": 1, "source": 0}.get(name.split(".")[0])
        parts = [self.pairs[x].sum(axis) for x in t.leaves(name, self.kinds[name])]
        return np.stack(parts, -1) if isinstance(self.kinds[name], t.Vector) else parts[0]

    def both(self, field: str) -> Any:
        return sum(self.of(n) for n in (f"target.{field}", f"source.{field}") if n in self.kinds)


def cotangent_of(kernel: Any, count: int, seed: int) -> tuple[Any, list[Any]]:
    """Cotangents as a call takes them, and one array a scalar of the results."""
    rng = np.random.default_rng(seed)
    arrays = [
        rng.normal(size=(count, k.length) if isinstance(k, t.Vector) else count).astype(t.scalar_of(k).dtype)
        for k in kernel.lowered.results
    ]
    scalars = [c for a in arrays for c in (a.T if a.ndim == 2 else [a])]
    return arrays[0] if len(arrays) == 1 else tuple(arrays), scalars


def close(case: Case, found: Any, wanted: Any) -> None:
    scale = float(np.abs(wanted).max()) or 1.0
    np.testing.assert_allclose(
        host(found), wanted, rtol=2e-4, atol=2e-6 + 2e-5 * scale if case.name != "gravity_f64" else 1e-12 * (1 + scale)
    )


def made(case: Case, n: int, seed: int, layout: Any, device: str, place: int = 0) -> tuple[Fields, Any]:
    fields = case.fill(np.random.default_rng(seed), n)
    return fields, case.records[place].array(**fields, layout=layout, device=device)


@pytest.mark.parametrize("device", INTERPRETED)
@pytest.mark.parametrize("case", PAIRS, ids=str)
def test_two_arrays(case: Case, device: str) -> None:
    """With respect to targets, sources and values, with cotangents and without."""
    targets, a = made(case, 6, 1, None, device)
    sources, b = made(case, 9, 2, None, device, 1)
    names = tuple(floats(case.kernel))
    gradient = case.kernel.gradient(wrt=names)
    cotangent, scalars = cotangent_of(case.kernel, 6, 3)
    for given, weights in ((None, [np.ones(6)] * len(scalars)), (cotangent, scalars)):
        oracle = Oracle(case.kernel, targets, sources, weights, case.values, same=False)
        for name, found in zip(names, gradient(a, b, **case.values, cotangent=given), strict=True):
            close(case, found, oracle.of(name))


@pytest.mark.parametrize("device", INTERPRETED)
@pytest.mark.parametrize("case", PAIRS, ids=str)
def test_one_array(case: Case, device: str) -> None:
    """Both roles of an element together, each by itself, and values."""
    fields, a = made(case, 8, 1, None, device)
    names = tuple(floats(case.kernel))
    both = tuple(dict.fromkeys(n.split(".")[1] for n in names if "." in n))
    cotangent, scalars = cotangent_of(case.kernel, 8, 3)
    for given, weights in ((None, [np.ones(8)] * len(scalars)), (cotangent, scalars)):
        oracle = Oracle(case.kernel, fields, fields, weights, case.values, same=True)
        for name, found in zip(
            names, case.kernel.gradient(wrt=names)(a, a, **case.values, cotangent=given), strict=True
        ):
            close(case, found, oracle.of(name))
        for name, found in zip(both, case.kernel.gradient(wrt=both)(a, a, **case.values, cotangent=given), strict=True):
            close(case, found, oracle.both(name))


@pytest.mark.parametrize("device", INTERPRETED)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_layouts(layout: Any, device: str) -> None:
    """The same derivatives in every layout, with cotangents, which are fields of a copy in that layout."""
    case = next(c for c in PAIRS if c.name == "gravity_potential")
    fields, a = made(case, 9, 1, layout, device)
    cotangent, scalars = cotangent_of(case.kernel, 9, 3)
    oracle = Oracle(case.kernel, fields, fields, scalars, case.values, same=True)
    close(case, case.kernel.gradient(wrt="position")(a, a, **case.values, cotangent=cotangent), oracle.both("position"))
    ones = Oracle(case.kernel, fields, fields, [np.ones(9)] * 4, case.values, same=True)
    close(case, case.kernel.gradient(wrt="target.position")(a, a, **case.values), ones.of("target.position"))


@pytest.mark.parametrize("case", ELEMENTS, ids=str)
@pytest.mark.parametrize("device", INTERPRETED)
def test_elements(case: Case, device: str) -> None:
    """With respect to fields, arrays, and values for all."""
    n, kernel = 12, case.kernel
    rng = np.random.default_rng(4)
    fields = case.fill(rng, n) if case.records else {}
    arrays = case.arrays(rng, n)
    arguments: dict[str, Any] = {k: np.asarray(v) for k, v in arrays.items()} | case.values
    if case.records:
        record = next(iter(kernel.signature.parameters))
        arguments[record] = case.records[0].array(**fields, device=device)
    names = tuple(floats(kernel))
    cotangent, scalars = cotangent_of(kernel, n, 3)
    f = widened(kernel.lowered.function)
    leaves = [x for name in names for x in t.leaves(name, floats(kernel)[name])]
    g = Maker(
        f, "g", tuple(GradientValue((x,), t.F64) for x in leaves), Cotangents(cotangent_leaves(kernel.lowered)), None
    ).forward()
    wanted: dict[str, list[Any]] = {x: [] for x in leaves}
    for i in range(n):
        values: dict[str, Any] = element(fields, next(iter(kernel.signature.parameters)), i)
        for k, v in (arrays | case.values).items():
            row = v[i] if k in arrays else v
            values |= dict(zip(t.leaves(k, kernel.signature.parameters[k]), np.atleast_1d(row), strict=True))
        weights = {x: w[i] for x, w in zip(cotangent_leaves(kernel.lowered), scalars, strict=True) if x}
        for x, d in zip(leaves, value(g, values | weights), strict=True):
            wanted[x].append(d)
    if isinstance(cotangent, tuple):
        cotangent = tuple(c if c.dtype.kind == "f" else None for c in cotangent)
    with lw.device(device):
        results = kernel.gradient(wrt=names)(**arguments, cotangent=cotangent)
    for name, found in zip(names, results, strict=True):
        columns = np.array([wanted[x] for x in t.leaves(name, floats(kernel)[name])]).T
        total = name in case.values
        expected = columns.sum(0) if total else columns
        close(
            case,
            np.atleast_1d(host(found)),
            expected[:, 0] if expected.ndim == 2 and expected.shape[1] == 1 else expected,
        )


# ---------------------------------------------------------------- searches


@lw.pairwise
def springs(target: corpus.DBody, source: corpus.DBody, stiffness: lw.f64) -> lw.f64:
    """Depends on positions through their difference alone, and falls to zero at a distance of 1."""
    d = source.position - target.position
    near = lw.max(1.0 - lw.dot(d, d), 0.0)
    return stiffness * source.mass * near * near


SEARCHES = [
    lw.Neighbors(radius=1.0),
    lw.DynamicGrid(radius=1.0),
    lw.Neighbors(radius=1.0, world=lw.Periodic((4.0, 4.0, 4.0))),
]


def bodies(n: int, seed: int, device: str) -> tuple[Fields, Any]:
    rng = np.random.default_rng(seed)
    fields = {"position": rng.uniform(0, 4, (n, 3)), "mass": rng.uniform(0.5, 1.5, n)}
    return fields, corpus.DBody.array(**fields, device=device)


def spring_total(fields: Fields, other: Fields, weights: Any, size: float | None) -> float:
    d = other["position"][None] - fields["position"][:, None]
    if size is not None:
        d = d - size * np.round(d / size)
    near = np.maximum(1 - (d * d).sum(-1), 0)
    return float((weights[:, None] * other["mass"] * near**2 * 2.5).sum())


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "search",
    [*SEARCHES[2:], *(pytest.param(s, marks=pytest.mark.slow) for s in SEARCHES[:2])],
    ids=lambda s: s.describe(),
)
def test_searches(search: Any, device: str) -> None:
    """Forces over neighbours, against differences of the energy in NumPy; positions, masses and the stiffness."""
    fields, a = bodies(60, 5, device)
    weights = np.random.default_rng(6).normal(size=60)
    size = 4.0 if isinstance(search.world, lw.Periodic) else None
    kernel = springs.using(search)
    force, mass, stiffness = kernel.gradient(wrt=("position", "mass", "stiffness"))(
        a, a, stiffness=2.5, cotangent=weights
    )
    assert stiffness == pytest.approx(spring_total(fields, fields, weights, size) / 2.5, rel=1e-12)
    for i in (0, 17, 59):
        for field, found in (("position", host(force)[i]), ("mass", host(mass)[i])):
            for c in range(np.size(found)):
                energies: list[float] = []
                for step in (1e-5, -1e-5):
                    moved = copy.deepcopy(fields)
                    moved[field].reshape(60, -1)[i, c] += step
                    energies.append(spring_total(moved, moved, weights, size))
                assert np.atleast_1d(found)[c] == pytest.approx((energies[0] - energies[1]) / 2e-5, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("device", DEVICES)
def test_sources_of_a_search(device: str) -> None:
    """Over two arrays: the roles are exchanged, and the search runs over the targets."""
    _, a = bodies(40, 5, device)
    _, b = bodies(70, 7, device)
    plain, searched = (
        k.gradient(wrt=("source.position", "mass", "target.position", "stiffness"))
        for k in (springs, springs.using(SEARCHES[0]))
    )
    weights = np.random.default_rng(6).normal(size=40)
    for x, y in zip(plain(a, b, 2.5, cotangent=weights), searched(a, b, 2.5, cotangent=weights), strict=True):
        np.testing.assert_allclose(host(x), host(y), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("device", DEVICES)
def test_nearest(device: str) -> None:
    """With respect to targets: of the sources that are the nearest."""
    _, a = bodies(50, 5, device)
    gradient = springs.using(lw.Nearest(k=4)).gradient(wrt="target.position")
    energies = springs.using(lw.Nearest(k=4))
    moved = a.copy()
    moved.position[7, 0] += 1e-6
    moved_energies = energies(moved, a, 2.5)
    difference = (float(host(moved_energies)[7]) - float(host(energies(a.copy(), a, 2.5))[7])) / 1e-6
    assert float(host(gradient(a.copy(), a, 2.5))[7, 0]) == pytest.approx(difference, rel=1e-3)


# ---------------------------------------------------------------- plans and objects


@lw.pairwise
def energy(target: corpus.Body, source: corpus.Body, softening2: lw.f32) -> lw.f32:
    d = source.position - target.position
    inv = lw.rsqrt(lw.dot(d, d) + softening2)
    return 0.0 if lw.same(target, source) else -0.5 * target.mass * source.mass * inv


def test_the_gradient_of_energy_is_the_force() -> None:
    fields = CASES[0].fill(np.random.default_rng(1), 50)
    a = corpus.Body.array(**fields)
    found = energy.gradient(wrt="position")(a, a, softening2=0.05)
    force = corpus.gravity(a, a, softening2=0.05) * fields["mass"][:, None]
    assert found.dtype == np.float32
    assert found.shape == (50, 3)
    np.testing.assert_allclose(found, -force, rtol=2e-4, atol=2e-5)


def test_plans() -> None:
    """A gradient takes plans as any pairwise kernel, and says what was done."""
    a = corpus.Body.array(**CASES[0].fill(np.random.default_rng(1), 50))
    gradient = energy.gradient(wrt="position")
    wanted = gradient(a, a, softening2=0.05)
    np.testing.assert_allclose(gradient(a, a, softening2=0.05, plan=lw.Plan(targets=4)), wanted, rtol=2e-5, atol=1e-6)
    compiled = gradient.compile(a, a, softening2=0.05, plan=lw.Plan(targets=4))
    assert compiled.plan.targets == 4
    assert "energy_gradient" in str(compiled.explain())
    call = gradient.bind(a, a, softening2=0.05)
    np.testing.assert_array_equal(call(), wanted)
    assert gradient.mode(a, a, softening2=0.05) == "reverse (3 scalar inputs)"
    with pytest.raises(lw.PlanError):
        gradient(a, a, softening2=0.05, plan=lw.Plan(targets=0))


def test_reciprocity() -> None:
    """The force of a symmetric energy is computed once for both elements of a pair."""
    from lanewise.analysis.both_ways import BothWays, both_ways
    from tests.derivatives.test_functions import RECORDS

    gradient = energy.gradient(wrt="position")
    a = corpus.Body.array(**CASES[0].fill(np.random.default_rng(1), 50))
    compiled = gradient.compile(a, a, softening2=0.05)
    function = _applied(compiled.reference)
    both = both_ways(function, *RECORDS)
    assert isinstance(both, BothWays)
    assert both.saved > 0.4


def _applied(kernel: Any) -> Any:
    from lanewise.ir.functions import functions

    return next(f for f in functions(kernel.body) if f.name == "energy_gradient")


def test_objects() -> None:
    gradient = energy.gradient(wrt=("position", "softening2"))
    assert repr(gradient) == "<the gradient of <lanewise pairwise kernel energy> with respect to position, softening2>"
    assert gradient.wrt == ("position", "softening2")
    a = corpus.Body.array(**CASES[0].fill(np.random.default_rng(1), 20))
    first = gradient(a, a, softening2=0.05)
    again = pickle.loads(pickle.dumps(gradient))(a, a, softening2=0.05)
    for x, y in zip(first, again, strict=True):
        np.testing.assert_array_equal(x, y)
    assert isinstance(first[1], float)
    assert not isinstance(corpus.speed.gradient(wrt="mass")(a), tuple)


def test_a_redefined_helper_is_noticed() -> None:
    @lw.function
    def law(r2):
        return r2

    @lw.pairwise
    def pull(target: corpus.DBody, source: corpus.DBody) -> lw.f64:
        d = source.position - target.position
        return law(lw.dot(d, d))

    _, a = bodies(5, 1, "cpu")
    gradient = pull.gradient(wrt="target.position")
    before = gradient(a, a)

    @lw.function
    def law(r2):  # noqa: F811
        return 2.0 * r2

    np.testing.assert_allclose(gradient(a, a), 2 * before)
