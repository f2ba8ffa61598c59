"""Names: lanewise's own can never be the user's, and functions of one name are told apart."""

from __future__ import annotations

import pytest

from lanewise.ir import nodes as ir
from lanewise.ir.functions import functions, map_functions, with_distinct_functions
from lanewise.ir.names import copy_of, count_of, identifier, is_own, numbered, original, own, owner, partial_of
from lanewise.language.types import F32, I32
from lanewise.patterns.elements import ELEMENTWISE


def test_own_names_are_no_identifiers():
    for name in ("i", "sum.x", "result"):
        assert is_own(own(name))
        assert not own(name).isidentifier()
    assert (count_of("source"), partial_of("$result"), partial_of("x")) == (
        "$source.count",
        "$partial.result",
        "$partial.x",
    )


def test_copies():
    assert numbered("source.mass", 2) == "source.mass#2"
    assert (original("source.mass#2"), copy_of("source.mass#2"), owner("source.mass#2")) == (
        "source.mass",
        "2",
        "source",
    )
    assert (original("$i"), copy_of("$i"), owner("dt#0")) == ("$i", "", "dt")


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("source.position.x#1", "source_position_x_1"), ("$sum.x", "sum_x"), ("$partial.result", "partial_result"), ("α", "u3b1"),
        ("__x", "v__x"), ("_X", "v_X"), ("_x", "_x"), ("$helper.$helper.a", "helper_helper_a"),
    ],
)  # fmt: skip
def test_identifiers(name, wanted):
    assert identifier(name) == wanted
    assert identifier(name).isidentifier()
    assert identifier(name).isascii()


def function(name, value, *calls):
    applied = tuple(ir.Apply(c, (), (f"r{n}",)) for n, c in enumerate(calls))
    return ir.Function(name, (), (ir.Parameter("result", F32),), (*applied, ir.Return((ir.Literal(value, F32),))))


def kernel(*called):
    body = tuple(ir.Apply(f, (), (f"$r{n}",)) for n, f in enumerate(called))
    return ir.Kernel(
        "k", ELEMENTWISE, (), (), (ir.Parameter("$n", I32),), (ir.Parallel("$i", ir.Local("$n", I32), body),)
    )


def test_functions_of_one_name_are_numbered():
    helper, other, second = function("f", 1.0), function("f", 2.0), function("f_2", 3.0)
    k = with_distinct_functions(kernel(function("f", 4.0, helper, other, second, helper)))
    values = {f.name: f.body[-1].values[0].value for f in functions(k.body)}
    assert values == {"f_2": 1.0, "f_3": 2.0, "f_2_2": 3.0, "f": 4.0}
    (top,) = k.body[0].body
    assert [s.function.name for s in top.function.body if isinstance(s, ir.Apply)] == ["f_2", "f_3", "f_2_2", "f_2"]


def test_equal_functions_are_one():
    k = kernel(function("g", 0.0, function("f", 1.0), function("f", 1.0)))
    assert with_distinct_functions(k) == k


def test_functions_come_before_their_users():
    deep = function("deep", 1.0)
    assert [f.name for f in functions(kernel(function("top", 0.0, function("middle", 0.0, deep), deep)).body)] == [
        "deep",
        "middle",
        "top",
    ]


def test_map_functions_changes_each_once_and_drops_arguments():
    helper = ir.Function("h", (ir.Parameter("a", F32), ir.Parameter("b", F32)), (), ())
    top = ir.Function(
        "t", (ir.Parameter("x", F32),), (), (ir.Apply(helper, (ir.Local("x", F32), ir.Literal(1.0, F32)), ()),)
    )
    one = ir.Literal(2.0, F32)
    loop = ir.Parallel("$i", ir.Local("$n", I32), (ir.Apply(top, (one,), ()), ir.Apply(top, (one,), ())))
    seen = []

    def change(f):
        seen.append(f.name)
        return ir.Function(f.name, f.parameters[:1], f.results, f.body)

    k = map_functions(ir.Kernel("k", ELEMENTWISE, (), (), (ir.Parameter("$n", I32),), (loop,)), change)
    assert seen == ["h", "t"]
    (inner,) = k.body[0].body[0].function.body
    assert [a.name for a in inner.arguments] == ["x"]
