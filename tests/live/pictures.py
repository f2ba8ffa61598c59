"""The pictures of docs/view.md: `python -m tests.live.pictures [NAME ...]` runs every product with `--view` and looks at it."""

from __future__ import annotations

import io
import re
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from tests.live.browser import started, until

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
SIZE = (1280, 720)
PHONE = (400, 700)


@dataclass(frozen=True)
class Shot:
    """A run, and how it is looked at until `step` is reached."""

    name: str
    command: str
    look: str = ""
    step: int = 100
    theme: str = "dark"
    size: tuple[int, int] = SIZE


GALAXIES = (
    "gravity run --ic galaxies --bodies 20000 --steps 100000 --dt 0.01 --softening 0.05 --device cpu --out {out}.h5"
)
FLOCK = "boids run --agents 4000 --steps 100000 --device cpu --out {out}.h5"
STREET = "lbm run karman --steps 1000000 --device cpu --out {out}.h5"
SHOTS = (
    Shot("view_gravity", GALAXIES, "set('style', 'glow'); set('opacity', 0.3); camera.distance *= 0.8", 60),
    Shot("view_boids", FLOCK, "set('tails', 6)", 900),
    Shot("view_lbm", STREET, "", 6000, "light"),
    Shot("view_phone", GALAXIES, "", 40, "dark", PHONE),
)


def address(process: subprocess.Popen[str]) -> str:
    """What the run prints where its view is."""
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.search(r"view: (http\S+)", line):
            return found[1]
    raise SystemExit("the run ended without a view: it says why above")


def take(browser: Any, shot: Shot) -> Path:
    """Runs, looks and writes; the run is ended."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = shot.command.format(out=Path(folder) / "run").split()
        command = [sys.executable, "-m", "lanewise", *arguments, "--view", "--view-port", "0", "--view-wait"]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        try:
            width, height = shot.size
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=shot.theme)
            page.goto(address(process))
            until(page, "lanewise.run.frame > 0", 120)
            page.evaluate(f"(({{ camera, actions: {{ set }} }}) => {{ {shot.look} }})(lanewise)")
            until(page, f"lanewise.run.step >= {shot.step}", 300)
            page.evaluate("lanewise.feed.send({ do: 'pause' })")
            until(page, "lanewise.run.paused")
            page.wait_for_timeout(1500)
            picture = page.screenshot()
            page.close()
        finally:
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
    path = FOLDER / f"{shot.name}.png"
    # this method keeps colours that are rare, such as those of the legend
    small = (
        Image.open(io.BytesIO(picture))
        .convert("RGB")
        .quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    )
    small.save(path, optimize=True)
    return path


def main(names: list[str]) -> None:
    with started() as browser:
        for shot in SHOTS:
            if not names or shot.name in names:
                path = take(browser, shot)
                print(f"{path} ({path.stat().st_size // 1024} KB)")


if __name__ == "__main__":
    main(sys.argv[1:])
