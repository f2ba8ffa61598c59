"""Devices of a mesh that are no twins: one with more multiprocessors than the other, and two without peer access."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise import Mesh
from lanewise.explanation import mesh_links
from lanewise.language.target import TARGETS, Machine
from lanewise.runtime import links
from tests.mesh import interpreted_gpu
from tests.mesh.test_calls import bodies, pull, same
from tests.mesh.test_flock_explanations import two

SMALL = interpreted_gpu.NAME
LARGE = f"{SMALL}:1"
PROCESSORS = {SMALL: 1, LARGE: 40}


@pytest.fixture
def unlike(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU of one multiprocessor, and one of 40, which gets other plans."""
    interpreted_gpu.install(monkeypatch)
    monkeypatch.setitem(TARGETS, LARGE, TARGETS[SMALL])
    machine = lambda self: Machine(self.name, PROCESSORS[self.name])  # noqa: E731
    monkeypatch.setattr(interpreted_gpu.InterpretedGpu, "machine", machine)


def plan_and_forces(devices: list[str], n: int) -> tuple[lw.Plan, Any]:
    b: Any = bodies(n, lw.SoA(), Mesh(devices))
    return pull.compile(b, b, softening2=1e-3).plan, pull(b, b, softening2=1e-3).numpy()


@pytest.mark.usefixtures("unlike")
def test_unlike_gpus_run_the_plan_of_the_first_and_have_its_bits() -> None:
    n = 100
    alike = {name: plan_and_forces([name] * 2, n) for name in PROCESSORS}
    assert alike[SMALL][0] != alike[LARGE][0], "both would choose the same plan: nothing is tested"
    for devices in ([SMALL, LARGE], [LARGE, SMALL]):
        plan, found = plan_and_forces(devices, n)
        wanted = alike[devices[0]]
        assert plan == wanted[0]
        same(found, wanted[1])


def test_without_peer_access_explanations_say_that_copies_go_through_the_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Runtime:
        @staticmethod
        def deviceCanAccessPeer(one: int, other: int) -> int:
            assert {one, other} == {0, 1}
            return 0

    class Library:
        class cuda:
            runtime = Runtime

    monkeypatch.setattr(links.cuda, "cupy", lambda: Library)
    assert links.link_between("cuda", "cuda:1") == links.STAGED
    monkeypatch.setattr(mesh_links, "is_here", lambda device: True)
    monkeypatch.setattr(mesh_links, "copy_rate", lambda a, b: 8e9)
    text = str(two("cuda", "cuda:1"))
    assert (
        "  cuda to cuda:1: 3,000,000 bytes per step, through the host, no peer access, 8.0 GB/s (measured now)" in text
    )
    assert "2,000,000  through the host, no peer access, 8.0 GB/s  125 us" in text
    assert np.isfinite(two("cuda", "cuda:1").efficiency[2])
