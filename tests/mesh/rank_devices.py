"""The mesh of programs that tests start several times."""

from __future__ import annotations

import os

import lanewise as lw

DEVICE = "MESH_DEVICE"  # a variable: "cuda" is a GPU for each process


def of_all_ranks() -> lw.Mesh:
    """Over CPUs, where ranks have different numbers of parts, or over GPUs."""
    if os.environ.get(DEVICE) == "cuda":
        return lw.Mesh.over_ranks()
    return lw.Mesh.over_ranks("cpu", parts=1 + (os.environ.get("PMI_RANK") == "1"))
