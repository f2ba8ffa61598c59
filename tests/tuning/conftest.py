"""Every test of tuning has a store of its own."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _in_a_store_of_its_own(own_store: Path) -> None:
    """The fixture of all tests, requested by each of these."""
