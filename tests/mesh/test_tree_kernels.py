"""Kernels of trees on a mesh as GPUs get them: compiled without a GPU, and as cheap as those of one device."""

from __future__ import annotations

from typing import Any

import pytest

import lanewise as lw
from lanewise import Mesh
from lanewise.launch.executable import build_executable
from lanewise.patterns.mesh_launch import MeshLaunch
from tests.mesh import interpreted_gpu
from tests.mesh.test_trees import bodies, pull

GPU = interpreted_gpu.NAME
TREES = [
    lw.Tree(order=3),
    lw.Tree(accuracy=1e-3),
    lw.Tree(order=3, method="dual"),
    lw.Tree(order=2, method="dual", leaf=16),
]
pytestmark = pytest.mark.filterwarnings("ignore::lanewise.FarFieldWarning")


def registers(program: Any) -> int:
    made = build_executable(program, "cuda", arch="sm_90")
    assert all(c.resources.spill_stores == 0 for c in made.cubins)
    return max(c.resources.registers for c in made.cubins)


@pytest.mark.slow_cases(
    "tree: theta 0.6, order 3, leaves of 32", "tree: theta 0.6, order 3, leaves of 32, pairs of groups"
)
@pytest.mark.parametrize("tree", TREES, ids=lw.Tree.describe)
def test_a_walk_for_some_groups_takes_the_registers_of_one_for_all(
    tree: lw.Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    interpreted_gpu.install(monkeypatch)
    kernel = lw.pairwise(pull.python).using(tree)
    one, many = bodies(40, GPU), bodies(40, Mesh(GPU, parts=2))
    alone, launch = kernel.compile(one, one, 1e-3), kernel.bind(many, many, 1e-3).launch
    assert isinstance(launch, MeshLaunch)
    walk, home = (r.calls[0].compiled.executable.program for r in launch.rounds)
    assert registers(walk) <= registers(alone.executable.program) + 4
    assert registers(home) <= 40
    sampled = [p for p in launch.rounds[0].calls[0].compiled.tasks.parts if p.sequence.name.endswith("_sample_walk")]
    assert len(sampled) == (tree.accuracy is not None)
    for part in sampled:
        registers(part.part.program)  # pyright: ignore
