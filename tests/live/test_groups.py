"""Boxes of the groups of a tree: in frames, and on the page."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.live.clouds import CloudScene, shown_by_default
from lanewise.live.frame import FrameHeader, decode
from lanewise.live.groups import NestedGroups
from lanewise.live.protocol import KINDS
from lanewise.live.scenes import Asked, Scene, finished
from lanewise.sims import gravity
from tests.live.browser import pixels, until
from tests.live.conftest import Opened
from tests.live.sparks import sparks

pytest.importorskip("websockets")


def boxes(scene: Scene, *kinds: str) -> tuple[FrameHeader, Any]:
    """(n, 2, 3) corners, and the levels."""
    asked = Asked(field=scene.about["fields"][0], kinds=("points", "arrows", *kinds))
    found = [decode(f) for f in finished(scene.frames(asked))]
    header, body = next((h, b) for h, b in found if h.kind == "boxes")
    rows = np.frombuffer(body, "<u2").reshape(header.count, 2, 4)
    levels = np.round(rows[:, 0, 3] / 65535 * header.high).astype(int)
    return header, (rows[:, :, :3] / 65535 * header.extent + header.origin, levels)


def levels_of(*ends: list[int]) -> list[Any]:
    return [(np.array(e[:-1]), np.array(e[1:])) for e in ends]


@pytest.mark.parametrize("spoilt", [None, np.nan, np.inf])
def test_boxes_hold_their_groups(spoilt: float | None) -> None:
    count = 300
    array = sparks(count)
    if spoilt is not None:
        places = array.position.copy()
        places[7] = spoilt
        array.position = places
    order = np.random.default_rng(2).permutation(count).astype(np.int32)
    ends = [[0, count], [0, 150, count], [0, 75, 150, 151, count]]
    groups = NestedGroups(levels_of(*ends), lambda: order)
    scene = CloudScene(array, shown_by_default(array.record), {}, lambda: (3, 0.5), groups=groups)
    assert scene.about["kinds"] == ["points", "boxes"]
    header, (corners, levels) = boxes(scene, "boxes")
    assert (header.count, header.step, header.time) == (7, 3, 0.5)
    assert levels.tolist() == [0, 1, 1, 2, 2, 2, 2]
    spans = [span for e in ends for span in pairwise(e)]
    step = np.array(header.extent) / 65535
    for (low, high), (begin, end) in zip(corners, spans, strict=True):
        inside = array.position[order[begin:end]]
        inside = inside[np.isfinite(inside).all(axis=1)]
        assert (low <= inside.min(0) + 1e-6).all()
        assert (low >= inside.min(0) - step - 1e-6).all()
        assert (high >= inside.max(0) - 1e-6).all()
        assert (high <= inside.max(0) + step + 1e-6).all()


def test_boxes_are_made_on_request() -> None:
    array, asked = sparks(), []
    order = np.arange(40, dtype=np.int32)

    def ordered() -> Any:
        asked.append(1)
        return order

    groups = NestedGroups(levels_of([0, 40]), ordered)
    scene = CloudScene(array, shown_by_default(array.record), {}, lambda: (0, 0.0), groups=groups)
    for kinds in ((), ("points",)):
        made = finished(scene.frames(Asked(field="heat", kinds=kinds)))
        assert [decode(f)[0].kind for f in made] == ["points", "statistics"]
    assert not asked


def simulated(method: str, bodies: int = 3000) -> gravity.Simulation:
    particles = gravity.make_initial_conditions("plummer", bodies, seed=1)
    search = lw.Tree() if method == "tree" else None
    return gravity.Simulation(gravity.make_bodies(particles), softening=0.05, search=search)


def test_the_tree_of_a_simulation_has_boxes_before_and_between_its_steps() -> None:
    simulation = simulated("tree")
    for _ in range(2):
        _, (corners, levels) = boxes(simulation.scene, "boxes")
        assert np.bincount(levels).tolist() == [1, 2, 4, 8, 16, 32, 64]
        places = simulation.bodies.position
        size = (corners[:, 1] - corners[:, 0]).prod(axis=1)
        assert np.median(size[levels == 6]) < 0.001 * size[0], "the groups of a tree are compact"
        assert (corners[0, 0] <= places.min(0) + 1e-3).all()
        assert (corners[0, 1] >= places.max(0) - 1e-3).all()
        simulation.run(40, dt=1e-3)
    assert "boxes" not in simulated("direct").scene.about["kinds"]


@pytest.mark.slow
@pytest.mark.browser
def test_the_page_shows_the_tree_by_a_key(opened: Opened) -> None:
    with lw.view(simulated("tree", 2000), port=0, quiet=True) as view:
        page = opened(view.url)
        page.evaluate("lanewise.actions.set('axes', false)")
        assert page.evaluate("!lanewise.scene.latest.boxes")
        without = pixels(page)
        page.locator("#scene").focus()
        page.keyboard.press("b")
        assert page.get_by_label("Tree").is_checked()
        until(page, "lanewise.run.frame > 0 && !lanewise.feed.later.show")
        view._feed._attempt()
        until(page, "lanewise.scene.latest.boxes")
        assert page.evaluate("lanewise.scene.latest.boxes.count") == 2 * 63 - 1
        changed = np.abs(pixels(page) - without).sum(axis=-1) > 20
        assert changed.sum() > 2000
        page.keyboard.press("b")
        assert (pixels(page) == without).mean() > 0.999
    assert KINDS["boxes"] == 6
