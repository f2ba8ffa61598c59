"""CUDA text: where variables are declared, and that `#line` points at the user's line that a statement came from."""

from __future__ import annotations

import linecache
import re

import pytest

import lanewise as lw
from lanewise.emit.cuda import emit_cuda
from lanewise.emit.declarations import Declarations, kinds_of
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import apart
from lanewise.language.types import BOOL, F32, I32, LocalArray
from lanewise.passes import layout_lowering, thread_mapping
from lanewise.patterns.elements import ELEMENTWISE
from lanewise.planning.plan import Plan
from lanewise.runtime.nvrtc import compile_cubin
from tests.corpus import CASES
from tests.harness import program

X, FLAG, N = ir.Local("x", F32), ir.Local("flag", BOOL), ir.Local("n", I32)
ZERO, ONE = ir.Literal(0, I32), ir.Literal(1, I32)


def body_text(*body: ir.Statement) -> str:
    """The text of a function of x, flag and n with this body, which also has to compile without a warning."""
    parameters = (ir.Parameter("x", F32), ir.Parameter("flag", BOOL), ir.Parameter("n", I32))
    f = ir.Function("f", parameters, (ir.Parameter("result", F32),), body)
    index = ir.Local("$i", I32)
    flag = ir.Assign("$flag", ir.Compare("<", index, ONE))
    apply = ir.Apply(f, (ir.Literal(0.5, F32), ir.Local("$flag", BOOL), index), ("$r",))
    from lanewise.ir.values import value_array

    store = ir.StoreRecord("$result", index, (("value", ir.Local("$r", F32)),))
    loop = ir.Parallel("$i", ir.Local("$count", I32), (flag, apply, store))
    kernel = ir.Kernel(
        "k", ELEMENTWISE, (value_array("$result", F32, written=True),), (), (ir.Parameter("$count", I32),), (loop,)
    )
    text = emit_cuda(layout_lowering.apply(thread_mapping.apply(kernel, 32), vector_loads=True), "")
    assert "warning" not in compile_cubin(text, "k", "sm_90").log
    return text.split("&result)\n{\n")[1].split("\n}\n")[0]


def assign(name: str, value: ir.Expression = X) -> ir.Assign:
    return ir.Assign(name, value)


def returned(name: str) -> ir.Return:
    return ir.Return((ir.Local(name, F32),))


def plus(name: str) -> ir.Expression:
    return ir.Binary("+", ir.Local(name, F32), X, F32)


RETURN = "    result = {};\n    return;"
DECLARATIONS = {
    "once": ((assign("a"), returned("a")), "    const float a = x;\n" + RETURN.format("a")),
    "twice": ((assign("a"), assign("a", plus("a")), returned("a")), "    float a = x;\n    a = a + x;\n" + RETURN.format("a")),
    "in both branches": (
        (ir.If(FLAG, (assign("a"),), (assign("a", plus("x")),)), returned("a")),
        "    float a;\n    if (flag) {\n        a = x;\n    }\n    else {\n        a = x + x;\n    }\n" + RETURN.format("a"),
    ),
    "in the loop only": (
        (assign("s"), ir.For("k", ZERO, N, ONE, (assign("a", plus("s")), assign("s", plus("a")))), returned("s")),
        "    float s = x;\n    for (int k = 0; k < n; ++k) {\n        const float a = s + x;\n        s = a + x;\n    }\n" + RETURN.format("s"),
    ),
    "from one turn to the next": (
        (assign("s"), assign("b"), ir.For("k", ZERO, N, ONE, (assign("s", plus("b")), assign("b", plus("s")))), returned("s")),
        "    float s = x;\n    float b = x;\n    for (int k = 0; k < n; ++k) {\n        s = b + x;\n        b = s + x;\n    }\n" + RETURN.format("s"),
    ),
    "set in some turns": (
        (ir.For("k", ZERO, N, ONE, (ir.If(FLAG, (assign("a"),)), ir.If(FLAG, (returned("a"),)))), ir.Return((X,))),
        "    float a;\n    for (int k = 0; k < n; ++k) {\n        if (flag) {\n            a = x;\n        }\n        if (flag) {\n"
        "            result = a;\n            return;\n        }\n    }\n" + RETURN.format("x"),
    ),
    "apart in two branches": (
        (ir.If(FLAG, (assign("a"), returned("a"))), assign("b"), returned("b")),
        "    if (flag) {\n        const float a = x;\n        result = a;\n        return;\n    }\n    const float b = x;\n" + RETURN.format("b"),
    ),
    "array cleared again": (
        (
            ir.DeclareArray("a", LocalArray(F32, 4)), ir.DeclareArray("a", LocalArray(F32, 4)), ir.SetElement("a", N, X),
            ir.Return((ir.Element("a", ZERO, F32),)),
        ),
        "    float a[4] = {};\n    for (int zero = 0; zero < 4; ++zero) a[zero] = 0;\n    a[n] = x;\n" + RETURN.format("a[0]"),
    ),
    "counting down": (
        (assign("s"), ir.For("k", N, ZERO, ir.Literal(-2, I32), (assign("s", plus("s")),)), returned("s")),
        "    float s = x;\n    for (int k = n; k > 0; k += -2) {\n        s = s + x;\n    }\n" + RETURN.format("s"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DECLARATIONS)
def test_declarations(name):
    body, text = DECLARATIONS[name]
    assert body_text(*body) == text


def test_a_statement_that_stands_in_two_places_is_declared_in_both():
    shared = assign("a")
    use = ir.Return((ir.Local("a", F32),))
    block = apart((ir.If(FLAG, (shared, use), (shared, use)),))
    found = Declarations(block, kinds_of(block), ["x", "flag"])
    for branch in (block[0].then, block[0].otherwise):
        assert found.declares(branch[0], "a")
        assert found.is_constant(branch[0], "a")


# ---------------------------------------------------------------- lines

LINE = re.compile(r'#line (\d+) "(.*)"')


def placed(text: str) -> list[tuple[str, int, str]]:
    """Every line of the text, with the file and line that the compiler takes it for."""
    file, line, result = "", 1, []
    for number, content in enumerate(text.split("\n"), 1):
        if match := LINE.fullmatch(content):
            line, file = int(match[1]), match[2]
            if file.endswith(".cu"):
                assert line == number + 1, "back to the generated text, at its own next line"
            continue
        result.append((file, line, content))
        line += 1
    return result


@pytest.mark.parametrize("c", CASES, ids=lambda c: c.name)
def test_lines_point_at_the_users_source(c):
    (kernel, *_) = program(c, lw.SoAoAS(), Plan(), "cuda").kernels
    source_file = c.kernel.lowered.function.location.file
    checked = 0
    for file, line, content in placed(emit_cuda(kernel, "header")):
        if file != "corpus_kernels.py":
            continue
        source = linecache.getline(source_file, line)
        for target in re.findall(r"(?:^|; |\{ )\s*(?:const )?(?:\w+ )*(\w+)(?:\[.*?\])? = ", content):
            name = target.split("_")[0]
            if re.fullmatch(r"result\d*", name):
                assert "return" in source, (content, source)
            elif name not in ("t", "zero", "stop"):  # not a temporary
                assert re.search(rf"\b{name}", source), (content, source)
            checked += 1
        if content.strip().startswith(("if (", "while (", "for (int")):
            assert (
                re.match(r"\s*(if|elif|while|for|return|\w+ = .* if )", source) or " and " in source or " or " in source
            ), (content, source)
    assert checked or c.name == "order"
