"""The pages for users of other libraries: their figures from programs that share nothing with lanewise.

FluidX3D, FLAME GPU 2 and HOOMD-blue cannot be installed on the machines that run these tests. What their pages print is
computed here once more in NumPy. Their own programs run with the modules of tests/peer_calls, which have the calls that
the programs use, as the source of each library declares them, and compute the same physics.
"""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.markdown import Block, blocks

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "docs/coming_from"
CALLS = ROOT / "tests/peer_calls"


def program(page: str, language: str = "python") -> Block:
    (block,) = [b for b in blocks((PAGES / f"{page}.md").read_text(encoding="utf-8")) if b.language == language]
    return block


def shown(page: str) -> str:
    """What the page shows that its lanewise program prints."""
    output = program(page).output
    assert output is not None
    return output


def left_by(page: str, folder: Path) -> dict[str, Any]:
    """The names at the end of the page's lanewise program."""
    path = folder / f"{page}_page.py"
    path.write_text(program(page).text, encoding="utf-8")
    return runpy.run_path(str(path))


def test_lennard_jones_atoms_move_as_in_numpy(tmp_path: Path) -> None:
    """Velocity Verlet over all pairs, nearest images, the potential cut off without a shift: HOOMD's defaults."""
    side, cut, dt = 12.0, 2.5, 0.005
    x = np.stack(np.meshgrid(*[np.arange(8)] * 3), -1).reshape(-1, 3) * 1.5
    v = np.random.default_rng(3).normal(size=x.shape)

    def forces() -> tuple[np.ndarray, float]:
        d = x[:, None] - x[None]
        d -= side * np.round(d / side)
        r2 = np.sum(d**2, -1)
        i, j = np.nonzero((r2 < cut**2) & (r2 > 0))
        r2 = r2[i, j]
        pairs = (48 / r2**7 - 24 / r2**4)[:, None] * d[i, j]
        force = np.stack([np.bincount(i, pairs[:, axis], len(x)) for axis in range(3)], -1)
        return force, float(np.sum(4 / r2**6 - 4 / r2**3) / 2)

    force, potential = forces()
    lines = []
    for steps in 0, 200:
        for _ in range(steps):
            v += force * dt / 2
            x += v * dt
            force, potential = forces()
            v += force * dt / 2
        kinetic = np.sum(v**2) / 2 / len(x)
        lines.append(f"kinetic {kinetic:.3f}, total {kinetic + potential / len(x):.3f}\n")
    assert "".join(lines) == shown("hoomd")
    atoms = left_by("hoomd", tmp_path)["atoms"]
    apart = atoms.position - x
    assert np.abs(apart - side * np.round(apart / side)).max() < 1e-3
    assert np.abs(atoms.velocity - v).max() < 1e-2


def circles(start: np.ndarray, steps: int) -> tuple[np.ndarray, list[float]]:
    """The tutorial's model in float64: every agent moves by the mean force of those nearer than 1."""
    x, drift = start.copy(), []
    for _ in range(steps):
        r2 = np.subtract.outer(x[:, 0], x[:, 0]) ** 2 + np.subtract.outer(x[:, 1], x[:, 1]) ** 2
        i, j = np.nonzero((r2 < 1) & (r2 > 0))
        r = np.sqrt(r2[i, j])
        force = (np.sin(r * 3.141 * -2) * 0.05 / r)[:, None] * (x[j] - x[i])
        moved = np.stack([np.bincount(i, force[:, axis], len(x)) for axis in range(2)], -1)
        moved /= np.maximum(np.bincount(i, minlength=len(x)), 1)[:, None]
        x += moved
        drift.append(float(np.mean(np.sqrt(np.sum(moved**2, -1)))))
    return x, drift


def test_circles_form_as_in_numpy(tmp_path: Path) -> None:
    start = np.random.default_rng(1).random((2048, 2)) * 45
    x, drift = circles(start, 50)
    assert f"mean drift {drift[0]:.4f}, then {drift[-1]:.4f}\n" == shown("flamegpu")
    left = left_by("flamegpu", tmp_path)
    assert np.abs(np.array(left["drift"]) - drift).max() < 1e-5
    assert np.median(np.abs(left["agents"].position - x)) < 1e-4


def test_two_agents_that_are_close_move_apart(tmp_path: Path) -> None:
    """The sign of the force, which the mean drift does not show."""
    left = left_by("flamegpu", tmp_path)
    close, far = ([[0, 0], [0.3, 0]], [[0, 0], [0.7, 0]])
    for at, apart in (close, 1), (far, -1):
        agents = left["Agent"].array(position=at)
        force, count = left["push"](agents, agents)
        assert np.sign(force[:, 0]).tolist() == [-apart, apart]
        assert count.tolist() == [1, 1]


def test_vortices_decay_as_in_numpy(tmp_path: Path) -> None:
    """The equations in the README of FluidX3D: populations less their weights, one relaxation time."""
    n, a, nu, steps = 32, 0.1, 0.02, 500
    k = 2 * np.pi / n
    y, x = k * (np.mgrid[:n, :n] + 0.5)
    u = a * np.stack([np.cos(x) * np.sin(y), -np.sin(x) * np.cos(y)], -1)
    first = np.sum(u**2)
    rho = 1 - 0.75 * a**2 * (np.cos(2 * x) + np.cos(2 * y))
    c = np.array([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1], [1, 1], [-1, -1], [1, -1], [-1, 1]])
    w = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)

    def equilibrium() -> np.ndarray:
        cu = u @ c.T
        less = 4.5 * cu**2 - 1.5 * np.sum(u**2, -1)[..., None] + 3 * cu
        return w * rho[..., None] * less + w * (rho - 1)[..., None]

    f = equilibrium()
    for _ in range(steps):
        f = f + (equilibrium() - f) / (3 * nu + 0.5)
        f = np.stack([np.roll(f[..., i], (c[i, 1], c[i, 0]), (0, 1)) for i in range(9)], -1)
        rho = f.sum(-1) + 1
        u = f @ c / rho[..., None]
    speed = np.sqrt(np.sum(u**2) / first)
    assert f"speed {speed:.4f}, exact {np.exp(-2 * nu * k**2 * steps):.4f}\n" == shown("fluidx3d")
    assert np.abs(left_by("fluidx3d", tmp_path)["flow"].velocity - u).max() < 1e-6


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ not installed")
def test_the_program_of_fluidx3d_compiles_and_sets_up_the_same_flow(tmp_path: Path) -> None:
    source = tmp_path / "setup.cpp"
    main = "int main() { main_setup(); return 0; }"
    source.write_text(f'#include "fluidx3d.hpp"\n{program("fluidx3d", "cpp").text}\n{main}\n', encoding="utf-8")
    options = ["-std=c++17", "-O2", "-Wall", "-Wextra", "-Wno-shadow", "-Werror", f"-I{CALLS}"]
    subprocess.run(["g++", *options, source, "-o", tmp_path / "setup"], check=True)
    printed = subprocess.run([tmp_path / "setup"], capture_output=True, text=True, check=True).stdout
    assert printed == shown("fluidx3d")


@pytest.mark.parametrize("page", ["hoomd", "flamegpu"])
def test_the_programs_of_hoomd_and_flame_gpu_print_the_same(page: str, tmp_path: Path) -> None:
    path = tmp_path / f"{page}_page.py"
    path.write_text(program(page, "py").text, encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(CALLS)}
    done = subprocess.run([sys.executable, path], env=environment, stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout == shown(page)


HELPERS = {"torch", "solar-system-ephemerides"}
"""Of peers.txt: what other libraries there need."""


def test_the_table_says_which_programs_ran_and_with_what_versions() -> None:
    """One row for each page; the versions that ran are those in peers.txt; a page whose program did not run says so."""
    rows = re.findall(r"^\| .* \| \[.*?\]\((\w+)\.md\) \| (.*) \|$", (PAGES / "README.md").read_text("utf-8"), re.M)
    assert sorted(page for page, _ in rows) == sorted(p.stem for p in PAGES.glob("*.md") if p.stem != "README")
    listed = re.findall(r"^([\w-]+)[=>]=(.*)$", (PAGES / "peers.txt").read_text("utf-8"), re.M)
    ran = [tuple(x.split()) for _, said in rows for x in re.findall(r"ran with (.*)", said)]
    assert sorted(ran) == sorted(x for x in listed if x[0] not in HELPERS)
    for page, said in rows:
        text = " ".join((PAGES / f"{page}.md").read_text(encoding="utf-8").split())
        assert ("was not run for this page" in text) == said.startswith("not run"), page
        assert not said.startswith("not run") or said.split()[-1] in text, page  # the version of the source
