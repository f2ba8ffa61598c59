"""Random records within records, whose names are alike: as fields spelled out, by other names, have it.

Names are drawn from few, so that they meet when they are joined (`a.b_c`, `a_b.c`, a component and a field).
"""

from __future__ import annotations

import copy
import io
import pickle
import random
import sys
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import lanewise as lw

NAMES = (
    "a",
    "b",
    "c",
    "a_b",
    "b_c",
    "a_b_c",
    "x",
    "y",
    "x_y",
    "a_",
    "b_",
    "a__b",
    "float",
    "register",
    "given",
    "values",
)
TYPES = ("f32", "f64", "i32", "i64", "u32", "bool", "vec2", "vec3", "vec4", "dvec2", "dvec3", "ivec2", "ivec3")
LAYOUTS = (None, lw.AoS(), lw.SoA(), lw.AoAS(8), lw.AoAS(16), lw.SoAoAS(), lw.AoSoA(4), lw.AoSoA(8), "auto")
DEEPEST = 4
Shape = list[tuple[str, Any]]
Path_ = tuple[str, ...]


def shape(r: random.Random, depth: int) -> Shape:
    """Names of fields with their types, or with the fields of a record."""
    names = r.sample(NAMES, r.randint(1, 4))
    return [(n, shape(r, depth - 1) if depth and r.random() < 0.5 else r.choice(TYPES)) for n in names]


def leaves(fields: Shape, path: Path_ = ()) -> Iterator[tuple[Path_, str]]:
    for name, kind in fields:
        if isinstance(kind, str):
            yield (*path, name), kind
        else:
            yield from leaves(kind, (*path, name))


def parts(fields: Shape, path: Path_ = ()) -> Iterator[Path_]:
    for name, kind in fields:
        if not isinstance(kind, str):
            yield (*path, name)
            yield from parts(kind, (*path, name))


def classes(fields: Shape, lines: list[str]) -> str:
    """Writes the classes; the name of the outermost."""
    held = [f"    {n}: " + (f"lw.{k}" if isinstance(k, str) else classes(k, lines)) for n, k in fields]
    name = f"R{sum(x.startswith('class') for x in lines)}"
    lines += [f"class {name}(lw.Record):", *held]
    return name


def number(r: random.Random, owner: str, path: str, kind: str) -> str:
    component = f".{r.choice('xyzw'[: int(kind[-1])])}" if "vec" in kind else ""
    one = f"{owner}.{path}{component}"
    return f"(1.0 if {one} else 0.0)" if kind == "bool" else f"lw.f64({one})"


def kernels(seed: int, record: str, fields: list[tuple[str, str]]) -> list[str]:
    """Kernels over all patterns of records; of one seed the same but for the names of the fields."""
    r = random.Random(seed)
    lines = ["@lw.elementwise", f"def update_{record}(b: {record}, s: lw.f64) -> lw.f64:"]
    for path, kind in r.choices(fields, k=4):
        value = number(r, "b", *r.choice(fields))
        match kind:
            case "bool":
                lines.append(f"    b.{path} = {value} > 1.2")
            case "f32" | "f64":
                lines.append(f"    b.{path} = lw.{kind}(0.5 * lw.f64(b.{path}) + s * {value})")
            case _ if "vec" in kind and kind[0] != "i":
                lines.append(f"    b.{path} = b.{path} * lw.{'f64' if kind[0] == 'd' else 'f32'}(0.5 + {value})")
            case _:
                lines.append(f"    if {value} > 2.0:\n        b.{path} = b.{path} + 1")
    one, two, three = (number(r, o, *r.choice(fields)) for o in ("target", "source", "source"))
    return [
        *lines,
        f"    return {number(r, 'b', *r.choice(fields))} + {number(r, 'b', *r.choice(fields))}",
        "@lw.pairwise",
        f"def pair_{record}(target: {record}, source: {record}, s: lw.f64) -> tuple[lw.f64, lw.Max[lw.f64]]:",
        f"    near = 0.0 if lw.same(target, source) else {one} * {two}",
        f"    return near + s * {three}, near",
        "@lw.segmentwise",
        f"def total_{record}(it: {record}) -> lw.f64:",
        f"    return {number(r, 'it', *r.choice(fields))} * {number(r, 'it', *r.choice(fields))}",
    ]


def drawn(rng: np.random.Generator, kind: str, count: int) -> np.ndarray[Any, Any]:
    size = (count, int(kind[-1])) if "vec" in kind else (count,)
    if kind == "bool":
        return rng.random(size) < 0.5
    if kind[0] in "fvd":
        return (rng.random(size) + 0.5).astype("f8" if kind[0] == "d" or kind == "f64" else "f4")
    return rng.integers(1, 9, size).astype({"i64": "i8", "u32": "u4"}.get(kind, "i4"))


class Drawn:
    """Records of a random shape, and the same ones flat, with kernels over both."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.r, self.rng = random.Random(seed), np.random.default_rng(seed)
        self.shape: Shape = [
            ("a", shape(self.r, DEEPEST - 1)),
            *((n, k) for n, k in shape(self.r, DEEPEST) if n != "a"),
        ]
        self.fields = list(leaves(self.shape))
        self.flat = {".".join(p): f"f{n}" for n, (p, _) in enumerate(self.fields)}
        lines = ["import lanewise as lw"]
        top = classes(self.shape, lines)
        kinds = [(".".join(p), k) for p, k in self.fields]
        lines += ["class Flat(lw.Record):", *(f"    {self.flat[n]}: lw.{k}" for n, k in kinds)]
        lines += kernels(seed, top, kinds) + kernels(seed, "Flat", [(self.flat[n], k) for n, k in kinds])
        self.module = _module(folder / f"drawn_{seed}.py", "\n".join(lines))
        self.nested = getattr(self.module, top)
        self.pairs = {
            n: (getattr(self.module, f"{n}_{top}"), getattr(self.module, f"{n}_Flat"))
            for n in ("update", "pair", "total")
        }
        self.count = self.r.choice((0, 1, 2, 7, 33))
        self.values = {n: drawn(self.rng, k, self.count) for n, k in kinds}

    def arrays(self) -> tuple[Any, Any]:
        layout, host = self.r.choice(LAYOUTS), self.r.choice((None, None, lw.AoS(), lw.AoSoA(4)))
        more: dict[str, Any] = {"layout": layout}
        if host not in (None, layout) and layout != "auto":
            more["host_layout"] = host
        flat = self.module.Flat.array(None, **{self.flat[n]: v for n, v in self.values.items()}, **more)
        return self.nested.array(None, **self.values, **more), flat

    def same(self, nested: Any, flat: Any) -> None:
        """Every field has the bytes of the flat one."""
        here, there = nested.numpy(), flat.numpy()
        assert list(here) == list(self.flat)
        for name, values in here.items():
            assert values.dtype == there[self.flat[name]].dtype
            assert values.tobytes() == there[self.flat[name]].tobytes(), name


def _module(path: Path, text: str) -> ModuleType:
    path.write_text(text)
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


SEEDS = [*range(2), *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 80))]


@pytest.fixture(params=SEEDS)
def case(request: Any, tmp_path: Path) -> Drawn:
    return Drawn(request.param, tmp_path)


def equal(found: Any, wanted: Any) -> None:
    assert [np.asarray(x).tobytes() for x in found] == [np.asarray(x).tobytes() for x in wanted]


def at(owner: Any, path: Path_) -> Any:
    for name in path:
        owner = getattr(owner, name)
    return owner


def test_kernels(case: Drawn) -> None:
    a, b = case.arrays()
    (update, update_flat), (pair, pair_flat), (total, total_flat) = case.pairs.values()
    equal(pair(a, a, 0.25), pair_flat(b, b, 0.25))
    elements, rows = list(a), [x.copy() for x in a]  # one row each, which lw.same compares in plain Python
    tables = np.array([[pair.python(t, s, 0.25) for s in elements] for t in elements], float)
    if case.count:
        np.testing.assert_allclose(pair(a, a, 0.25)[0], tables[..., 0].sum(1), rtol=1e-9)
        np.testing.assert_allclose(pair(a, a, 0.25)[1], tables[..., 1].max(1), rtol=1e-12)
    interpreted = a.copy().to("python")
    wanted = update(interpreted, 0.5) if case.count else []
    np.testing.assert_allclose([float(update.python(x, 0.5)) for x in rows], wanted, rtol=1e-5)
    equal([update(a, 0.5)], [update_flat(b, 0.5)])
    case.same(a, b)
    for (path, _), n in ((f, n) for f in case.fields for n in range(case.count)):
        np.testing.assert_allclose(at(rows[n], path), at(a[n], path), rtol=1e-5)
        np.testing.assert_allclose(at(interpreted[n], path), at(a[n], path), rtol=1e-5)
    if case.count > 4:
        for cut in (
            (slice(4, None), slice(0, 0)) if isinstance(a.layout, lw.AoSoA) else (slice(1, None, 2), slice(2, 5))
        ):
            if a.layout != lw.AoSoA(8):
                equal([update(a[cut], 0.5)], [update_flat(b[cut], 0.5)])
                equal(pair(a[cut], a, 0.5), pair_flat(b[cut], b, 0.5))
        case.same(a, b)
    if case.count > 1:
        lists, lists_flat = (lw.ragged(x, counts=[1, 0, case.count - 1]) for x in (a, b))
        equal([total(lists)], [total_flat(lists_flat)])


def test_forms_of_others(case: Drawn, tmp_path: Path) -> None:
    a, b = case.arrays()
    table: dict[str, Any] = {}
    for path, _ in case.fields:
        inner = table
        for name in path[:-1]:
            inner = inner.setdefault(name, {})
        inner[path[-1]] = case.values[".".join(path)]
    for made in (
        case.nested.array(table),
        case.nested.array(None, **table),
        case.nested.array(a.numpy()),
        pickle.loads(pickle.dumps(a)),
    ):
        case.same(made, b)
    case.same(case.nested.array(a.to_structured()), b)  # a read-only copy in most layouts
    assert a.to_structured().dtype.names == a.record.names
    pytest.importorskip("h5py")
    lw.save(tmp_path / "a.h5", a)
    case.same(lw.load(tmp_path / "a.h5"), b)
    case.same(lw.load(tmp_path / "a.h5", record=case.nested, layout=lw.AoS()), b)


def columns(path: Path_, kind: str) -> list[str]:
    joined = "_".join(path)
    return [f"{joined}_{c}" for c in "xyzw"[: int(kind[-1])]] if "vec" in kind else [joined]


def test_tables(case: Drawn) -> None:
    pandas = pytest.importorskip("pandas")
    a, b = case.arrays()
    names = [c for path, kind in case.fields for c in columns(path, kind)]
    taken = {"_".join(path) for path, kind in case.fields if len(path) == 1 and "vec" in kind}
    if len(set(names)) < len(names) or not taken.isdisjoint(names):
        with pytest.raises(lw.ArgumentError, match="two columns of a table would be called"):
            a.dataframe()
        return
    frame = a.dataframe()
    assert list(frame.columns) == names
    case.same(case.nested.array(frame), b)
    text = io.StringIO(frame.to_csv(index=False))
    case.same(case.nested.array(pandas.read_csv(text, dtype=dict(frame.dtypes))), b)


def test_parts(case: Drawn) -> None:
    a, b = case.arrays()
    for path in parts(case.shape):
        one, head = at(a, path), ".".join(path)
        held = {n: v for n, v in case.values.items() if n.startswith(f"{head}.")}
        for alone in (one.copy(), copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
            assert [v.tobytes() for v in alone.numpy().values()] == [v.tobytes() for v in held.values()]
        grown = lw.concatenate([one, one])
        grown.append(one)
        grown[: case.count] = one
        assert [len(grown), *(v.tobytes() for v in grown[: case.count].numpy().values())] == [
            3 * case.count, *(v.tobytes() for v in held.values())
        ]  # fmt: skip
        for assign in (
            lambda x, p: setattr(at(x, p[:-1]), p[-1], at(a, p)),
            lambda x, p: at(x, p).__setitem__(slice(None), at(a, p).copy()),
        ):
            other = case.nested.zeros(case.count, layout=lw.AoS())
            assign(other, path)
            for name, values in other.numpy().items():
                assert values.tobytes() == (held[name].tobytes() if name in held else bytes(values.nbytes))
    case.same(a, b)


# ------------------------------------------------------------ columns that could belong to two fields


class Pair(lw.Record):
    x: lw.f32
    y: lw.vec2


class Both(lw.Record):
    pair: Pair
    pair_x: lw.f32


def test_a_column_called_as_a_field_is_that_field() -> None:
    both: Any = Both.array({"pair_x": [1.0, 2.0]})
    assert (both.pair.x.tolist(), both.pair_x.tolist()) == ([0, 0], [1, 2])
    both = Both.array({"pair_x": [1.0, 2.0], "pair.x": [3.0, 4.0], "pair_y_x": [5.0, 6.0], "pair_y_y": [7.0, 8.0]})
    assert (both.pair.x.tolist(), both.pair_x.tolist(), both.pair.y.tolist()) == ([3, 4], [1, 2], [[5, 7], [6, 8]])
    with pytest.raises(lw.ArgumentError, match=r"would be called 'pair_x', those of 'pair\.x' and 'pair_x'; rename"):
        both.dataframe()


@pytest.mark.parametrize(
    ("table", "text"),
    [
        (
            {"pair.y": np.ones((2, 2)), "pair_y": np.ones((2, 2))},
            "'pair.y' twice: the table has the columns 'pair.y', 'pair_y'",
        ),
        (
            {"pair.y": np.ones((2, 2)), "pair_y_x": [1, 2]},
            "'pair.y' twice: the table has the columns 'pair.y', 'pair_y_x'",
        ),
        (
            {"pair_y_x": [1, 2]},
            "two columns of a table would be called 'pair_x'|the table has pair_y_x, and no pair_y_y",
        ),
    ],
)
def test_a_field_given_twice_is_refused(table: dict[str, Any], text: str) -> None:
    with pytest.raises(lw.ArgumentError, match=text):
        Both.array(table)


# ------------------------------------------------------------ what is said


@lw.pairwise
def near(target: Both, source: Both) -> lw.f32:
    return source.pair_x


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (lambda a: near.using(lw.Neighbors(radius=1.0))(a, a), r"hint: position='pair\.y' of the search"),
        (lambda a: near(a.pair, a), r"found <\.pair: Pair of .*, whose records are Pair$"),
        (lambda a: a.pair.nbytes, r"Pair has no field 'nbytes'; .*; \.pair\.copy\(\) is an array, which has it"),
        (lambda a: Pair.array(a.pair), r"\.copy\(\) is an array of them"),
        (lambda a: np.asarray(a.pair), r"or \.pair\.copy\(\), an array of them alone"),
        (lambda a: a.x, r"Both has no field 'x'; its fields are pair, pair_x; did you mean 'pair\.x'\?"),
        (lambda a: lw.Population(a, ids="pair"), r"Both\.pair is a Pair; name a field of it: pair\.x, pair\.y"),
        (lambda a: a.append(a.pair), r"wanted an array of Both.*found an array of Pair"),
    ],
)
def test_messages(act: Any, text: str) -> None:
    with pytest.raises((lw.LanewiseError, AttributeError, TypeError), match=text):
        act(Both.zeros(3))


def test_groups_of_layouts_name_records() -> None:
    by_name = Both.zeros(2, layout=lw.SoAoAS([("pair",), ("pair_x",)])).arrangement
    by_field = Both.zeros(2, layout=lw.SoAoAS([("pair.x", "pair.y"), ("pair_x",)])).arrangement
    assert by_name == by_field


def test_awkward_records_nest() -> None:
    pytest.importorskip("awkward")
    made = lw.ragged(Both.array(pair={"x": [1, 2, 3]}, pair_x=0), counts=[1, 2]).awkward()
    assert made.fields == ["pair", "pair_x"]
    assert made.pair.x.tolist() == [[1], [2, 3]]
