"""What a branch is the first to bind costs what it costs when the variable has a value before the branch, which nobody
reads.
"""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from lanewise.analysis.instructions import Instructions
from lanewise.analysis.regions import analyse
from lanewise.compiler.pipeline import build_program
from lanewise.explanation.calls import call_subject
from lanewise.explanation.compiled import find_model
from lanewise.models.devices import table_model
from tests.fuzz.texts import executed
from tests.zoo.records import WEIGHTS

FORMS = {
    "two sides": ["if {c}:", "    e = {a}", "else:", "    e = {b}"],
    "three sides": ["if {c}:", "    e = {a}", "elif q < 0.5:", "    e = {b}", "else:", "    e = {d}"],
    "nested": ["if {c}:", "    if q < 0.5:", "        e = {a}", "    else:", "        e = {b}", "else:", "    e = {d}"],
    "one side goes on": ["if {c}:", "    return {d}", "else:", "    e = {a}"],
    "within a loop": ["s = 0.0", "for k in range(5):", "    if {c}:", "        e = {a}", "    else:", "        e = {b}", "    s += e", "e = s"],
}  # fmt: skip
HEAD = """
@lw.record
class Item:
    position: lw.vec3
    kind: lw.i32


@lw.pairwise
def kernel(target: Item, source: Item, soft: lw.f32) -> lw.f32:
    d = source.position - target.position
    q = lw.dot(d, d)
    g = q + soft
"""


def instructions(text: str, device: str) -> Instructions:
    """Of a call over 1,000 records, for a CPU or a GPU that need not be there."""
    with executed(text, "first_bound.py") as names:
        items = names.Item.array(position=np.random.default_rng(1).random((1000, 3)), kind=0)
        model = table_model("sm_90") if device == "cuda" else find_model("cpu", None)
        subject, _, _ = call_subject(names.kernel, (items, items, 0.0625), {}, device, model)
        program = build_program(subject.reference, subject.plan, device, between=False)
        return analyse(program.kernels[0], subject.environment).instructions


def texts(form: str, seed: int) -> tuple[str, str]:
    """The program, and the same with a value before the branch."""
    rng = Random(seed)
    a, b, d = rng.sample(WEIGHTS, 3)
    condition = rng.choice(("target.kind == source.kind", "q < 0.25"))
    body = [line.format(a=a, b=b, d=d, c=condition) for line in FORMS[form]] + ["return e * q"]
    first, second = ("\n".join(f"    {line}" for line in lines) for lines in (body, ["e = 0.0", *body]))
    return HEAD + first + "\n", HEAD + second + "\n"


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", [1, *(pytest.param(s, marks=pytest.mark.slow) for s in range(2, 12))])
def test_values_that_a_branch_binds_first_are_counted(form: str, device: str, seed: int) -> None:
    alone, preceded = (instructions(text, device) for text in texts(form, seed))
    for unit in ("fp32", "special", "conversion"):
        assert alone.unit(unit) == pytest.approx(preceded.unit(unit), rel=0.02), f"{alone}\n{preceded}"


def test_values_of_one_side_that_nobody_reads_cost_nothing() -> None:
    unused = (
        HEAD + "    e = q\n    if q < 0.5:\n        h = lw.exp(g)\n    else:\n        h = lw.sin(g)\n    return e\n"
    )
    without = HEAD + "    e = q\n    return e\n"
    assert instructions(unused, "cpu").unit("fp32") == instructions(without, "cpu").unit("fp32")
