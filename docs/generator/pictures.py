"""The small pictures of the page of examples: `python -m docs.generator.pictures [NAME ...]` runs
the examples, and commands of the products, on the CPU and writes docs/pictures/examples and
docs/pictures/products.
"""

from __future__ import annotations

import contextlib
import io
import os
import runpy
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from PIL import Image

from docs.generator import drawings
from docs.generator.scenes import SCENES

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs/pictures"
EXAMPLES = ROOT / "examples"
SIZE = (400, 250)
LARGEST = 40_000
"""Bytes of a picture."""

ARGUMENTS: dict[str, list[str]] = {
    "birth_and_death": ["2000", "60"],
    "cavity": ["64", "12000"],
    "figure_eight": ["{out}"],
    "galaxy_collision": ["6000", "220", "{folder}/film.gif", "{out}"],
    "layouts": ["1000"],
    "murmuration": ["1500", "20", "{folder}/starlings.gif", "{out}"],
    "own_force": ["6", "200"],
    "own_loop_grains": ["600", "2000"],
    "own_loop_leapfrog": ["500", "400"],
    "own_loop_reaction": ["160", "5000"],
    "rayleigh_benard": ["{out}"],
    "shan_chen": ["{out}", "96", "2000"],
    "shear_thinning": ["24"],
    "sphere_drag": ["24", "5.5"],
    "star_cluster": ["1500", "150"],
    "tune_a_kernel": ["2048", "20"],
    "vicsek": ["300", "120"],
    "vortex_street": ["12", "{out}"],
}
"""Of examples that do not run with their own defaults for a picture. {out}: it draws it itself."""


def names() -> list[str]:
    """The examples, by their file names."""
    return sorted(p.stem for p in EXAMPLES.glob("*.py"))


def picture_of(name: str) -> Image.Image:
    """An example, run: what it draws, a drawing of what it holds, or what it prints."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.png"
        words = [a.format(out=out, folder=folder) for a in ARGUMENTS.get(name, [])]
        text, held = run(EXAMPLES / f"{name}.py", words, Path(folder))
        if out.exists():
            return drawings.thumbnail(out, SIZE)
        if name not in drawings.DRAWINGS:
            return drawings.written(f"$ python examples/{name}.py\n{text}", SIZE)
        return drawn(drawings.DRAWINGS[name], held)


def run(path: Path, words: list[str], folder: Path) -> tuple[str, Mapping[str, Any]]:
    """What an example prints, and its names at the end."""
    left: dict[str, Any] = {}

    def leave(frame: FrameType, event: str, _: object) -> None:
        if event == "return" and frame.f_code.co_filename == str(path):
            for name, value in frame.f_locals.items():
                left.setdefault(name, value)

    printed, before = io.StringIO(), sys.argv
    os.environ["LANEWISE_CACHE_DIR"] = str(folder)  # what is tuned here is tuned for this alone
    sys.argv = [str(path), *words]
    try:
        with contextlib.redirect_stdout(printed):
            sys.setprofile(leave)
            held = runpy.run_path(str(path), run_name="__main__")
    finally:
        sys.setprofile(None)
        sys.argv = before
    return printed.getvalue().replace(f"{folder}/", "").replace(f"{ROOT}/", ""), {**left, **held}


def drawn(draw: drawings.Drawing, held: Mapping[str, Any]) -> Image.Image:
    """A drawing, as a picture."""
    from matplotlib.figure import Figure

    dots = 100
    figure = Figure((SIZE[0] / dots, SIZE[1] / dots), dpi=dots, layout="constrained")
    draw(figure.add_subplot(), held)
    data = io.BytesIO()
    figure.savefig(data, format="png")
    return Image.open(data).convert("RGB")


def scenes(wanted: set[str]) -> Iterator[tuple[str, Image.Image]]:
    """The products' pictures of these names."""
    with tempfile.TemporaryDirectory() as folder:
        for name, scene in SCENES.items():
            if name in wanted:
                out = f"{folder}/{name}.png"
                for line in filter(None, (scene.before, f"{scene.command} --plot {out}")):
                    command = [sys.executable, "-m", *shlex.split(line)]
                    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
                yield name, drawings.thumbnail(Path(out), SIZE)


def save(image: Image.Image, path: Path) -> None:
    """With as many colours as fit into the size that is allowed."""
    path.parent.mkdir(exist_ok=True)
    for colours in (256, 128, 64, 32, 16):
        small = image.quantize(colours, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
        small.save(path, optimize=True)
        if path.stat().st_size <= LARGEST:
            break
    print(f"{path.relative_to(ROOT)} ({path.stat().st_size // 1024} KB)", flush=True)


def main(wanted: set[str]) -> None:
    """Write the pictures with these names, or all."""
    for name in names():
        if not wanted or name in wanted:
            save(picture_of(name), PICTURES / f"examples/{name}.png")
    for name, image in scenes(wanted or set(SCENES)):
        save(image, PICTURES / f"products/{name}.png")


if __name__ == "__main__":
    main(set(sys.argv[1:]))
