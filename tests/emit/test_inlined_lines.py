"""Statements of a user's that stand in a kernel itself come with their file and line."""

from __future__ import annotations

import linecache
import re

import numpy as np
import pytest

from lanewise.compiler.pipeline import build_program
from lanewise.launch.executable import generated_texts
from lanewise.planning.plan import NEUTRAL, Plan
from tests.patterns.threadwise_kernels import BY_NAME, CASES, Case

NOTE = re.compile(r"\s*(?:;\s*)?(.*?)  (?://|#) threadwise_kernels\.py:(\d+)$")


def texts(case: Case, plan: Plan, device: str, *, locations: bool = True) -> list[str]:
    given, grid = case.make(np.random.default_rng(1), *case.sizes)
    reference = case.kernel.compile(**given, grid=grid).reference
    return generated_texts(build_program(reference, plan.filled(NEUTRAL), device), device, locations=locations)


def notes(text: str) -> list[tuple[str, int]]:
    """The statements that name a line, each with the line."""
    return [(m[1], int(m[2])) for line in text.splitlines() if (m := NOTE.match(line))]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
@pytest.mark.parametrize(("device", "plan"), [("cuda", Plan(block=64)), ("cpu", Plan())])
def test_lines_are_those_of_the_user(case: Case, device: str, plan: Plan) -> None:
    """What is given a value, or tested, stands in the line that a statement names."""
    file = case.kernel.lowered.function.location.file
    found = [n for text in texts(case, plan, device) for n in notes(text)]
    assert found
    for statement, line in found:
        source = linecache.getline(file, line)
        if statement.startswith(("if ", "for ", "while ", "else")):
            assert re.search(r"\b(if|elif|for|while|and|or)\b", source), (statement, source)
            continue
        name = re.match(
            r"(?:const )?(?:(?:long long|unsigned int|\w+) )?(?:own_)?([a-z]+)\w*(?:\[.*\]|: \w+)? = ", statement
        )
        if name is not None and name[1] not in ("t", "gone"):
            assert re.search(rf"\b{name[1]}", source) or "return" in source, (statement, source)


def test_a_line_is_named_once_for_all_its_copies() -> None:
    """Also behind tiles, whose own statements come from no line of the user's."""
    (text,) = texts(BY_NAME["matmul"], Plan(block=64, rows=2, targets=4, tile=8), "cuda")
    first = next(n for n, line in enumerate(text.splitlines()) if "float s_0_0 = 0.0f;  // " in line)
    following = text.splitlines()[first + 1 : first + 8]
    assert all(" = 0.0f;" in line and "//" not in line for line in following)
    staged = [line for line in text.splitlines() if re.search(r"tile_\w+_array\[.*\] = ", line)]
    assert staged
    assert not any("//" in line for line in staged)


@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_compiled_texts_name_no_line(device: str) -> None:
    """Machine code is found again wherever a function stands."""
    plan = Plan(block=64) if device == "cuda" else Plan()
    with_lines, without = (texts(BY_NAME["smooth"], plan, device, locations=x) for x in (True, False))
    assert "threadwise_kernels.py" not in without[0]
    if device == "cuda":
        assert [re.sub(r"  // threadwise_kernels\.py:\d+", "", t) for t in with_lines] == without
        return
    assert "\n  ; " not in without[0]
    for read, compiled in zip(with_lines, without, strict=True):
        assert [n for n, _ in notes(read)]
        code = re.sub(r"^ *; .*\n", "", read, flags=re.MULTILINE).rstrip()
        assert re.sub(r"^; .*\n", "", compiled, flags=re.MULTILINE).startswith(code)
