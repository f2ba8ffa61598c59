"""A run has the same bits with and without viewers, pauses and steps."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from lanewise.live.feed import Feed
from lanewise.live.frame import stamp
from lanewise.live.scenes import Asked, finished
from lanewise.live.server import Server, Serving
from tests.live.talk import talking

pytest.importorskip("websockets")
STEPS = 200


def gravity(out: Path, device: str, method: str = "direct") -> Any:
    from lanewise.sims.gravity import runner
    from lanewise.sims.gravity.options import Output

    chosen = {"steps": STEPS, "softening": 0.05, "seed": 3, "method": method}
    return runner.start(bodies=512, output=Output(out=out), device=device, **chosen)


def tree(out: Path, device: str) -> Any:
    return gravity(out, device, "tree")


def boids(out: Path, device: str) -> Any:
    from lanewise.sims.boids import run
    from lanewise.sims.boids.options import Output

    return run.start({"agents": 600, "seed": 2, "device": device}, steps=STEPS, output=Output(out=out))


def lbm(out: Path, device: str) -> Any:
    from lanewise.sims.lbm import runner
    from lanewise.sims.lbm.cases import find_case
    from lanewise.sims.lbm.options import End, Method, Output

    case = find_case("cavity")
    return runner.start(case, case.request(size=24), Method(device=device), End(steps=STEPS), Output(out=out))


PRODUCTS = {"gravity": gravity, "tree": tree, "boids": boids, "lbm": lbm}


@pytest.mark.slow_cases("lbm-cpu")
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
@pytest.mark.parametrize("product", PRODUCTS)
def test_viewers_change_no_bit(product: str, device: str, tmp_path: Path) -> None:
    name = "gravity" if product == "tree" else product
    alone, watched = tmp_path / "alone.h5", tmp_path / "watched.h5"
    PRODUCTS[product](alone, device).execute()
    run = PRODUCTS[product](watched, device)
    live = import_module(f"lanewise.sims.{name}.live")
    feed = Feed(live.scene_of(run.state), rate=200)
    server = Server(feed, Serving(port=0))
    server.start()
    failed: list[BaseException] = []
    with ExitStack() as stack:
        stack.callback(server.stop)
        talk = stack.enter_context(talking(server))
        while not feed.watched:
            time.sleep(0.001)
        stack.enter_context(live.steps_of(run.state).watched(feed))
        feed.pause()

        def script() -> None:
            try:
                for field in feed.scene.about["fields"]:
                    talk.say("colour", field=field)
                    talk.say("step", n=7)
                    talk.frame()
                talk.say("show", kinds=feed.scene.about["kinds"])
                talk.say("step", n=7)
                talk.frame()
                talk.say("pick", row=1)
                talk.text("picked")
                talk.say("run")
            except BaseException as error:
                failed.append(error)
            finally:
                feed.go()

        thread = threading.Thread(target=script)
        thread.start()
        run.execute()
        thread.join(30)
    assert not failed, failed
    assert feed.made > 3
    assert watched.read_bytes() == alone.read_bytes()


class Looking:
    """Looks at a state after some of its steps, and waits for the frames."""

    def __init__(self, scene: Any, wanted: Sequence[int]) -> None:
        self.scene, self.wanted = scene, wanted
        self.seen: dict[int, Any] = {}
        self.seconds = 0.01

    def due(self, step: int) -> int | None:
        return next((w for w in self.wanted if w > step), None)

    def look(self, step: int, asked: Any) -> None:
        if step in self.wanted:
            self.seen[step] = finished(self.scene.frames(Asked(field=self.scene.about["fields"][0])))

    def rest(self, step: int) -> None: ...


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
@pytest.mark.parametrize("product", PRODUCTS)
def test_frames_are_of_the_steps_that_they_say(product: str, device: str, tmp_path: Path) -> None:
    """Though the run goes on while they are made."""
    live = import_module(f"lanewise.sims.{'gravity' if product == 'tree' else product}.live")
    run = PRODUCTS[product](tmp_path / "run.h5", device)
    feed = Feed(live.scene_of(run.state), rate=1e6)
    feed.watch(1)
    with live.steps_of(run.state).watched(feed):
        run.execute()
    feed.end()
    kept = {m.step: [stamp(f, sequence=0) for f in m.frames[:-1]] for m in feed.history}
    assert len(kept) > 2
    again = PRODUCTS[product](tmp_path / "again.h5", device)
    looking = Looking(live.scene_of(again.state), sorted(kept))
    if 0 in kept:
        looking.look(0, None)
    with live.steps_of(again.state).watched(looking):
        again.execute()
    assert looking.seen == kept


def test_without_viewers_a_look_is_a_comparison(tmp_path: Path) -> None:
    live, run = import_module("lanewise.sims.gravity.live"), gravity(tmp_path / "run.h5", "cpu")
    feed = Feed(live.scene_of(run.state))
    with live.steps_of(run.state).watched(feed):
        run.execute()
    assert feed.calls >= 1
    assert feed.made == 0
