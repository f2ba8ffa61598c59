"""`lanewise explain` of a product on a mesh, whose devices need not be there."""

from __future__ import annotations

import json

import pytest

from tests.cli.command import Command


def test_the_command_takes_a_mesh_that_need_not_be_there(lanewise: Command) -> None:
    run = lanewise("explain", "boids", "--device", "cuda:0-3", "--arch", "sm_90", "--bodies", 4000)
    assert "mesh: 4 parts (cuda + cuda:1 + cuda:2 + cuda:3), 1,000 agents each" in run.out
    assert " on 2, " in run.out
    facts = json.loads(lanewise("explain", "boids", "--device", "cpu*2", "--bodies", 2000, "--json").out)
    assert facts["mesh"]["devices"] == ["cpu", "cpu"]


REFUSED = {
    "gravity --device cpu*2": "--device cpu*2 is for boids, whose steps divide themselves; of gravity wanted cpu or cuda",
    "boids --device cpu*2 --source cpu": "--source cpu is of one device, and --device cpu*2 is a mesh; leave one of them out",
    "boids --device cpu*2 --set think_every=3": "agents that do not think in every step are on one device, found cpu*2",
    "boids --device cuda:0-1 --arch sm_80,sm_90": "--arch sm_80,sm_90 are several, and --device cuda:0-1 is a mesh; name one",
    "boids --device python*2": "unknown device 'python'",
    "boids --device cpu*0": "'cpu*0': a mesh has 1 to 1,024 parts",
}


@pytest.mark.parametrize("asked", REFUSED)
def test_what_is_refused(lanewise: Command, asked: str) -> None:
    run = lanewise("explain", *asked.split())
    assert run.code == 2
    assert REFUSED[asked] in run.err
