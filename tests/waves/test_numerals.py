"""Numbers in messages: enough digits to tell what is refused from what is wanted, and none that rounding left behind."""

from __future__ import annotations

import ast
import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise.sims.waves
from lanewise.sims.waves.ranges import RANGES, check_setting, check_values
from lanewise.support.errors import InputError
from lanewise.support.numerals import numeral, numerals, time_text

SOURCES = Path(lanewise.sims.waves.__file__).parent
floats = st.floats(-1e300, 1e300)


@given(floats, st.integers(1, 40), st.lists(floats, max_size=3))
def test_different_numbers_have_different_texts_in_the_same_order(
    number: float, steps: int, others: list[float]
) -> None:
    near = number
    for _ in range(steps):
        near = math.nextafter(near, math.inf)
    values = [number, near, *others]
    texts = numerals(*values)
    for a, x in zip(values, texts, strict=True):
        assert float(x) == pytest.approx(a, rel=1e-11)
        for b, y in zip(values, texts, strict=True):
            if a != b:
                assert x != y
            assert (float(x) < float(y)) == (a < b)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.1, "0.1"), (0.1 + 0.2, "0.3"), (731.27967, "731.27967"), (1369015218.25, "1369015218.25"), (np.float32(0.1), "0.1"), (-0.0, "-0"),
        (1e6, "1000000"), (1e300, "1e+300"), (np.int64(7), "7"), (math.nan, "nan"),
    ],
)  # fmt: skip
def test_a_number_as_a_person_writes_it(number: float, text: str) -> None:
    assert numeral(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 ns"), (3.14159, "3.14 s"), (4321.0, "4,321 s"), (0.99, "990 ms"), (1.5e-6, "1.5 us"), (2.4e-7, "240 ns"),
        (9.9998e-7, "1 us"), (0.99951, "1 s"), (3.39e-11, "0.0339 ns"),
    ],
)  # fmt: skip
def test_a_time_has_three_digits_and_a_unit(seconds: float, text: str) -> None:
    assert time_text(seconds) == text


@given(st.floats(-13, 7).map(lambda power: 10.0**power))
def test_a_time_is_read_as_what_it_was(seconds: float) -> None:
    """No power of ten stands before a unit."""
    value, unit = time_text(seconds).split()
    assert "e" not in value
    assert float(value.replace(",", "")) * {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[unit] == pytest.approx(
        seconds, rel=5.1e-3
    )
    assert float(value.replace(",", "")) < 1000 or unit == "s"


def outside(low: float, high: float) -> list[float]:
    """Numbers just beyond both ends, and far beyond."""
    shares = (1e-12, 1e-9, 1e-7, 1e-5)
    beyond = [*(high + s * abs(high) for s in shares), math.nextafter(float(high), math.inf)]
    below = [*(low - s * max(abs(low), 1e-3) for s in shares), math.nextafter(float(low), -math.inf)]
    return [v for v in (*beyond, *below, 1e301, -1e301) if not low <= v <= high]


@pytest.mark.parametrize("name", RANGES)
def test_a_refused_number_never_reads_like_an_accepted_one(name: str) -> None:
    wanted = RANGES[name]

    def in_an_array(name: str, value: float) -> None:
        check_values("template", name, np.array([value]))

    for value in outside(wanted.low, wanted.high):
        for check in (check_setting, in_an_array):
            with pytest.raises(InputError) as error:
                check(name, value)
            found = re.fullmatch(r".* is (\S+); wanted (?:above )?(\S+?),? (?:at most|to) (\S+).*", str(error.value))
            assert found is not None, error.value
            number, low, high = map(float, found.groups())
            assert number < low if value < wanted.low else number > high, error.value


def _specs(path: Path) -> list[str]:
    """Formats of numbers in a file that have a fixed number of digits, whatever stands beside them."""
    tree = ast.parse(path.read_text())
    specs = [
        (n.lineno, "".join(str(v.value) for v in n.format_spec.values if isinstance(v, ast.Constant)))
        for n in ast.walk(tree)
        if isinstance(n, ast.FormattedValue) and isinstance(n.format_spec, ast.JoinedStr)
    ]
    return [f"{path.name}:{line}: {spec}" for line, spec in specs if re.fullmatch(r"g|\.(9|\d\d)g", spec)]


def test_every_message_of_waves_has_its_numbers_from_one_place() -> None:
    files = [p for p in SOURCES.rglob("*.py") if "view" not in p.parts]
    assert len(files) > 40
    assert not [s for p in files for s in _specs(p)]
