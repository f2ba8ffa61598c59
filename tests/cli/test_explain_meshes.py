"""`lanewise explain` of a product on a mesh, whose devices need not be there."""

from __future__ import annotations

import json

import pytest

from lanewise.sims.lbm import Simulation
from tests.cli.command import Command

ASKED = {
    "boids --bodies 4000": ("agents", ("agents that may come near", "steer", "move")),
    "gravity --bodies 4000": ("bodies", ("sources of gravity", "gravity", "kick_drift", "kick")),
    "gravity --bodies 4000 --method tree --theta 0.8": ("bodies", ("results of gravity", "kick")),
    "lbm --bodies 40000": ("sites", ("ghosts of populations", "trt")),
}


# Texts of CUDA take seconds to compile; they differ from those of one device in little.
@pytest.mark.quick("cuda:0-3-lbm --bodies 40000")
@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("mesh", ["cpu*2", "cuda:0-3"])
def test_the_command_takes_a_mesh_that_need_not_be_there(lanewise: Command, asked: str, mesh: str) -> None:
    arch = () if mesh == "cpu*2" else ("--arch", "sm_90")
    facts = json.loads(lanewise("explain", *asked.split(), "--device", mesh, *arch, "--json").out)["mesh"]
    kind, names = ASKED[asked]
    assert facts["devices"] == (["cpu"] * 2 if mesh == "cpu*2" else ["cuda", "cuda:1", "cuda:2", "cuda:3"])
    said = " ".join(row["name"] for row in facts["table"])
    assert all(name in said for name in names)
    assert facts["bytes_a_step"] > 0
    if "gravity --bodies 4000" == asked:
        assert ("sums of gravity" in said) == (mesh != "cpu*2")  # which GPUs alone share
    assert kind in lanewise("explain", *asked.split(), "--device", mesh, *arch).out


def test_bytes_are_those_of_a_run(lanewise: Command) -> None:
    """Of products whose bytes follow from sizes alone."""
    for parts in (2, 3):
        facts = json.loads(lanewise("explain", "gravity", "--bodies", 131, "--device", f"cpu*{parts}", "--json").out)
        assert facts["mesh"]["bytes_a_step"] == 131 * 16
        shape = (30, 30, 30)
        flow = json.loads(lanewise("explain", "lbm", "--bodies", 27_000, "--device", f"cpu*{parts}", "--json").out)
        said = Simulation(shape=shape, omega=1.0, device=f"cpu*{parts}").explain().mesh
        assert said is not None
        assert flow["mesh"]["bytes_a_step"] == said.nbytes


REFUSED = {
    "waves --device cpu*2": "--device cpu*2 is for boids, gravity and lbm, whose steps divide themselves; of waves wanted",
    "lbm --device cuda:0-15": "has too few layers for cuda:0-15, as parts have at least 8 layers; wanted --bodies 32768, or more",
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
