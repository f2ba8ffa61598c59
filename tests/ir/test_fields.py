"""What the annotations of nodes say of their fields, for every class of nodes."""

from __future__ import annotations

from typing import get_args

import pytest

from lanewise.ir import nodes as ir
from lanewise.ir.roles import ExpressionNode, StatementNode
from lanewise.ir.traverse import blocks, children, declares, loads, stores, writes
from lanewise.ir.verify_shape import shape_problem
from lanewise.language.types import BOOL, F32, I32

N, X = ir.Local("n", I32), ir.Local("x", F32)


def test_every_node_is_of_its_kind():
    assert all(issubclass(kind, ExpressionNode) for kind in get_args(ir.Expression))
    assert all(issubclass(kind, StatementNode) for kind in get_args(ir.Statement))


@pytest.mark.parametrize(
    ("node", "loaded", "stored", "declared", "written"),
    [
        (ir.LoadRecord("a", N, (("m", "a.m"),)), ("a",), (), ("a.m",), ("a.m",)),
        (ir.StoreRecord("a", N, (("m", X),)), (), ("a",), (), ()),
        (ir.LoadElement("a", (N,), "u", more=("v",)), ("a",), (), ("u", "v"), ("u", "v")),
        (ir.ScatterElement("a", (N,), "sum", X), ("a",), ("a",), (), ()),
        (ir.PrefetchElement("a", (N,)), (), (), (), ()),
        (ir.CopyElement("a", (N,), "b", (N,)), ("b",), ("a",), (), ()),
        (ir.Load("a", N, ("u", "", "v")), ("a",), (), ("u", "v"), ("u", "v")),
        (ir.Draw("d", "c", N), ("c",), ("c",), ("d",), ("d",)),
        (ir.AwaitTurn("t", N, N), ("t",), (), (), ()),
        (ir.EndTurn("t", N, N), (), ("t",), (), ()),
        (ir.Rotate((X, N)), (), (), (), ("x", "n")),
        (ir.SetElement("a", N, X), (), (), (), ("a",)),
    ],
    ids=lambda x: type(x).__name__ if isinstance(x, StatementNode) else "",
)
def test_names(node, loaded, stored, declared, written):
    assert (loads(node), stores(node), declares(node), writes(node)) == (loaded, stored, declared, written)


def test_what_may_be_missing_and_what_comes_in_pairs():
    there = ir.Local("there", BOOL)
    assert children(ir.CopyElement("a", (N,), "b", (X,))) == (N, X)
    assert children(ir.CopyElement("a", (N,), "b", (X,), there=there)) == (N, X, there)
    assert children(ir.StoreRecord("a", N, (("m", X), ("q", N)))) == (N, X, N)
    assert blocks(ir.If(there, (ir.Break(),))) == ((ir.Break(),), ())


@pytest.mark.parametrize(
    ("node", "problem"),
    [
        (ir.Least("x", ir.Literal(1.0, F32)), "Least.value cannot be Literal(value=1.0, "),
        (ir.Barrier("grid"), "Barrier.scope cannot be 'grid'"),
        (ir.Assign("x", 1.0), "Assign.value cannot be 1.0"),
        (ir.Return([X]), "Return.values cannot be [Local(name='x', "),
        (ir.While(X, [ir.Break()]), "While.body cannot be [Break()]"),
        (ir.Unary("+", X, F32), "Unary.operator cannot be '+'"),
        (ir.CopyElement("a", (N,), "b", (N,), there=True), "CopyElement.there cannot be True"),
    ],
)
def test_a_field_that_holds_something_else(node, problem):
    assert shape_problem((ir.Break(), node)).startswith(problem)
    assert shape_problem((ir.Break(), N)) == ""
