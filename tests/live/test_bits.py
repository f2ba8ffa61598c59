"""A run has the same bits with and without viewers, pauses and steps."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from lanewise.live.feed import Feed
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


def test_without_viewers_a_look_is_a_comparison(tmp_path: Path) -> None:
    live, run = import_module("lanewise.sims.gravity.live"), gravity(tmp_path / "run.h5", "cpu")
    feed = Feed(live.scene_of(run.state))
    with live.steps_of(run.state).watched(feed):
        run.execute()
    assert feed.calls >= 1
    assert feed.made == 0
