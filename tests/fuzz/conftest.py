"""At the end of a run: what the campaigns did together."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fuzz.summary import lines


def pytest_terminal_summary(terminalreporter: Any) -> None:
    reports = [r for kind in ("passed", "failed") for r in terminalreporter.getreports(kind)]
    found = [
        json.loads(value) for r in reports if r.when == "call" for name, value in r.user_properties if name == "fuzz"
    ]
    if found:
        terminalreporter.section("fuzzing")
        for line in lines(found):
            terminalreporter.write_line(line)


@pytest.fixture
def record(record_property: Any) -> Any:
    """Where a campaign leaves its counts for the summary; also from the processes of pytest-xdist."""
    return record_property
