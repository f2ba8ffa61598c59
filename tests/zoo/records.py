"""Kernels over records as people write them, from seeds: pairs, elements, and pairs that a search finds.

A case is a text in the language and the fields of its records. The truth is the same text on float64 numbers, whose
function Python runs for single targets. Constants of models and of default plans may be fitted to even seeds; odd seeds
judge.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from tests.zoo.generate import FULL, SMALL, WAVE, Array

FAMILIES = ("pairs", "elements", "searches")
COUNTS = {
    "pairs": {SMALL: 300, WAVE: 1 << 14, FULL: 1 << 17},
    "elements": {SMALL: 1000, WAVE: 1 << 18, FULL: 1 << 22},
    "searches": {SMALL: 1000, WAVE: 1 << 15, FULL: 1 << 19},
}
"""So many targets, or elements."""
GRAIN = {"pairs": 2.0**-11, "elements": 2.0**-11, "searches": 2.0**-14}
"""Positions are multiples of it, so that float32 knows as exactly as float64 which squared distance is the smaller one."""
COLD = ("lw.f32", "lw.f32", "lw.vec3", "lw.vec2", "lw.i32", "lw.f64", "lw.i64", "lw.u8", "lw.i16", "lw.vec4")
SCALARS = {"lw.vec2": 2, "lw.vec3": 3, "lw.vec4": 4}
PLACES = {1: "lw.f32", 2: "lw.vec2", 3: "lw.vec3", 4: "lw.vec4"}
REDUCED = ("lw.Min", "lw.Max", "lw.ArgMin", "lw.Count", "lw.KMin", "lw.ArgKMin", "lw.LogSumExp", "lw.Any", "lw.All")
KINDS = 3
"""So many kinds of records."""
LONGEST = 24
"""Rounds of a loop whose length a record tells."""
TABLE = 4096
STARTS = {
    "total": np.zeros(1), "least": np.full(1, 1e30), "most": np.full(1, -1e30),
    "first": np.full(1, 1 << 30, np.int32), "last": np.full(1, -1, np.int32),
}  # fmt: skip
"""What lies in tables that kernels add to, or whose extremes they seek."""
EXACT = {"f32": "f64", "vec2": "dvec2", "vec3": "dvec3", "vec4": "dvec4"}

WEIGHTS = (
    "lw.rsqrt(g)",
    "lw.rsqrt(g) * lw.rsqrt(g) * lw.rsqrt(g)",
    "1.0 / g",
    "lw.exp(-q)",
    "lw.exp(-2.0 * q) * lw.cos(5.0 * q)",
    "lw.log(1.0 + q)",
    "lw.sqrt(g)",
    "lw.sin(3.0 * q)",
    "lw.tanh(q)",
    "lw.pow(g, 0.75)",
    "lw.select(q < 0.25, 1.0 - 4.0 * q, 0.0)",
    "lw.max(0.0, 1.0 - q)",
)


@dataclass(frozen=True, slots=True)
class RecordCase:
    """One kernel over records of the class `Item`.

    fields: their types as the text spells them. head: of the function, up to its parameters. body: its lines but the
    last, which returns results as annotated. same: whether targets are the sources as well. neighbours: about so many
    of the sources a search finds. clustered: whether positions are. tables: arrays that the kernel reads, or adds to.
    """

    seed: int
    family: str
    fields: dict[str, str]
    head: str
    body: tuple[str, ...]
    results: tuple[str, ...]
    annotations: tuple[str, ...]
    uniforms: dict[str, float]
    same: bool = True
    neighbours: float = 0.0
    clustered: bool = False
    tables: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The program: the record and the kernel."""
        return self._text(self.results, self.annotations)

    @property
    def exact(self) -> str:
        """The program on float64 numbers; where a result is an index, the value that it is the index of."""
        return _exact(self.text).replace("lw.ArgMin[", "lw.Min[").replace("lw.ArgKMin[", "lw.KMin[")

    @property
    def magnitudes(self) -> str:
        """On float64 numbers, what is summed up without its signs: roundings are as large as that."""
        lengths = [f"lw.length({r})" if a in SCALARS else f"abs({r})" if a == "lw.f32" else r
                   for r, a in zip(self.results, self.annotations, strict=True)]  # fmt: skip
        return _exact(self._text(lengths, ["lw.f32" if a in SCALARS else a for a in self.annotations]))

    def _text(self, results: Sequence[str], annotations: Sequence[str]) -> str:
        record = ["@lw.record", "class Item:", *(f"    {n}: {k}" for n, k in self.fields.items())]
        kind = f"tuple[{', '.join(annotations)}]" if len(annotations) > 1 else "".join(annotations)
        last = [f"return {', '.join(results)}"] if results else []
        head = f"{self.head}{' -> ' if kind else ''}{kind}:"
        return "\n".join([*record, "", "", head, *(f"    {line}" for line in (*self.body, *last)), ""])

    def form(self, n: int) -> str:
        """How a result is reduced, "" for a sum or what an element returns."""
        reduction = self.annotations[n].split("[")[0]
        return reduction.removeprefix("lw.") if reduction in REDUCED else ""

    def most(self, n: int) -> int:
        """How many of the smallest values, or of their indices, make up a result."""
        return int(self.annotations[n].rstrip("]").split(", ")[1])

    @property
    def dimensions(self) -> int:
        """Of a position."""
        return SCALARS.get(self.fields["position"], 1)

    def count(self, size: str) -> tuple[int, int]:
        """How many targets and sources there are."""
        n = COUNTS[self.family][size]
        return n, n if self.same or self.family == "elements" else n // 2 + 1

    def radius(self, size: str) -> float:
        """Within which about as many sources are as asked for: a multiple of the grain of positions."""
        d, n = self.dimensions, self.count(size)[1]
        ball = {1: 2.0, 2: np.pi, 3: 4 / 3 * np.pi, 4: np.pi**2 / 2}[d]
        grain = GRAIN[self.family]
        return max(1, round((self.neighbours / (ball * n)) ** (1 / d) / grain)) * grain

    def values(self, size: str) -> list[dict[str, Array]]:
        """The fields of targets and sources; of one array of both once."""
        rng = np.random.default_rng(self.seed)
        counts = self.count(size)
        return [self._values(rng, n) for n in (counts[:1] if self.same else counts)]

    def _values(self, rng: np.random.Generator, n: int) -> dict[str, Array]:
        made: dict[str, Array] = {}
        for name, kind in self.fields.items():
            shape = (n, SCALARS[kind]) if kind in SCALARS else (n,)
            match name:
                case "position":
                    place = rng.random(shape)
                    if self.clustered:
                        centres = rng.random((max(1, n // 500), *shape[1:]))
                        place = (centres[rng.integers(0, len(centres), n)] + 0.03 * rng.standard_normal(shape)) % 1.0
                    grain = GRAIN[self.family]
                    made[name] = np.floor(place / grain) * grain
                case "kind":
                    made[name] = rng.integers(0, KINDS, n)
                case "rounds":
                    made[name] = rng.integers(0, LONGEST, n)
                case "ident":
                    made[name] = rng.integers(0, TABLE, n)
                case _:
                    made[name] = (
                        (rng.random(shape) * 8).astype(int) if "i" in kind or "u" in kind else rng.random(shape)
                    )
        return made

    def arrays(self) -> dict[str, Array]:
        """The tables, in float64; what is added to is zero, and extremes begin beyond all numbers."""
        rng = np.random.default_rng(self.seed + 1)
        return {n: STARTS[n].repeat(TABLE) if n in STARTS else rng.random(TABLE) for n in self.tables}

    def given_arrays(self) -> dict[str, Array]:
        """The tables as the kernel takes them."""
        return {n: a.astype(np.float32) if a.dtype.kind == "f" else a for n, a in self.arrays().items()}


def generate(seed: int) -> RecordCase:
    """The kernel of a seed."""
    rng = Random(seed)
    family = FAMILIES[seed // 2 % len(FAMILIES)]  # each has as many even seeds as odd ones
    return {"pairs": _pairs, "elements": _elements, "searches": _searches}[family](seed, rng)


def record_of(rng: Random, hot: dict[str, str], most: int) -> dict[str, str]:
    """Fields in a random order: those that the kernel reads, and others up to so many scalars."""
    fields, scalars = dict(hot), sum(SCALARS.get(k, 1) for k in hot.values())
    while scalars < most:
        kind = rng.choice(COLD)
        fields[f"c{len(fields)}"] = kind
        scalars += SCALARS.get(kind, 1)
    names = list(fields)
    rng.shuffle(names)
    return {n: fields[n] for n in names}


def _exact(text: str) -> str:
    return re.sub(r"lw\.(f32|vec2|vec3|vec4)\b", lambda m: f"lw.{EXACT[m[1]]}", text)


def weight(rng: Random) -> str:
    """What a pair counts for, of its squared distance `q` and of `g`, which is never zero; sometimes a long
    polynomial.
    """
    if rng.random() < 0.2:
        text = _coefficient(rng)
        for _ in range(rng.choice((4, 12, 40))):
            text = f"({text} * x + {_coefficient(rng)})"
        return text
    return rng.choice(WEIGHTS)


def _coefficient(rng: Random) -> str:
    return str(rng.randint(-32, 32) / 64)  # which float32 holds


def _pair(rng: Random, charges: list[str], dimensions: int) -> tuple[list[str], list[str], list[str]]:
    """The lines of a pair function, its results and their annotations."""
    square = "d * d" if dimensions == 1 else "lw.dot(d, d)"
    first, second, third = (weight(rng) for _ in range(3))
    branch = {
        "none": [f"e = {first}"],
        "cut": ["e = 0.0", f"if q < {rng.choice((0.0625, 0.25, 0.5))}:", f"    e = {first}"],
        "species": ["if target.kind == source.kind:", f"    e = {first}", "else:", f"    e = {second}"],
        "field": [f"e = {first}", "if source.w0 > 0.5:", f"    e = e * {third}"],
    }[rng.choice(("none", "none", "none", "cut", "species", "field"))]
    body = ["d = source.position - target.position", f"q = {square}"]
    body += [f"{name} = {value}" for name, value in (("g", "q + soft"), ("x", "1.0 / (1.0 + q)"))
             if re.search(rf"\b{name}\b", "\n".join(branch))]  # fmt: skip
    body += [*branch, f"f = {' * '.join([*rng.sample(charges, rng.choice((0, 1, 1, 2))), 'e'])}"]
    results, annotations = [], []
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        value = rng.choice(("f", "f * f", "f + q", "q", f"{rng.choice(charges)} * q"))
        kind = rng.choice(("lw.f32", "lw.f32", "lw.f32", "vector", *(f"{r}[lw.f32]" for r in REDUCED[:3]), "lw.Count"))
        if kind == "vector":
            value, kind = "f * d", PLACES[dimensions]
        elif kind == "lw.Count":  # of a number that float32 holds: both precisions say the same
            value = f"q < {rng.choice((0.125, 0.25, 0.5))}"
        results.append(value)
        annotations.append(kind)
    return body, results, annotations


def _pairs(seed: int, rng: Random) -> RecordCase:
    return _of_pairs(seed, rng, "pairs", rng.choice((1, 2, 3, 3, 3, 4)))


def _searches(seed: int, rng: Random) -> RecordCase:
    neighbours = rng.choice((2.0, 20.0, 80.0))
    return _of_pairs(seed, rng, "searches", rng.choice((2, 3, 3)), neighbours, rng.random() < 0.3)


def _of_pairs(
    seed: int, rng: Random, family: str, dimensions: int, neighbours: float = 0.0, clustered: bool = False
) -> RecordCase:
    charges = [f"{r}.w{n}" for r in ("target", "source") for n in range(3)]
    body, results, annotations = _pair(rng, charges, dimensions)
    hot = {"position": PLACES[dimensions]} | {f"w{n}": "lw.f32" for n in range(3)} | {"kind": "lw.i32"}
    fields = record_of(rng, named(hot, [*body, *results]), rng.choice((0, 6, 12, 24, 40)))
    head = "@lw.pairwise\ndef kernel(target: Item, source: Item, soft: lw.f32)"
    return RecordCase(
        seed, family, fields, head, tuple(body), tuple(results), tuple(annotations), {"soft": 0.0625}, rng.random() < 0.6,
        neighbours, clustered,
    )  # fmt: skip


def named(fields: dict[str, str], lines: list[str]) -> dict[str, str]:
    """Those fields that lines of a kernel name."""
    return {n: k for n, k in fields.items() if f".{n}" in "\n".join(lines)}


def _elements(seed: int, rng: Random) -> RecordCase:
    vector = rng.choice(("lw.vec2", "lw.vec3"))
    scalars = [f"w{n}" for n in range(rng.choice((2, 4, 8)))]
    used = rng.sample(scalars, rng.randint(1, len(scalars)))
    own, total = f"p.{used[0]}", " + ".join(f"p.{n}" for n in used)
    moves = "p.position += step * p.velocity"
    tables: tuple[str, ...] = ()
    result: str | None = None
    match rng.choice(("stream", "stream", "hot", "gather", "rounds", "told", "branch", "scatter")):
        case "stream":
            body, result = [moves, *(f"p.{n} = 0.5 * p.{n} + step" for n in used)], total
        case "hot":
            body, result = [], f"lw.dot(p.velocity, p.velocity) * {own}"
        case "gather":
            body, result, tables = [f"e = table[p.ident] * ({total})", f"{own} = e"], "lw.exp(-e * e)", ("table",)
        case "rounds":
            rounds = rng.choice((4, 16, 40))
            body, result = [f"x = {own}", f"for k in range({rounds}):", "    x = x * (1.5 - 0.5 * x * x)"], "x + step"
        case "told":
            body = [f"x = {own}", "for k in range(p.rounds):", "    x = 0.5 * x + step * lw.f32(k)", f"{own} = x"]
        case "branch":
            body = [f"x = {total}", "if p.kind == 0:", "    x = lw.exp(-x)", "elif p.kind == 1:", "    x = lw.sqrt(x)"]
            result = "x * step"
        case _:
            body, tables = [f"lw.scatter_add(total, p.ident, {total})", moves], ("total",)
    hot = {"position": vector, "velocity": vector} | dict.fromkeys(scalars, "lw.f32")
    hot |= dict.fromkeys(("ident", "kind", "rounds"), "lw.i32")
    fields = record_of(rng, named(hot, [*body, result or ""]), rng.choice((3, 8, 12, 24, 40)))
    parameters = "".join(f", {n}: lw.Array1[lw.f32]" for n in tables)
    head = f"@lw.elementwise\ndef kernel(p: Item, step: lw.f32{parameters})"
    results, annotations = ((result,), ("lw.f32",)) if result else ((), ())
    return RecordCase(seed, "elements", fields, head, tuple(body), results, annotations, {"step": 0.125}, tables=tables)
