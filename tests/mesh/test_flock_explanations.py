"""What explanations say of a flock on a mesh: its bytes are those that a run copies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lanewise.cli.products import compiled_on_mesh, divided_over
from lanewise.explanation import mesh_links
from lanewise.explanation.mesh_scaling import DividedStep, RowsTime
from lanewise.explanation.mesh_steps import MeshStep, explain_mesh
from lanewise.launch.sent import Sent
from lanewise.runtime.exchange import Moves
from lanewise.runtime.links import NVLINK
from lanewise.runtime.mesh import OF_PROCESS
from lanewise.sims.boids import Flock, explain
from lanewise.sims.boids.division import ALL, NEAR, ORDER
from lanewise.sims.boids.mesh_steering import LISTED
from lanewise.sims.gravity import explain as explained_gravity

RESULTS = Path(__file__).parents[2] / "bench" / "results"
FLOCKS: dict[str, dict[str, Any]] = {
    "open": {"boundary": "open", "radius": 4.0, "search": "static-grid"},
    "sphere": {"radius": 4.0, "search": "static-grid"},
    "records": {"radius": 4.0, "search": "static-grid", "layout": "aos"},
    "some nearest in float64": {"semantics": "thesis", "radius": 4.0, "precision": "f64", "search": "static-grid"},
    "periodic": {"boundary": "periodic", "radius": 3.0, "world": 80.0, "search": "static-grid"},
    "along a curve": {"search": "dynamic-grid"},
    "all pairs": {"search": "all-pairs"},
}


def flock(place: str, **chosen: Any) -> Flock:
    return Flock(device=place, **{"agents": 3000, "world": 60.0, "start": "world", "seed": 3, **chosen})


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Bytes of all copies between parts."""
    found: list[int] = []
    run = Moves.__call__

    def counted(self: Moves) -> None:
        found.append(self.nbytes)
        run(self)

    monkeypatch.setattr(Moves, "__call__", counted)
    return found


@pytest.mark.slow_cases("some nearest in float64", "records", "open", "sphere", "periodic")
@pytest.mark.parametrize("kind", FLOCKS)
def test_bytes_are_those_that_a_run_copies(kind: str, copied: list[int]) -> None:
    for parts in (2, 3):
        f = flock(f"cpu*{parts}", **FLOCKS[kind])
        said = f.explain()
        assert said.mesh is not None
        sent = {s.name: s.total(said.mesh.devices) for s in said.mesh.step.sent}
        copied.clear()
        f.run(LISTED)
        steps = [n for n in copied if n in (sent.get(NEAR), sent.get(ALL))]
        order = [n for n in copied if n not in steps]
        if NEAR in sent:  # once more, before calls are bound; and the marks of cells
            assert len(steps) == LISTED + 1
            assert sum(order) >= sent[ORDER]
        else:
            assert len(steps) == LISTED
            assert sum(order) == sent.get(ORDER, 0)
        assert said.mesh.nbytes == sum(sent.values()) - sent.get(ORDER, 0) * 31 / 32


@pytest.mark.slow
@pytest.mark.parametrize(("agents", "column"), [(2**20, 5), (2**21, 3)], ids=["strong", "weak"])
def test_predictions_are_near_what_two_gpus_measured(agents: int, column: int) -> None:
    """Of bench/results/mesh_cuda.md: 2^20 agents on each of two, and on both together."""
    text = (RESULTS / "mesh_cuda.md").read_text().partition("Flocks again")[2]
    row = next(line for line in text.splitlines() if line.startswith("| 1,048,576 |"))
    measured = float(row.split("|")[1 + column].strip(" %")) / 100
    world = 200.0 * (agents / 2**17) ** (1 / 3)
    _, shown = explain.divided("cuda:0,1", "cuda", agents, "f32", None, {"world": world})
    said = divided_over("cuda:0,1", shown, compiled_on_mesh(shown, "cuda", "sm_90"))
    assert said.efficiency[2] == pytest.approx(measured, abs=0.05)
    assert "wait for the host" in str(said)


@pytest.mark.slow
@pytest.mark.parametrize("bodies", [2**18, 2**20])
def test_predictions_of_gravity_are_near_what_two_gpus_measured(bodies: int) -> None:
    text = (RESULTS / "mesh_cuda.md").read_text().partition("Direct gravity and lattices again")[2]
    row = next(line for line in text.splitlines() if line.startswith(f"| {bodies:,} |")).split("|")
    _, shown = explained_gravity.divided("cuda:0,1", "cuda", bodies, "f32", None, {})
    said = divided_over("cuda:0,1", shown, compiled_on_mesh(shown, "cuda", "sm_90"))
    # of twice a part: there, a part took 6 % longer than one GPU, with 12 targets in place of 10
    assert said.efficiency[2] == pytest.approx(float(row[6].strip(" %")) / 100, abs=0.05)
    force = next(r.seconds for r in said.table if r.name == "gravity")
    assert force == pytest.approx(float(row[5]) / 1e3, rel=0.1)


def test_more_rows_than_a_plan_counts_are_not_predicted() -> None:
    """Of as many bodies a part, four parts have more pairs of tiles than 32 bits count."""
    _, shown = explained_gravity.divided("cuda:0,1", "cuda", 22_000_000, "f32", None, {})
    said = divided_over("cuda:0,1", shown, compiled_on_mesh(shown, "cuda", "sm_90"))
    assert "weak none (this plan cannot count 44,000,000 rows)" in str(said)
    assert sorted(said.efficiency) == [2, 4, 8]
    assert said.weak is not None
    assert sorted(said.weak.found) == [2]


def test_one_device_has_no_mesh() -> None:
    said = flock("cpu").explain()
    assert said.mesh is None
    assert "mesh" not in said.json()
    assert "move" in str(said)


def test_a_flock_on_a_mesh_says_what_its_parts_bring() -> None:
    said = flock("cpu*3", **FLOCKS["open"]).explain()
    text = str(said)
    assert "mesh: 3 parts (3 x cpu), 1,000 agents each\n" in text
    assert "\n  bring agents that may come near  in every step " in text
    assert "\n  bring agents for their order     once in 32 steps  336,000  memory of the host, " in text
    assert "bytes per step, memory of the host, " in text
    assert "\n  hidden behind computation: nothing: copies wait for the step before" in text
    assert (
        "\n  strong: 3,000 agents in all, weak: 1,000 per part; of one device with all of them, which runs one" in text
    )
    facts = json.loads(json.dumps(said.json()))["mesh"]
    assert facts["rows"] == [1000] * 3
    assert facts["links"][0]["known"] == "measured now"
    for kind in ("efficiency", "weak_efficiency"):
        assert set(facts[kind]) == {"2", "4", "8"}
        assert 1 > facts[kind]["2"] > facts[kind]["8"] > 0
    assert facts["lost"]["8"]["rows of others"] > 0.1
    assert sum(row["share"] for row in facts["table"]) == pytest.approx(1)
    unknown = str(flock("cpu*2", search="all-pairs").explain())
    assert "predicted efficiency" in unknown


# ------------------------------------------------------------ the model


def halves(parts: int) -> DividedStep:
    """A thousand rows, of which each part gets ten of each other one, and in every other step all."""
    own = (1000 // parts,) * parts
    pairs = [(p, q) for p in range(parts) for q in range(parts) if p != q]
    near, all_of = Sent("near", dict.fromkeys(pairs, 10**6)), Sent("all", dict.fromkeys(pairs, 4 * 10**6), 2)
    return DividedStep(own, tuple(n + 10 * (parts - 1) for n in own), (near, all_of))


def grown(parts: int) -> DividedStep | str:
    return "there is no room" if parts > 4 else halves(parts)


TIMES = [RowsTime("look", 1000, 1e-3, 0.0, near=True), RowsTime("move", 1000, 1e-3, 1e-4)]


def two(*devices: str) -> MeshStep:
    return explain_mesh("two", devices, "rows", halves, TIMES, grown)


def test_efficiency_on_gpus_that_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mesh_links, "is_here", lambda device: True)
    monkeypatch.setattr(mesh_links, "link_between", lambda a, b: NVLINK)
    monkeypatch.setattr(mesh_links, "copy_rate", lambda a, b: {"cuda": 2e10, "cuda:1": 3e10}[a])
    said = two("cuda", "cuda:1")
    assert said.nbytes == 6e6
    assert str(said).splitlines() == [
        "mesh: 2 parts (two), 500 rows each",
        "              when                 bytes  over                 time  share",
        "  bring near  in every step    2,000,000  NVLink, 20.0 GB/s   50 us     4%",
        "  bring all   once in 2 steps  8,000,000  NVLink, 20.0 GB/s  100 us     8%",
        "  look        in every step                                  510 us    42%",
        "  move        in every step                                  550 us    45%",
        "  cuda to cuda:1: 3,000,000 bytes per step, NVLink, 20.0 GB/s (measured now)",
        "  cuda:1 to cuda: 3,000,000 bytes per step, NVLink, 30.0 GB/s (measured now)",
        "  hidden behind computation: nothing: copies wait for the step before, and the step waits for them",
        "  predicted efficiency of 2 GPUs: strong 83% (copies 12%, launches 4%, rows of others 1%), weak 83% (copies 12%, "
        "launches 4%, rows of others 1%)",
        "  predicted efficiency of 4 GPUs: strong 47% (copies 43%, launches 7%, rows of others 3%), weak 47% (copies 43%, "
        "launches 7%, rows of others 3%)",
        "  predicted efficiency of 8 GPUs: strong 17% (copies 72%, launches 6%, rows of others 5%), weak none (there is no "
        "room)",
        "  strong: 1,000 rows in all, weak: 500 per part; of one with all of them, times their number",
        "  by kernels and copies alone",
    ]
    for parts, share in said.efficiency.items():
        rows = 1000 / parts
        own = 1e-3 * (rows + 10 * (parts - 1)) / 1000 + 1e-4 + 9e-4 * rows / 1000
        assert share == pytest.approx(2e-3 / (parts * (own + 3e6 * (parts - 1) / 2e10)))


def test_what_is_lost_and_the_efficiency_are_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mesh_links, "is_here", lambda device: False)
    for devices in (("cuda", "cuda:1"), ("cpu", "cpu")):
        said = two(*devices)
        for scaling in (said.strong, said.weak):
            assert scaling is not None
            for e in scaling.found.values():
                assert e.share + sum(share for _, share in e.lost) == pytest.approx(1, abs=0.02)


def test_links_of_gpus_that_are_not_there_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mesh_links, "is_here", lambda device: False)
    text = str(two("cuda", "cuda:1"))
    assert (
        " and 1 more: 6,000,000 bytes per step together, unknown link, rate unknown (not in this machine)\n"
    ) in text
    assert "unknown link, 350.0 GB/s assumed" in text
    assert text.endswith("by kernels and copies alone, with 350 GB/s where a rate is unknown")


def test_processes_are_told_apart() -> None:
    text = str(two(*(f"cpu{OF_PROCESS}{n}" for n in range(2))))
    assert "cpu of process 0 to cpu of process 1 and 1 more: " in text
    assert " together, MPI, through memory of the host, rate unknown (not measured)" in text
    assert "predicted efficiency of 2 processes: strong " in text
    assert text.endswith("by kernels and copies alone, with 5 GB/s where a rate is unknown")


def test_parts_on_one_device_have_shared_rows_once() -> None:
    sent = Sent("all", {(p, q): 10 for p in range(3) for q in range(3)}, shared=True)
    assert sent.total(("cuda",) * 3) == 30
    devices = ("cuda", "cuda:1", "cuda")
    assert sorted(sent.between(devices)) == sorted((a, b, 10) for a in devices for b in ("cuda", "cuda:1"))
