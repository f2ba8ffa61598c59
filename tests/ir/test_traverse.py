from __future__ import annotations

from lanewise.ir import nodes as ir
from lanewise.ir.printer import print_block, print_expression
from lanewise.ir.traverse import (
    apart,
    blocks,
    children,
    expressions,
    flat_map,
    reads,
    rename,
    rewrite,
    rewrite_block,
    rewrite_statement,
    statements,
    subexpressions,
    writes,
)  # fmt: skip
from lanewise.language.types import BOOL, F32, I32, LocalArray

X, N, FLAG = ir.Local("x", F32), ir.Local("n", I32), ir.Local("flag", BOOL)
ONE = ir.Literal(1, I32)
EVERY_EXPRESSION = ir.Select(
    ir.Logical("and", ir.Compare("<", N, ONE), ir.Unary("not", FLAG, BOOL)),
    ir.Binary("*", ir.Cast(N, F32), ir.Element("a", ir.Builtin("thread", I32), F32), F32),
    ir.Call("sqrt", (X,), F32),
    F32,
)
F = ir.Function(
    "f",
    (ir.Parameter("p", F32, True), ir.Parameter("q", I32)),
    (ir.Parameter("r", F32),),
    (ir.Return((ir.Local("p", F32),)),),
)
EVERY_STATEMENT = (
    ir.DeclareArray("a", LocalArray(F32, 2)),
    ir.Assign("x", EVERY_EXPRESSION),
    ir.SetElement("a", N, X),
    ir.If(FLAG, (ir.Assign("y", X),), (ir.Assign("y", X),)),
    ir.For("k", ONE, N, ONE, (ir.While(FLAG, (ir.Break(), ir.Continue())),)),
    ir.Apply(F, (X, N), ("z",)),
    ir.Parallel("i", N, (ir.LoadRecord("s", N, (("m", "s.m"),)), ir.StoreRecord("s", N, (("m", X),)), ir.Barrier())),
    ir.Load("b", N, ("u", "", "v")),
    ir.Store("b", N, (X, X)),
    ir.Return((X,)),
)


def test_subexpressions_come_parents_first():
    texts = [print_expression(e) for e in subexpressions(EVERY_EXPRESSION)]
    assert texts == [
        "f32(n) * a[@thread] if n < 1 and not flag else sqrt(x)", "n < 1 and not flag", "n < 1", "n", "1", "not flag", "flag", "f32(n) * a[@thread]",
        "f32(n)", "n", "a[@thread]", "@thread", "sqrt(x)", "x",
    ]  # fmt: skip
    assert all(isinstance(c, ir.Expression) for e in subexpressions(EVERY_EXPRESSION) for c in children(e))


def test_reads_names_variables_and_arrays():
    assert list(reads(EVERY_EXPRESSION)) == ["n", "flag", "n", "a", "x"]


def test_rewrite_changes_leaves_before_their_parents():
    seen = []

    def change(e):
        seen.append(type(e).__name__)
        return ir.Literal(2, I32) if e == ONE else e

    assert print_expression(rewrite(EVERY_EXPRESSION, change)).endswith("if n < 2 and not flag else sqrt(x)")
    assert seen[-1] == "Select"
    assert seen.index("Local") < seen.index("Compare") < seen.index("Logical")
    assert rewrite(EVERY_EXPRESSION, lambda e: e) == EVERY_EXPRESSION


def test_writes_of_every_statement():
    assert [writes(s) for s in EVERY_STATEMENT] == [
        ("a",),
        ("x",),
        ("a",),
        (),
        ("k",),
        ("x", "z"),
        ("i",),
        ("u", "v"),
        (),
        (),
    ]
    assert [writes(s) for s in statements(EVERY_STATEMENT) if isinstance(s, ir.LoadRecord)] == [("s.m",)]


def test_statements_and_their_parts():
    kinds = [type(s).__name__ for s in statements(EVERY_STATEMENT)]
    assert kinds == [
        "DeclareArray", "Assign", "SetElement", "If", "Assign", "Assign", "For", "While", "Break", "Continue", "Apply", "Parallel", "LoadRecord", "StoreRecord",
        "Barrier", "Load", "Store", "Return",
    ]  # fmt: skip
    assert [len(expressions(s)) for s in statements(EVERY_STATEMENT)] == [
        0,
        1,
        2,
        1,
        1,
        1,
        3,
        1,
        0,
        0,
        2,
        1,
        1,
        2,
        0,
        1,
        3,
        1,
    ]
    assert [len(blocks(s)) for s in EVERY_STATEMENT] == [0, 0, 0, 2, 1, 0, 1, 0, 0, 0]


def test_rebuilding_without_a_change_changes_nothing():
    assert flat_map(EVERY_STATEMENT, lambda s: (s,)) == EVERY_STATEMENT
    assert rewrite_block(EVERY_STATEMENT, lambda e: e) == EVERY_STATEMENT
    assert tuple(rewrite_statement(s, lambda e: e, lambda b: b) for s in EVERY_STATEMENT) == EVERY_STATEMENT


def test_what_nothing_changes_in_stays_one_object():
    assert flat_map(EVERY_STATEMENT, lambda s: (s,)) is EVERY_STATEMENT
    assert rewrite_block(EVERY_STATEMENT, lambda e: e) is EVERY_STATEMENT
    assert rename(EVERY_STATEMENT, {"nobody": "else"}) is EVERY_STATEMENT
    assert rewrite(EVERY_EXPRESSION, lambda e: e) is EVERY_EXPRESSION
    assert all(rewrite_statement(s, lambda e: e, lambda b: b) is s for s in EVERY_STATEMENT)


def test_statements_apart_are_objects_of_their_own():
    twice = (*EVERY_STATEMENT, *EVERY_STATEMENT)
    done = apart(twice)
    assert done == twice
    found = [id(s) for s in statements(done)]
    assert len(found) == len(set(found)) == 2 * len(list(statements(EVERY_STATEMENT)))
    assert apart(done) is done


def test_flat_map_drops_and_repeats_nested_statements_first():
    order = []

    def change(s):
        order.append(type(s).__name__)
        match s:
            case ir.Break():
                return ()
            case ir.Continue():
                return (s, s)
            case _:
                return (s,)

    (loop,) = [s for s in flat_map(EVERY_STATEMENT, change) if isinstance(s, ir.For)]
    assert print_block(loop.body) == "  while flag:\n    continue\n    continue"
    assert order.index("Break") < order.index("While") < order.index("For")


def test_rename_reaches_every_place(golden):
    names = {n: f"new_{n}" for n in ("a", "x", "n", "flag", "k", "i", "y", "z", "s.m", "u", "v")}
    golden("rename", print_block(rename(EVERY_STATEMENT, names)))
