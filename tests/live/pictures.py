"""The pictures of docs/view.md: `python -m tests.live.pictures [NAME ...]` runs every product with `--view` and looks
at it.
"""

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
    """A run, and how it is looked at until `step` is reached.

    before: a command that makes its files. tails: so many times ten steps at the end, each of which leaves a part of
    the tails.
    """

    name: str
    command: str
    look: str = ""
    step: int = 100
    theme: str = "dark"
    size: tuple[int, int] = SIZE
    before: str = ""
    tails: int = 0


GALAXIES = (
    "gravity run --ic galaxies --bodies 20000 --steps 100000 --dt 0.01 --softening 0.05 --device cpu --out {out}.h5"
)
FLOCK = "boids run --agents 4000 --steps 100000 --device cpu --out {out}.h5"
STREET = "lbm run karman --steps 1000000 --device cpu --out {out}.h5"
SPHERE = "lbm run sphere --size 10 --steps 1000000 --device cpu --out {out}.h5"
SFTS = (
    "waves make-data --out {out} --band 59.85,60.17 --start 1238166018 --sfts 240 --sqrt-s 1e-23,1e-23"
    " --signal h0=4e-25,cosi=0.8,freq=60.0101,alpha=2.0,delta=0.3,f1dot=-2e-10 --ephemeris EPV00"
)
SEARCH = (
    "waves run --sfts {out}/*.sft --ref-time 1238166018 --freq 60.0095 --band 0.001 --f1dot=-4e-10,4e-10 --stack 36000"
    " --residuals 3 --patch 0.02 --sky isotropic:0.02@2.0,0.3,0.4 --ephemeris EPV00 --out {out}.csv"
)
DISH = """
import sys
sys.path.insert(0, "examples")
sys.argv = ["", "256"]
from own_loop_reaction import FEED, KILL, SIZE, dish, react
import lanewise as lw
even, odd = dish()
there = react.bind(*even, *odd, FEED, KILL, grid=(SIZE, SIZE))
back = react.bind(*odd, *even, FEED, KILL, grid=(SIZE, SIZE))
loop = lw.steps([[there], [back]], cycle=2)
with lw.view(even[1], title="two substances react", port=0, wait=True) as view:
    while True:
        loop.run(20)
        view.update(loop.step)
"""
SHOTS = (
    Shot("view_gravity", GALAXIES, "set('style', 'glow'); set('opacity', 0.3); camera.distance *= 0.8", 60),
    Shot("view_boids", FLOCK, "set('tails', 9)", 900, tails=9),
    Shot("view_lbm", STREET, "", 6000, "light"),
    Shot("view_sphere", SPHERE, "set('volume', 'walls'); camera.azimuth = 0.5; camera.distance *= 0.75", 150),
    Shot("view_waves", SEARCH, "set('size', 4)", 900, before=SFTS),
    Shot("view_array", DISH, "set('map', 'magma')", 6000, "light"),
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
        out, lanewise = Path(folder) / "run", [sys.executable, "-m", "lanewise"]
        if shot.before:
            subprocess.run([*lanewise, *shot.before.format(out=out).split()], check=True, stdout=subprocess.DEVNULL)
        command = [*lanewise, *shot.command.format(out=out).split(), "--view", "--view-port", "0", "--view-wait"]
        if "import" in shot.command:
            script = Path(folder) / "own.py"
            script.write_text(shot.command)
            command = [sys.executable, str(script)]
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
            for _ in range(shot.tails):
                now = page.evaluate("lanewise.run.frame")
                page.evaluate("lanewise.feed.send({ do: 'step', n: 10 })")
                until(page, f"lanewise.run.frame > {now}", 60)
            page.wait_for_timeout(1500)
            picture = page.screenshot()
            page.close()
        finally:
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
    path = FOLDER / f"{shot.name}.png"
    # this method keeps colours that are rare, such as those of the legend; a round of means those of large areas
    small = (
        Image.open(io.BytesIO(picture))
        .convert("RGB")
        .quantize(256, Image.Quantize.MAXCOVERAGE, kmeans=1, dither=Image.Dither.NONE)
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
