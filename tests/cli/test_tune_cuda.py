"""`lanewise tune` of the products on a GPU, and the runs that use what it found."""

from __future__ import annotations

from pathlib import Path

import pytest

from lanewise.launch import tuned_plans as store
from tests.cli.command import Command

pytestmark = pytest.mark.cuda


@pytest.mark.parametrize(
    "product", ["boids --bodies 2000 --set world=30", "lbm --case karman --bodies 20000", "waves --bodies 2000"]
)
def test_a_product_is_tuned(lanewise: Command, product: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "store_directory", lambda: tmp_path / "tuned")
    outcome = lanewise("tune", *product.split(), "--device", "cuda", "--seconds", 6, "--json")
    assert outcome.code == 0
    found = outcome.last_json
    assert found["factor"] >= 1
    assert found["tried"] >= 2
    # NVRTC may fuse other products with sums when threads have several sites: such a plan is refused, and never the
    # best.
    refused = [c for c in found["candidates"] if c["status"] == "wrong"]
    assert all("other bits than the default plan's" in c["reason"] for c in refused)
    assert found["seconds"] in [c["seconds"] for c in found["candidates"] if c["status"] == "measured"]


def test_a_flock_on_a_gpu_flies_as_it_was_tuned(
    lanewise: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "store_directory", lambda: tmp_path / "tuned")
    lanewise("tune", "boids", "--bodies", 2000, "--device", "cuda", "--seconds", 6, "--json")
    run = lanewise("boids", "run", "--agents", 2000, "--device", "cuda", "--steps", 5, "--quiet", "--json").last_json
    assert run["search_reason"].startswith("measured: ")
