"""The functions by their names, and the texts of those that a module calls."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from lanewise.runtime.mathematics import (
    errors,
    exponentials,
    inverses,
    logarithms,
    powers,
    roots,
    trigonometry,
)
from lanewise.runtime.mathematics.reduction import reduction
from lanewise.runtime.mathematics.registers import Code, Kind, Rare, Register

FUNCTIONS: dict[str, Callable[..., Register]] = {
    "exp": exponentials.exp,
    "exp2": exponentials.exp2,
    "expm1": exponentials.expm1,
    "log": logarithms.log,
    "log2": logarithms.log2,
    "log10": logarithms.log10,
    "log1p": logarithms.log1p,
    "pow": powers.pow_,
    "sin": trigonometry.sin,
    "cos": trigonometry.cos,
    "tan": trigonometry.tan,
    "asin": inverses.asin,
    "acos": inverses.acos,
    "atan": inverses.atan,
    "atan2": inverses.atan2,
    "sinh": exponentials.sinh,
    "cosh": exponentials.cosh,
    "tanh": exponentials.tanh,
    "erf": errors.erf,
    "erfc": errors.erfc,
    "cbrt": roots.cbrt,
    "hypot": roots.hypot,
}
WITH_TWO = frozenset(("pow", "atan2", "hypot"))
# how many numbers registers have for which LLVM may take a function in a loop
_COUNTS = {"f32": (4, 8, 16), "f64": (2, 4, 8)}
_KINDS: dict[str, Kind] = {"f32": "float", "f64": "double"}
_ATTRIBUTES = "nounwind willreturn nosync nofree memory(none)"
_CALLED = re.compile(r"call [^@\n]*@lw\.(\w+)\.(?:v(\d+))?(f32|f64)\(")
_NEIGHBOURS = re.compile(
    r"^  (%\S+) = (?:tail )?call [^@\n]*?(<(\d+) x (float|double)>) "
    r"@lw\.(\w+)\.v\3(f32|f64)\((.*)\)(?: #\d+)?\n"
    r"  (%\S+) = (?:tail )?call [^@\n]*?\2 @lw\.\5\.v\3\6\((.*)\)(?: #\d+)?$",
    re.M,
)
_DECLARED = re.compile(r"^declare [^@\n]*@lw\.\w+\.(?:v\d+)?(?:f32|f64)\(.*\n", re.M)
_KEPT = re.compile(r"^@llvm\.compiler\.used = .*\n", re.M)
Called = tuple[str, int, str]  # name, how many numbers, the letters of their type


def declaration(name: str, count: int, letters: str) -> str:
    """As a text declares a function that it calls; count 0: of numbers."""
    t = Code(count).type(_KINDS[letters])
    listed = ", ".join([t] * (2 if name in WITH_TWO else 1))
    return f"declare {t} @{_full(name, count, letters)}({listed}) {_ATTRIBUTES}"


def _full(name: str, count: int, letters: str) -> str:
    return f"lw.{name}.{f'v{count}' if count else ''}{letters}"


def called(module: str) -> list[Called]:
    """The functions that a text calls, each once."""
    found = ((m[1], int(m[2] or 0), m[3]) for m in _CALLED.finditer(module))
    return list(dict.fromkeys(found))


def with_registers(module: str, functions: Iterable[Called]) -> str:
    """A text that says of functions of numbers which ones of registers do the same.

    Those are kept until LLVM has had the choice.
    """
    declared, kept = list[str](), list[str]()
    for name, _, letters in dict.fromkeys((n, 0, k) for n, c, k in functions if not c):
        two = "v" * (2 if name in WITH_TWO else 1)
        scalar = _full(name, 0, letters)
        registers = [_full(name, count, letters) for count in _COUNTS[letters]]
        variants = ",".join(
            f"_ZGV_LLVM_N{count}{two}_{scalar}({full})"
            for count, full in zip(_COUNTS[letters], registers, strict=True)
        )
        plain = declaration(name, 0, letters)
        assert plain in module, f"{scalar} is called and not declared"
        module = module.replace(plain, f'{plain} "vector-function-abi-variant"="{variants}"')
        declared += [
            d for c in _COUNTS[letters] if (d := declaration(name, c, letters)) not in module
        ]
        kept += [f"ptr @{full}" for full in registers]
    if not kept:
        return module
    listed = ", ".join(kept)
    used = f"@llvm.compiler.used = appending global [{len(kept)} x ptr] [{listed}]"
    used += ', section "llvm.metadata"'
    return "\n".join([module, *declared, used, ""])


def side_by_side(module: str) -> str:
    """A text in which two neighbouring calls of a function of registers are one, of a register of
    twice as many numbers.

    A function ends with a branch, beyond which LLVM moves nothing: this way the instructions of
    one half are done where those of the other wait for each other.
    """
    made = itertools.count(1)

    def joined(found: re.Match[str]) -> str:
        first, vector, lanes, kind, name, letters, given, second, also = found.groups()
        n = int(lanes)
        apart = re.search(rf"{re.escape(first)}(?![\w.])", also) is None
        if not apart or n * (32 if kind == "float" else 64) > 512:
            return found[0]
        both, wide = f"%side.by.side.{next(made)}", f"<{2 * n} x {kind}>"
        pairs = zip(given.split(f"{vector} ")[1:], also.split(f"{vector} ")[1:], strict=True)
        lines, listed = list[str](), list[str]()
        for place, (a, b) in enumerate(pairs):
            listed.append(f"{wide} {both}.{place}")
            one, other = (f"{vector} {x.removesuffix(', ')}" for x in (a, b))
            lines.append(f"{both}.{place} = shufflevector {one}, {other}, {_places(0, 2 * n)}")
        called_ = f"@{_full(name, 2 * n, letters)}({', '.join(listed)})"
        lines.append(f"{both} = call {wide} {called_}")
        for half, begin in ((first, 0), (second, n)):
            lines.append(
                f"{half} = shufflevector {wide} {both}, {wide} {both}, {_places(begin, n)}"
            )
        return "\n".join(f"  {line}" for line in lines)

    return _NEIGHBOURS.sub(joined, module)


def _places(begin: int, number: int) -> str:
    order = ", ".join(f"i32 {n}" for n in range(begin, begin + number))
    return f"<{number} x i32> <{order}>"


def with_functions(module: str, *, scales: bool) -> str:
    """A text with the functions that it calls, to be put where they are called.

    scales: whether the processor scales registers by powers of two, as AVX-512 does.
    """
    module = _KEPT.sub("", module)
    if scales:  # AVX-512 has twice as many registers as others
        module = side_by_side(module)
    functions = called(module)
    parts = dict[str, None]()
    for name, count, letters in functions:
        parts |= dict.fromkeys(_definition(name, count, letters, scales))
    intrinsics = [p for p in parts if p.startswith("declare ")]
    module = _DECLARED.sub("", module)
    intrinsics = [
        d for d in intrinsics if f" {d[d.index('@') : d.index('(')]}(" not in _heads(module)
    ]
    return "\n".join([module, *intrinsics, *(p for p in parts if not p.startswith("declare "))])


def _heads(module: str) -> str:
    return "\n".join(line for line in module.splitlines() if line.startswith("declare "))


@cache
def _definition(name: str, count: int, letters: str, scales: bool) -> tuple[str, ...]:
    code, kind = Code(count, scales), _KINDS[letters]
    names = ("%x", "%y") if name in WITH_TWO else ("%x",)
    made: Any = FUNCTIONS[name](*(Register(code, kind, n) for n in names))
    t = code.type(kind)
    head = f"define internal {t} @{_full(name, count, letters)}"
    listed = ", ".join(f"{t} {n}" for n in names)
    code.body.end(f"ret {made}")
    text = f"{head}({listed}) alwaysinline {_ATTRIBUTES} {{\n{code.body.text()}\n}}\n"
    extra = [
        part
        for called_for, rare in code.calls.items()
        for part in (
            reduction(count, kind)
            if rare is None
            else _rare(called_for, rare, Code(count, scales), kind, names)
        )
    ]
    declared = [line for part in extra for line in part.splitlines() if line.startswith("declare ")]
    plain = ["\n".join(x for x in p.splitlines() if not x.startswith("declare ")) for p in extra]
    return (*sorted(code.body.needs), *declared, *plain, text)


def _rare(name: str, rare: Rare, code: Code, kind: Kind, names: tuple[str, ...]) -> tuple[str, ...]:
    """A function that few numbers need, which is called; and what it declares."""
    t = code.type(kind)
    made = rare(*(Register(code, kind, n) for n in names))
    whole = code.body.give(f"insertvalue {{ {t} }} poison, {made}, 0")
    code.body.end(f"ret {{ {t} }} {whole}")
    listed = ", ".join(f"{t} {n}" for n in names)
    head = f"define internal {{ {t} }} @lw.{name}.{code.letter(kind)}({listed})"
    text = f"{head} noinline cold {_ATTRIBUTES} {{\n{code.body.text()}\n}}\n"
    more = reduction(code.count, kind) if code.calls else ()
    return (*sorted(code.body.needs), *more, text)
