"""Campaign "mutants": kernels of the corpus, the examples and the documents, broken. What comes out is an error in its
form, or a kernel.

Allowed: Python's own errors where the text is defined; lanewise's errors, those of kernels with a place inside the
text; or a kernel that is accepted, whose generated texts are then correct Python and, for a share of them, give what
the interpreter gives.
"""

from __future__ import annotations

import ast
import copy
import functools
import io
import signal
import tokenize
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

from llvmlite import binding

import lanewise as lw
from lanewise.emit.cuda import emit_cuda
from lanewise.emit.llvm import emit_llvm
from lanewise.language import types as t
from lanewise.language.record import Record, RecordValue
from lanewise.patterns.elementwise.kernel import Elementwise
from lanewise.patterns.pairwise.kernel import Pairwise
from lanewise.planning.plan import Plan
from lanewise.records.arrays import RecordArray
from lanewise.support.errors import ArgumentError, CompileError, LanewiseError, RecordError
from tests import corpus, harness
from tests.fuzz.campaign import Campaign, Case
from tests.fuzz.exact import forget, library_of_the_cpu, strict_cpu
from tests.fuzz.kernels import CLOSE, LOOSE, differences, draw_layout, draw_traits
from tests.fuzz.programs import write_program
from tests.fuzz.texts import executed
from tests.fuzz.values import values
from tests.markdown import blocks

ROOT = Path(__file__).parents[2]
COMPARED = 0.3  # share of the accepted ones that are run on the CPU
PACKAGE = str(Path(lw.__file__).parent)
ORDINARY = ("values.py", "vectors.py")  # the language as ordinary Python, where NumPy's errors are the user's
KERNELS = ("elementwise", "pairwise", "sitewise")

# ---------------------------------------------------------------- what is broken


@functools.cache
def texts() -> tuple[str, ...]:
    """Each kernel with the records, helpers and numbers that it needs."""
    files = [ROOT / "tests/corpus_kernels.py", *sorted((ROOT / "examples").rglob("*.py"))]
    sources = [p.read_text(encoding="utf-8") for p in files]
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        if page.name == "walkthrough.md":  # shows a kernel without its record, and what was generated of it
            continue
        document = page.read_text(encoding="utf-8")
        if "```python" in document:
            sources.append("\n".join(b.text for b in blocks(document) if b.language == "python"))
    return tuple(text for source in sources for text in _kernels(source))


def _kernels(source: str) -> Iterator[str]:
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return
    known: dict[str, ast.stmt] = {}
    for node in tree.body:
        match node:
            case ast.FunctionDef() | ast.ClassDef() if any(_ours(d) for d in node.decorator_list):
                known[node.name] = node
            case ast.Assign(targets=[ast.Name(id=name)]) if not isinstance(node.value, ast.Call | ast.Subscript):
                known[name] = node
    for node in list(known.values()):
        if isinstance(node, ast.FunctionDef) and any(_ours(d) in KERNELS for d in node.decorator_list):
            yield ast.unparse(ast.Module(_needed(node, known), []))


def _ours(decorator: ast.expr) -> str:
    """`elementwise` of `@lw.elementwise` and `@lw.elementwise(...)`."""
    node = decorator.func if isinstance(decorator, ast.Call) else decorator
    return (
        node.attr
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "lw"
        else ""
    )


def _needed(node: ast.stmt, known: dict[str, ast.stmt]) -> list[ast.stmt]:
    found: dict[str, ast.stmt] = {}

    def visit(n: ast.stmt) -> None:
        for name in sorted({x.id for x in ast.walk(n) if isinstance(x, ast.Name)}):
            if name in known and name not in found and known[name] is not n:
                found[name] = known[name]
                visit(known[name])
        if n not in list(order):
            order.append(n)

    order: list[ast.stmt] = []
    visit(node)
    return order


# ---------------------------------------------------------------- how it is broken

TOKENS = (
    "+ - * / // % ** @ & | ^ ~ << >> < <= > >= == != = += -= *= /= //= %= **= &= |= <<= := -> : , . ; ( ) [ ] { } "
    "if elif else for while in is not and or return break continue pass def class lambda yield await async try except finally raise with as "
    "import from global nonlocal del assert None True False match case type self lw lw.f32 lw.f64 lw.i32 lw.i64 lw.u32 lw.bool lw.vec2 lw.vec3 lw.vec4 "
    "lw.dvec3 lw.ivec2 lw.dot lw.cross lw.length lw.normalize lw.sqrt lw.rsqrt lw.select lw.min lw.max lw.clamp lw.zeros lw.same lw.record "
    "lw.function lw.D2Q9 lw.populations lw.Nearest lw.nothing lw np np.float32 math.pi math.sin abs min max range len sum print int float str "
    "0 1 -1 2 0.5 1e400 1e-400 0x7fffffff 0xffffffff 99999999999999999999 1j 0b1 1_000 'text' b'x' f'{x}' \"\"\"doc\"\"\" ... \\ $ ? ! # \t é 変数 \u200b"
).split(" ")
EXPRESSIONS = (
    "[1, 2]", "{1: 2}", "{1, 2}", "(1, 2)", "()", "[x for x in range(3)]", "(x for x in y)", "lambda x: x", "f'{1}'", "'text'", "None", "...", "1j",
    "(y := 3)", "x[1:2]", "x[0, 1]", "x.y.z", "x()", "lw", "lw.f32", "lw.zeros(lw.f32, 4)", "lw.zeros(lw.f32, 0)", "lw.zeros(lw.vec3, 2)",
    "lw.zeros(lw.i32, 99999)", "lw.f32()", "lw.f32(1, 2)", "lw.vec3(1, 2)", "lw.vec3(1, 2, 3, 4)", "lw.vec2(1, 2).z", "lw.vec3(1).xyzx",
    "lw.select(1, 2, 3)", "lw.dot(1, 2)", "lw.cross(lw.vec2(1), lw.vec2(2))", "lw.sqrt()", "lw.sqrt(x=1)", "lw.sqrt(*y)", "print(1)", "len(x)",
    "math.sin", "math.gamma(1)", "np.array([1])", "np.zeros(3)", "int(1)", "float(2)", "1 / 0", "1 // 0", "1 % 0", "1 << 100", "1 << -1", "2 ** 10000",
    "2 ** -1", "10 ** 400", "-(2 ** 63)", "2 ** 63", "1e400", "-1e-400", "math.inf", "math.nan", "True + True", "not 1", "~1.5", "-True", "1 if 2 else 3",
    "1 < 2 < 3", "x in y", "x is None", "x @ y", "await x", "yield", "*x", "__name__", "__import__", "abs", "abs()", "range(3)", "x if y", "lw.same",
    "lw.same(1, 2)", "lw.D2Q9[0]", "lw.D2Q9", "lw.f32(lw.f32)", "lw.f32('1')", "lw.f32(True)", "lw.bool(0.5)", "lw.u32(-1)", "lw.i32(2 ** 40)", "lw.i32(1e30)",
)  # fmt: skip
STATEMENTS = (
    "pass", "return", "return 1", "return 1, 2", "return None", "break", "continue", "x = 1", "x: int = 1", "x: lw.f32", "x += 1", "x = y = 1", "x, y = 1",
    "x, y = 1, 2", "*x, y = 1, 2", "del x", "assert x", "raise ValueError", "import os", "from os import path", "global x", "nonlocal x",
    "try:\n    pass\nfinally:\n    pass", "with x:\n    pass", "def inner():\n    pass", "class Inner:\n    pass", "for x in y:\n    pass", "for i in range(3):\n    i = 2",
    "for i in range():\n    pass", "for i in range(1, 2, 0):\n    pass", "for i in range(0.5):\n    pass", "for i, j in range(3):\n    pass", "while True:\n    break",
    "while 1:\n    pass", "if 1:\n    pass", "if x:\n    y = 1", "match x:\n    case 1:\n        pass", "x.y = 1", "x[0] = 1", "x.x = 1", "lw.f32 = 1", "print(x)", "1", "'text'",
    "lambda: 1", "yield", "await x", "x = lw.zeros(lw.f32, 3)", "for q in lw.D2Q9:\n    pass", "for i in range(3):\n    pass\nelse:\n    pass", "while 0:\n    pass\nelse:\n    pass",
    "x = 1; x = 1.5", "x = lw.vec2(1); x.x += 1", "if 1: return 1",
)  # fmt: skip
ANNOTATIONS = (
    "lw.f32", "lw.f64", "lw.i32", "lw.i64", "lw.u32", "lw.bool", "lw.vec2", "lw.vec3", "lw.dvec4", "lw.ivec2", "int", "float", "bool", "str", "None", "list", "np.float32",
    "np.ndarray", "'lw.f32'", "'nothing'", "nothing", "lw.nothing", "tuple[lw.f32, lw.f32]", "tuple[lw.f32, ...]", "tuple", "list[lw.f32]", "lw.f32 | None", "1", "()", "lw",
    "lw.populations", "lw.f32()", "...", "lw.record", "tuple[()]", "tuple[lw.vec3]", "type", "object", "lambda: 1",
)  # fmt: skip
FIELDS = (
    "x: lw.f32", "x: int", "x = 1", "x: lw.f32 = 1", "def f(self):\n    pass", "pass", "__init__: lw.f32", "_x: lw.f32", "x: lw.populations", "x: lw.vec2\n    x: lw.vec3",
    "x: 'lw.f32'", "class: lw.f32", "self: lw.f32", "array: lw.i32", "numpy: lw.f32", "data: lw.f32", "layout: lw.f32", "É: lw.f32", "x, y: lw.f32", "x: R", "x: None",
)  # fmt: skip


def mutate(rng: Random, text: str, pool: tuple[str, ...]) -> str:
    """A broken text, in five of six cases one that Python itself can read: what it cannot is not lanewise's
    to refuse.
    """
    readable = rng.random() < 0.85
    for _ in range(8):
        broken = _changed(rng, text, pool)
        if broken != text and (not readable or _parsed(broken) is not None):
            return broken
    return broken


def _changed(rng: Random, text: str, pool: tuple[str, ...]) -> str:
    """One to three changes; about a fifth of them in a record."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        way = rng.choice((_token, _token, _line, _tree, _tree, _tree, _tree, _annotation, _record, _record, _character))
        text = way(rng, text, pool)
    return text


def _token(rng: Random, text: str, pool: tuple[str, ...]) -> str:
    """A token deleted, doubled, exchanged, or replaced."""
    try:
        found = [x for x in tokenize.generate_tokens(io.StringIO(text).readline) if x.string.strip()]
    except (tokenize.TokenError, SyntaxError):
        return _character(rng, text, pool)
    if not found:
        return text
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    token = rng.choice(found)
    begin, end = starts[token.start[0] - 1] + token.start[1], starts[token.end[0] - 1] + token.end[1]
    other = rng.choice(found).string
    new = rng.choice(("", f"{token.string} {token.string}", rng.choice(TOKENS), rng.choice(TOKENS), other, other))
    return text[:begin] + new + text[end:]


def _line(rng: Random, text: str, pool: tuple[str, ...]) -> str:
    lines = text.splitlines()
    if not lines:
        return text
    n, m = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(6):
        case 0:
            del lines[n]
        case 1:
            lines.insert(n, lines[m])
        case 2:
            lines[n], lines[m] = lines[m], lines[n]
        case 3:
            lines[n] = rng.choice(("    ", "  ", "\t")) + lines[n]
        case 4:
            lines[n] = lines[n].removeprefix("    ")
        case _:
            lines[n] += rng.choice(("  # comment", ";", " \\", ":", ",", "  # é", "\x0c", "\r", ")"))
    return "\n".join(lines) + "\n"


def _character(rng: Random, text: str, pool: tuple[str, ...]) -> str:
    place = rng.randrange(len(text) + 1)
    return (
        text[:place]
        + rng.choice("()[]{}:,.=+-*/%&|^~<>!'\"\\#@ \n\t0123456789abcxyz_é変\u200b\x0b")
        + text[place + rng.randrange(2) :]
    )


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


def _tree(rng: Random, text: str, pool: tuple[str, ...]) -> str:
    """An expression, a statement, an operator or a name replaced."""
    tree = _parsed(text)
    functions = [n for n in tree.body if isinstance(n, ast.FunctionDef)] if tree else []
    if tree is None or not functions:
        return _token(rng, text, pool)
    f = rng.choice(functions)
    _change(rng, tree, f, pool)
    try:
        return ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    except (ValueError, AttributeError, TypeError):
        return _token(rng, text, pool)


def _change(rng: Random, tree: ast.Module, f: ast.FunctionDef, pool: tuple[str, ...]) -> None:
    places = [
        (n, name, None)
        for n in ast.walk(f)
        for name, v in ast.iter_fields(n)
        if isinstance(v, ast.expr) and name not in ("annotation", "returns")
    ]
    places += [(n, name, i) for n in ast.walk(f) for name, v in ast.iter_fields(n) if isinstance(v, list) and name != "decorator_list"
               for i, x in enumerate(v) if isinstance(x, ast.expr)]  # fmt: skip
    bodies = [
        v
        for n in ast.walk(f)
        for name, v in ast.iter_fields(n)
        if isinstance(v, list) and v and isinstance(v[0], ast.stmt)
    ]
    match rng.randrange(9):
        case 0 | 1 | 2 if places:
            _put(rng.choice(places), _expression(rng, f))
        case 3 | 4 if bodies:
            block = rng.choice(bodies)
            new = (
                ast.parse(rng.choice(STATEMENTS)).body
                if rng.random() < 0.7
                else [copy.deepcopy(rng.choice(rng.choice(bodies)))]
            )
            place = rng.randrange(len(block) + 1)
            block[place : place + rng.randrange(2)] = new
        case 5 if names := [n for n in ast.walk(f) if isinstance(n, ast.Name)]:
            rng.choice(names).id = (
                rng.choice(names).id
                if rng.random() < 0.7
                else rng.choice(("lw", "abs", "undefined", "range", "np", "math", f.name))
            )
        case 6 if places:
            node, name, i = rng.choice(places)
            old = getattr(node, name) if i is None else getattr(node, name)[i]
            other = ast.parse(
                rng.choice(
                    (
                        "lw.f32(0)",
                        "lw.i32(0)",
                        "lw.sqrt(0)",
                        "lw.vec3(0)",
                        "-0",
                        "not 0",
                        "~0",
                        "0.x",
                        "0[0]",
                        "lw.abs(0)",
                    )
                ).replace("0.x", "a.x"),
                mode="eval",
            ).body
            deep = [
                (n, k, j)
                for n in ast.walk(other)
                for k, v in ast.iter_fields(n)
                for j in ([None] if isinstance(v, ast.expr) else range(len(v)) if isinstance(v, list) else [])
            ]
            if deep:
                _put(rng.choice(deep), old)
            _put((node, name, i), other)
        case 7:
            a = f.args
            match rng.randrange(6):
                case 0 if a.args:
                    del a.args[rng.randrange(len(a.args))]
                case 1 if a.args:
                    a.args.append(copy.deepcopy(rng.choice(a.args)))
                    a.args[-1].arg = rng.choice(("extra", a.args[0].arg, "lw", "é", "result"))
                case 2:
                    a.defaults = [ast.Constant(1)]
                case 3:
                    a.vararg = ast.arg("more")
                case 4 if a.args:
                    a.kwonlyargs, a.kw_defaults = [a.args.pop()], [None]
                case _:
                    rng.shuffle(a.args)
        case _:
            operators = [n for n in ast.walk(f) if isinstance(n, ast.BinOp | ast.AugAssign)]
            if operators:
                rng.choice(operators).op = rng.choice(
                    (
                        ast.Add,
                        ast.Sub,
                        ast.Mult,
                        ast.Div,
                        ast.FloorDiv,
                        ast.Mod,
                        ast.Pow,
                        ast.MatMult,
                        ast.BitAnd,
                        ast.BitOr,
                        ast.LShift,
                        ast.RShift,
                    )
                )()


def _put(place: tuple[Any, str, int | None], new: ast.expr) -> None:
    node, name, i = place
    if i is None:
        setattr(node, name, new)
    else:
        getattr(node, name)[i] = new


def _expression(rng: Random, f: ast.FunctionDef) -> ast.expr:
    if rng.random() < 0.5:
        return copy.deepcopy(rng.choice([n for n in ast.walk(f) if isinstance(n, ast.expr)] or [ast.Constant(1)]))
    parsed = _parsed(rng.choice(EXPRESSIONS))
    return parsed.body[0].value if parsed and isinstance(parsed.body[0], ast.Expr) else ast.Constant(None)


def _annotation(rng: Random, text: str, pool: tuple[str, ...]) -> str:
    tree = _parsed(text)
    if tree is None:
        return _token(rng, text, pool)
    new = ast.parse(rng.choice(ANNOTATIONS), mode="eval").body
    places = [(n, "annotation") for n in ast.walk(tree) if isinstance(n, ast.arg | ast.AnnAssign)] + [
        (n, "returns") for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)
    ]
    if places:
        setattr(*rng.choice(places), new)
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _record(rng: Random, text: str, pool: tuple[str, ...]) -> str:
    """A field of a record changed, added or taken away; or its decorator."""
    lines = text.splitlines()
    heads = [n for n, line in enumerate(lines) if line.startswith("class ")]
    if not heads:
        return _tree(rng, text, pool)
    head = rng.choice(heads)
    match rng.randrange(5):
        case 0:
            lines.insert(head + 1, "    " + rng.choice(FIELDS))
        case 1:
            lines[head + 1 : head + 2] = ["    " + rng.choice(FIELDS)]
        case 2 if head + 1 < len(lines) and ":" in lines[head + 1]:
            lines[head + 1] = lines[head + 1].split(":")[0] + ": " + rng.choice(ANNOTATIONS)
        case 3:
            lines[head - 1] = rng.choice(
                ("@lw.record()", "@lw.record(1)", "", "@lw.function", "@lw.record\n@lw.record", "@lw.elementwise")
            )
        case _:
            lines[head] = rng.choice(
                ("class R:", "class Body(object):", "class Body(int):", "class lw:", "class Body[T]:")
            )
    return "\n".join(lines) + "\n"


# ---------------------------------------------------------------- what came of it


class TooLong(BaseException):
    """The interpreter took longer than a mutant is worth: it may run for ever."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def body(case: Case) -> str:
    rng, pool = case.random, texts()
    whole = rng.choice(pool) if rng.random() < 0.8 else write_program(rng, draw_traits(rng)).text
    text = mutate(rng, whole, pool)
    case.shown, file = text, f"fuzz_mutants_{case.number}.py"
    try:
        with executed(text, file) as names:
            kernel = _last_kernel(names)
            if kernel is None:
                return "no kernel left"
            kernel.lowered  # noqa: B018 - this compiles
            case.counts["accepted"] += 1
            return _accepted(case, kernel)
    except (CompileError, RecordError, ArgumentError) as error:
        _check_form(error, file, text)
        return type(error).__name__
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        if isinstance(error, LanewiseError) or (
            frames and frames[-1].filename.startswith(PACKAGE) and not _own(error, frames)
        ):
            raise
        if isinstance(error, AssertionError):
            raise
        case.counts[f"Python's {type(error).__name__}"] += 1
        return "Python's own error"


def _own(error: Exception, frames: traceback.StackSummary) -> bool:
    """A name that the package does not have, or a function of the language that the broken text calls in ordinary
    Python.
    """
    asked = isinstance(error, AttributeError) and frames[-1].name in ("__getattr__", "find")
    return asked or all(Path(f.filename).name in ORDINARY for f in frames if f.filename.startswith(PACKAGE))


def _check_form(error: LanewiseError, file: str, text: str) -> None:
    """An error says something, and one of a kernel where in the text."""
    if not str(error).strip():
        raise AssertionError(f"{type(error).__name__} without a message") from error
    if isinstance(error, CompileError):
        where, lines = error.location, text.split("\n")
        if where.file != file or not 1 <= where.line <= len(lines):
            raise AssertionError(f"no place in the text: {where} of {len(lines)} lines: {error}") from error
        if not 0 <= where.column <= len(lines[where.line - 1]):
            raise AssertionError(f"no place in the line: column {where.column}: {error}") from error


def _last_kernel(names: SimpleNamespace) -> Any:
    found = [x for x in vars(names).values() if isinstance(x, Elementwise | Pairwise) or type(x).__name__ == "Sitewise"]
    return found[-1] if found else None


def _accepted(case: Case, kernel: Any) -> str:
    """What is accepted can be written for both devices, and means one thing."""
    if not isinstance(kernel, Elementwise | Pairwise) or getattr(kernel, "search", None) is not None:
        return "accepted"
    given = _input(case.random, kernel)
    if given is None:
        return "accepted"
    layout = draw_layout(case.random, [f.name for f in given.case.records[0]] if given.case.records else ["x"])
    for kind, emit in (("cpu", emit_llvm), ("cuda", emit_cuda)):
        program = harness.program(given.case, layout, Plan(), kind)
        for k in program.kernels:
            written = emit(k, "fuzz", locations=False)
            if kind == "cpu":
                binding.parse_assembly(written).verify()
    if case.random.random() > COMPARED:
        return "accepted"
    try:
        with at_most(2.0):
            reference = harness.run_public(given, layout, "python")
    except TooLong:
        return "accepted, too long to run"
    except lw.VerificationError as error:
        if "outside a local array" in str(error):
            return "accepted, undefined"
        raise
    except ArgumentError:
        return "accepted, and refuses its arguments"
    compared(given, layout, reference)
    case.counts["compared"] += 1
    return "accepted and equal"


def compared(given: harness.Input, layout: lw.Layout, reference: Any) -> None:
    """CPU and interpreter, as far as rounding allows."""
    tolerance = LOOSE if given.case.pairwise else CLOSE
    if not differences(harness.run_public(given, layout, "cpu"), reference, tolerance):
        return
    forget(given.case.kernel)
    with library_of_the_cpu(), strict_cpu():
        reference = harness.run_public(given, layout, "python")
        found = harness.run_public(given, layout, "cpu")
    if wrong := differences(found, reference, tolerance if given.case.pairwise else None):
        raise AssertionError(f"CPU and interpreter differ, also without contraction: {wrong}")


def _input(rng: Random, kernel: Any) -> harness.Input | None:
    """Small ordinary values for the parameters of a kernel; None where the harness has no place for them."""
    kinds = kernel.signature.parameters
    records = {n: k for n, k in kinds.items() if isinstance(k, Record)}
    pairwise = isinstance(kernel, Pairwise)
    if len(records) != (2 if pairwise else 1) or list(kinds)[: len(records)] != list(records):
        return None
    drawn = [{f.name: values(rng, f.type, n, 0.1) for f in k} for k, n in zip(records.values(), (5, 4), strict=False)]
    if pairwise and len({id(k) for k in records.values()}) == 1 and rng.random() < 0.5:
        drawn = drawn[:1]
    given, fills = list(drawn), iter(drawn)
    rest = {n: k for n, k in kinds.items() if n not in records}
    uniforms = {n: values(rng, k, 1, 0.1)[0] for n, k in rest.items()}
    uniforms = {n: x if isinstance(rest[n], t.Vector) else x.item() for n, x in uniforms.items()}
    case = corpus.Case(
        "mutant", kernel, tuple(SimpleRecord(k) for k in records.values()), lambda rng, n: next(fills), lambda *a, **k: (), uniforms
    )  # fmt: skip
    return harness.Input(case, 5, 4 if len(given) == 2 else None)


class SimpleRecord:
    """A record by its description, as `harness` asks for it."""

    def __init__(self, record: Record) -> None:
        self.__record__ = record

    def array(self, *, layout: Any = None, device: Any = None, **fields: Any) -> RecordArray:
        return RecordArray.from_fields(self.__record__, fields, layout=layout, device=device, python_class=RecordValue)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.__record__)


MUTANTS = Campaign("mutants", body, limit=60.0, renew=1500)
