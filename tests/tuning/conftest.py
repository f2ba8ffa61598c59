"""A store of its own for every test; compiled kernels stay in the cache that all tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

from lanewise.tuning import store


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tuned"
    monkeypatch.setattr(store, "store_directory", lambda: folder)
    monkeypatch.delenv(store.SWITCH, raising=False)
    return folder
