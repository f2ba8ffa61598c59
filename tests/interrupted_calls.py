"""A program that a test starts: a first call that is interrupted somewhere on its way, and the same call again.

`python -m tests.interrupted_calls NAME MOMENT`, with a MOMENT as of `Watch`. Prints one line of JSON: what the first
call ended with, how long it took, how many modules it requested, and a digest of the second.
"""

# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import lanewise as lw

Body: Any = None  # kernels look for types in their module


def _points() -> Any:
    global Body

    @lw.record
    class Particle:
        position: lw.vec3
        mass: lw.f32

    Body, random = Particle, np.random.default_rng(4)
    return Particle.array(position=random.random((300, 3)), mass=random.random(300))  # type: ignore[attr-defined]


def elementwise() -> Any:
    points = _points()

    @lw.elementwise
    def doubled(b: Body) -> lw.vec3:
        return 2 * b.position

    return doubled(points)


def pairwise() -> Any:
    points = _points()

    @lw.pairwise
    def attraction(a: Body, b: Body, softening: lw.f32) -> lw.vec3:
        r = b.position - a.position
        return b.mass * r * lw.rsqrt(lw.dot(r, r) + softening) ** 3

    return attraction(points, points, 0.1)


def search() -> Any:
    points = _points()

    @lw.pairwise(search=lw.StaticGrid(radius=0.3))
    def near(a: Body, b: Body) -> lw.f32:
        return b.mass

    return near(points, points)


def threadwise() -> Any:
    @lw.threadwise
    def squares(i: lw.index, x: lw.Array1[lw.f64], y: lw.Array1[lw.f64]):  # type: ignore[no-untyped-def]
        y[i] = x[i] * x[i]

    out = np.zeros(100)
    squares(np.arange(100.0), out, grid=100)
    return out


def segmentwise() -> Any:
    points = _points()

    @lw.segmentwise
    def total(t: Body, p: Body) -> lw.f32:
        return t.mass * p.mass

    return total(points[:3], lw.ragged(points[:6], counts=[2, 0, 4]))[0]


def stencil() -> Any:
    @lw.stencil(lw.D2Q5)
    def heat(t: lw.Field[lw.f32], rate: lw.f32) -> lw.f32:
        return t[0] + rate * (t[1] + t[2] + t[3] + t[4] - 4 * t[0])

    plate = heat.sites((20, 30), t=np.random.default_rng(1).random((20, 30)))
    heat.run(plate, 3, rate=0.2)
    return heat.field(plate, "t")


def collective() -> Any:
    return lw.cumsum(np.arange(1000.0)), lw.histogram(np.arange(1000) % 7, bins=7)


def gravity() -> Any:
    from lanewise.sims.gravity import Simulation, make_bodies, make_initial_conditions

    simulation = Simulation(make_bodies(make_initial_conditions("plummer", 50, 2)), softening=0.05)
    simulation.run(5, 0.01)
    return simulation.bodies.position


def lbm() -> Any:
    simulation = lw.sims.lbm.Simulation(shape=(16, 16), viscosity=0.05)
    simulation.run(5)
    return simulation.density


def boids() -> Any:
    flock = lw.sims.boids.Flock(300, world=20.0, search="static-grid").run(5)
    path = Path(tempfile.mkdtemp()) / "a.h5"
    flock.checkpoint(path)
    return lw.sims.boids.Flock.resume(path).run(2).position


def picture() -> Any:
    from lanewise.sims.boids.pictures import picture as paint

    path = Path(tempfile.mkdtemp()) / "a.png"
    paint(lw.sims.boids.Flock(50, world=20.0), path)
    return np.array(list(path.read_bytes()[:8]))


CALLS: dict[str, Callable[[], Any]] = {
    f.__name__: f
    for f in (elementwise, pairwise, search, threadwise, segmentwise, stencil, collective, gravity, lbm, boids, picture)
}


def digest(result: Any) -> str:
    arrays = result if isinstance(result, tuple) else (result,)
    return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()


class Watch:
    """Presses Ctrl-C once at a moment: `import:N`, `module:NAME`, `time:SECONDS` or `never`. asked: how many modules
    were requested.
    """

    def __init__(self, moment: str) -> None:
        self.kind, _, self.text = moment.partition(":")
        self.asked, self._open = 0, True
        self._timer = threading.Timer(float(self.text), self._press) if self.kind == "time" else None
        sys.addaudithook(self._hook)
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()

    def _hook(self, event: str, values: Any) -> None:
        if event != "import" or not self._open or threading.current_thread() is not threading.main_thread():
            return
        self.asked += 1
        if (self.kind, self.text) in (("import", str(self.asked)), ("module", values[0])):
            self._open = self.kind == "import"
            signal.raise_signal(signal.SIGINT)

    def _press(self) -> None:
        if self._open:
            os.kill(os.getpid(), signal.SIGINT)

    def stop(self) -> None:
        """From here on nothing is pressed."""
        self._open = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()


def main(name: str, moment: str) -> None:
    warnings.simplefilter("error")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    watch = Watch(moment)
    begin, ended = time.perf_counter(), "finished"
    try:
        CALLS[name]()
    except BaseException as error:
        ended = type(error).__name__ + ("" if isinstance(error, KeyboardInterrupt) else f": {error}")
    watch.stop()
    seconds = time.perf_counter() - begin
    said = {"ended": ended, "seconds": seconds, "asked": watch.asked, "digest": digest(CALLS[name]())}
    print(json.dumps(said))


if __name__ == "__main__":
    main(*sys.argv[1:])
