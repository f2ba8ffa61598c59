"""What every pattern gives: a random program as text, and how to see it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from random import Random

from lanewise.language import types as t
from tests.fuzz.patterns import prelude
from tests.fuzz.programs import NAMES, Traits, Writer

DTYPES = {k: k.dtype.str[1:] if k != t.BOOL else "?" for k in (*t.SCALARS, *t.STORED)}


@dataclass(frozen=True)
class Pattern:
    """A pattern by name, and what writes a program of it: everything behind the prelude."""

    name: str
    write: Callable[[Random], str]


def whole(text: str) -> str:
    """A program as a file of its own, which runs."""
    return prelude.TEXT + "\n\n" + text


def traits(rng: Random, *, plain: float = 0.6, vectors: float = 0.4, pattern: str = "") -> Traits:
    """Exact programs of one pattern."""
    return Traits(
        pattern, plain=rng.random() < plain, library=rng.random() < 0.25, vectors=rng.random() < vectors, exact=True, constant=0.1, stored=rng.choice((0.0, 0.0, 0.3)),
    )  # fmt: skip


def seed(rng: Random) -> int:
    """Of the values of an array, as a small number that a text shows."""
    return rng.randrange(10_000)


def array(rng: Random, kind: t.ValueType, shape: str) -> str:
    """Text for random values: `shape` is text for a tuple."""
    scalar = t.scalar_of(kind)
    if isinstance(kind, t.Vector):
        shape = f"(*{shape}, {kind.length})"
    wild = f", {rng.choice((0.1, 0.4, 1.0))}" if not scalar.is_float and scalar != t.BOOL and rng.random() < 0.4 else ""
    return f"drawn({seed(rng)}, {DTYPES[scalar]!r}, {shape}{wild})"


def scatter(rng: Random, w: Writer, name: str, at: str, kind: t.Scalar, operation: str, number: str) -> str:
    """A scatter; half of the sums of floats in order, of numbers that do not round."""
    if operation == "add" and kind.is_float and rng.random() < 0.5:
        return f"lw.scatter_add({name}, {at}, {w.tamed(kind, number)}, exact=False)"
    return f"lw.scatter_{operation}({name}, {at}, {number})"


def value(rng: Random, kind: t.ValueType) -> str:
    """Text for one value for all: a number of its type, or a tuple of plain ones."""
    scalar = t.scalar_of(kind)
    name = {t.F32: "float32", t.F64: "float64", t.I32: "int32", t.I64: "int64", t.U32: "uint32", t.BOOL: "bool_"}[
        scalar
    ]

    def one() -> str:
        if scalar == t.BOOL:
            return rng.choice(("True", "False"))
        return (
            str(rng.randrange(-16, 17) / 4) if scalar.is_float else str(rng.randrange(0 if scalar == t.U32 else -9, 10))
        )

    return f"({', '.join(one() for _ in range(kind.length))})" if isinstance(kind, t.Vector) else f"np.{name}({one()})"


def spelled(results: tuple[t.ValueType, ...]) -> str:
    """The annotation of results."""
    names = [NAMES[k] for k in results]
    return f" -> tuple[{', '.join(names)}]" if len(names) > 1 else f" -> {names[0]}" if names else ""


def layout(rng: Random, fields: Iterable[str]) -> str:
    """Text for a random layout of records with these fields; None for the default."""
    names = list(fields)
    rng.shuffle(names)
    cut = rng.randint(1, len(names))
    groups = [g for g in (names[:cut], names[cut:]) if g]
    width = rng.choice((2, 4, 8, 16))
    return rng.choice(
        ("None", "lw.AoS()", "lw.SoA()", "lw.AoAS()", "lw.SoAoAS()", f"lw.SoAoAS({groups})", f"lw.AoSoA({width})")
    )


def record(rng: Random, fields: Mapping[str, t.ValueType], count: str) -> str:
    """Text for the values of the fields of so many records."""
    return ", ".join(f"{n}={array(rng, k, f'({count},)')}" for n, k in fields.items())
