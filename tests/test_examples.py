"""Every example runs, at a small size, and prints the thing that it is there to show."""

from __future__ import annotations

import ast
import re
import runpy
import sys
from pathlib import Path

import pytest

from lanewise.launch import tuned_plans as store

EXAMPLES = Path(__file__).parent.parent / "examples"

# Arguments that make it small, and what its output holds.
CASES: dict[str, tuple[list[str], list[str]]] = {
    "star_cluster": (["256", "20"], ["256 Body", "t = 0.20   mean radius"]),
    "layouts": (["100"], ["AoS: ", "SoA: ", "AoAS(16): ", "SoAoAS(position | velocity charge): ", "AoSoA(8): "]),
    "own_force": (["3", "20"], ["step   20: temperature"]),
    "debugging": (
        [],
        ["compiled: [nan nan nan]", "divide by zero", "vec3(1.0, 0.0, 0.0)", "wanted: a value of type vec3"],
    ),
    "reductions": (["10000"], ["kinetic energy 1.5", "again the same bits: True"]),
    "figure_eight": (["{tmp}/eight.png"], ["t = 6.325914", "picture: "]),
    "galaxy_collision": (
        ["300", "10", "{tmp}/film.gif", "{tmp}/end.png"],
        ["t =  0.50   energy error", "e-0", "movie: ", "picture: "],
    ),
    "explain_a_kernel": (
        ["512"],
        ["only on request: 1 / sqrt(x)", "chosen by default", "with rsqrt='hardware': predicted"],
    ),
    "tune_a_kernel": (
        ["256", "2"],
        ["the fastest plans", "self_term='drop': without the test", "calls use the tuned plan: True"],
    ),
    "choose_a_layout": (
        [],
        ["no change worth making: SoA is", "SoAoAS(position mass | age | velocity) instead of SoA", "-> SoAoAS"],
    ),
    "auto_layout": (
        ["2000"],
        ["as auto (SoA so far)", "SoA for density x 1, drift x 1", "that layout given: True", "was bound to it"],
    ),
    "reciprocity": (
        [],
        [
            "gravity: the two directions of a pair share 12 of 16",
            "notice: the two directions",
            "on cpu: it is the threads",
        ],
    ),
    "cavity": (["32", "6000"], ["after 6,000 steps", "u at y = 0.7344: +0.00", "force on the lid -0.06"]),
    "vortex_street": (
        ["8", "{tmp}/street.png"],
        ["5 x 8 sites at x = 46..50", "Strouhal number 0.1", "periods", "picture: "],
    ),
    "shan_chen": (["{tmp}/drops.png", "48", "1500"], ["1,500 steps: densities 0.1", " and 1.9", "picture: "]),
    "rayleigh_benard": (["{tmp}/warm.png", "24", "2500"], ["2,500 steps, temperatures -0.", "picture: "]),
    "shear_thinning": (["16"], ["n = 0.5", "largest deviation 1.", "a Newtonian profile would deviate by 1.5e-01"]),
    "sphere_drag": (["16", "3.5"], ["sphere of 160 sites", "of the driving force 0.999", "exact 2.275: -1."]),
    "murmuration": (
        ["60", "0.4", "{tmp}/starlings.gif", "{tmp}/starlings.png"],
        ["the 7 nearest within 12", "t =   0.3: polarisation 0.", "nearest flockmate", "movie: "],
    ),
    "own_loop_leapfrog": (
        ["24", "400"],
        ["gravity     pairwise     all    compiled", "relative error of the energy", "the bits of plain calls: True"],
    ),
    "own_loop_grains": (
        ["200", "1000"],
        ["n % 100 == 0", "1,000 steps; the mean velocity swings by 0.1", "exact 0.1590"],
    ),
    "own_loop_reaction": (["48", "1200"], ["step  1200:", "of the dish is covered", "the bits of plain calls: True"]),
    "birth_and_death": (["300", "30"], ["step   30:    ", " sheep, ", " wolves have lived"]),
    "vicsek": (
        ["300", "120"],
        ["2-D, 300 particles, noise 0.10: order 0.9", "3-D, 300 particles, noise 6.28: order 0.0"],
    ),
    "fit_a_potential": (["300"], ["step   0: depth 0.5000, width 1.0000", "step 300: depth 1.", "largest force"]),
    "interop": ([], ["view: shape (4, 3)", "[50. 50. 50.]", "Point(position=vec3(-1.0, 2.0, 2.5)"]),
}


def test_every_example_is_run() -> None:
    assert {p.stem for p in EXAMPLES.glob("*.py")} == set(CASES)


# Other flows, flocks, loops and layouts are quick.
LONG = (
    "tune_a_kernel",
    "shan_chen",
    "rayleigh_benard",
    "galaxy_collision",
    "layouts",
    "murmuration",
    "own_loop_grains",
    "reductions",
    "shear_thinning",
    "sphere_drag",
    "vortex_street",
)


@pytest.mark.parametrize("name", [pytest.param(c, marks=[pytest.mark.slow] * (c in LONG)) for c in CASES])
def test_example(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments, telling = CASES[name]
    path = EXAMPLES / f"{name}.py"
    monkeypatch.setattr(store, "store_directory", lambda: tmp_path / "tuned")  # other tests expect untuned calls
    monkeypatch.setattr(sys, "argv", [str(path), *(a.replace("{tmp}", str(tmp_path)) for a in arguments)])
    runpy.run_path(str(path), run_name="__main__")
    printed = capsys.readouterr().out
    for text in telling:
        assert text in printed
    for picture in (a.format(tmp=tmp_path) for a in arguments if a.endswith(".png")):
        assert Path(picture).read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda p: p.stem)
def test_an_example_that_is_imported_runs_nothing(path: Path) -> None:
    """As `lanewise explain path:name` does: only definitions, and declarations of walls, stand before the guard."""
    *before, last = ast.parse(path.read_text(encoding="utf-8")).body
    assert isinstance(last, ast.If)
    assert ast.unparse(last.test) == "__name__ == '__main__'"
    calls = [n.value for n in before if isinstance(n, ast.Expr) and not isinstance(n.value, ast.Constant)]
    assert [c for c in map(ast.unparse, calls) if not re.match(r"\w+\.wall\(", c)] == []
    assert not [n for n in before if isinstance(n, (ast.For, ast.While, ast.With))]
