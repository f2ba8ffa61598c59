"""The page in a real browser: what it draws is where the camera says, and what is pressed happens."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lanewise.live.protocol import HEADER_BYTES
from lanewise.live.widget import HERE, page_in_one
from tests.live.browser import lit, on_screen, palette, pixels, until
from tests.live.conftest import Opened
from tests.live.fake_run import TOKEN, FakeRun, cloud, frame

pytestmark = pytest.mark.browser

BOX: Any = ([-1, -1, -1], [2, 2, 2])
POINTS = {"title": "a cross", "product": "gravity", "kinds": ["points"], "fields": ["speed", "mass"], "field": "speed"}
SIZES = [(1280, 720), (400, 700)]


def cross(step: int) -> Any:
    """2,000 points: a line along x, and a shorter one along y that moves with the step."""
    t = np.linspace(-1, 1, 1000)
    zero = np.zeros_like(t)
    return np.concatenate([np.stack([t, zero, zero], 1), np.stack([zero + 0.1 * step, 0.5 * t, zero], 1)])


def cross_frames(step: int, _: dict[str, Any]) -> list[bytes]:
    return [cloud(cross(step), np.full(2000, 0.5), *BOX)]


def crossed(**more: Any) -> FakeRun:
    """Held, with its first step to be made."""
    return FakeRun(cross_frames, {**POINTS, "paused": True, **more})


def first(run: FakeRun) -> FakeRun:
    run._loop.call_soon_threadsafe(run._make)
    return run


def hashed(page: Any) -> str:
    return hashlib.sha256(pixels(page).tobytes()).hexdigest()


def step_is(page: Any, step: int) -> None:
    until(page, f"document.getElementById('moment').textContent.startsWith('step {step} ')")


@pytest.mark.slow
@pytest.mark.parametrize(("size", "theme"), list(zip(SIZES, ["light", "dark"], strict=True)))
def test_the_cross_is_where_the_camera_says(opened: Opened, size: tuple[int, int], theme: str) -> None:
    with crossed() as run:
        page = opened(first(run).url, size, color_scheme=theme)
        page.evaluate("lanewise.actions.set('axes', false)")
        drawn = pixels(page)
        assert (drawn[0, 0].mean() > 128) == (theme == "light")
        seen = lit(drawn)
        rows, columns = np.nonzero(seen)
        wanted = on_screen(page, cross(1))
        ink = np.stack([columns + 0.5, rows + 0.5], 1)
        away = np.linalg.norm(wanted[:, None] - ink[None], axis=-1)
        assert away.min(axis=1).max() < 2, "a point that is not drawn"
        assert away.min(axis=0).max() < 2 + 3, "ink where no point is"


@pytest.mark.slow
def test_values_have_the_colours_of_the_map(opened: Opened) -> None:
    places, values = [[-0.5, 0, 0], [0, 0, 0], [0.5, 0, 0]], [0.0, 0.5, 1.0]
    with FakeRun(lambda *_: [cloud(places, values, *BOX)], {**POINTS, "flat": True}) as run:
        page = opened(run.url)
        page.evaluate("lanewise.actions.set('axes', false); lanewise.actions.set('size', 16)")
        for name in ("viridis", "magma", "coolwarm", "ember"):
            page.evaluate("name => lanewise.actions.set('map', name)", name)
            drawn, table = pixels(page), palette(page, name)
            for (x, y), k in zip(on_screen(page, places), (0, 127, 255), strict=True):
                assert np.abs(drawn[int(y), int(x)] - table[k]).max() <= 6


def test_pause_stops_the_steps_and_a_step_is_one(opened: Opened) -> None:
    with FakeRun(cross_frames, POINTS) as run:
        page = opened(run.url)
        page.get_by_role("button", name="Pause").click()
        page.get_by_role("button", name="Run", exact=True).wait_for()
        held = run.step
        step_is(page, held)
        until(page, "document.getElementById('moment').textContent.endsWith('paused')")
        page.keyboard.press("ArrowRight")
        step_is(page, held + 1)
        page.wait_for_timeout(200)
        assert run.step == held + 1
        page.locator("#scene").focus()
        page.keyboard.press(" ")
        until(page, f"lanewise.run.step > {held + 2}")
        assert [m["do"] for m in run.said if m["do"] in ("pause", "step", "run")] == ["pause", "step", "run"]
        assert "paused" not in page.locator("#moment").inner_text()


@pytest.mark.slow
def test_back_in_time_the_older_picture_is_seen(opened: Opened) -> None:
    with crossed() as run:
        page = opened(first(run).url)
        step_is(page, 1)
        before = [hashed(page)]
        for step in (2, 3):
            page.keyboard.press("ArrowRight")
            step_is(page, step)
            before.append(hashed(page))
        assert len(set(before)) == 3
        for step in (2, 1):
            page.keyboard.press("ArrowLeft")
            step_is(page, step)
            assert "history" in page.locator("#moment").inner_text()
            assert hashed(page) == before[step - 1]
        page.locator("#scrub").fill("2")
        step_is(page, 2)
        page.get_by_role("button", name="The newest frame").click()
        step_is(page, 3)
        assert "history" not in page.locator("#moment").inner_text()


HEADINGS = [(1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0)]


@pytest.mark.slow
def test_arrows_point_along_their_heading(opened: Opened) -> None:
    """A cone is wide where its tail is."""

    def frames(step: int, _: dict[str, Any]) -> list[bytes]:
        return [cloud([[0, 0, 0]], [0.5], *BOX, headings=np.array([HEADINGS[step - 1]], float))]

    about = {**POINTS, "kinds": ["arrows"], "flat": True, "arrow": 0.5, "domain": [[-1] * 3, [1] * 3], "paused": True}
    with FakeRun(frames, about) as run:
        page = opened(first(run).url)
        page.evaluate("lanewise.actions.set('axes', false)")
        for step, heading in enumerate(HEADINGS, 1):
            if step > 1:
                page.keyboard.press("ArrowRight")
            step_is(page, step)
            rows, columns = np.nonzero(lit(pixels(page)))
            along = columns * heading[0] - rows * heading[1]
            across = columns * heading[1] + rows * heading[0]
            far = (along - along.min()) / np.ptp(along)
            assert np.ptp(across[far < 0.15]) > 3 * np.ptp(across[far > 0.85]) > 0
            # the nose is 0.62 of the length from the middle, the tail 0.38
            middle = on_screen(page, [[0, 0, 0]])[0] @ (heading[0], -heading[1])
            assert (along.max() - middle) / (middle - along.min()) == pytest.approx(0.62 / 0.38, rel=0.1)


@pytest.mark.slow
def test_a_slice_shows_its_field_and_walls(opened: Opened) -> None:
    ramp = np.tile(np.arange(1, 256, dtype="u1"), (64, 1))
    ramp[40:50, 100:150] = 0
    made = frame(
        "slice",
        ramp.tobytes(),
        first=255,
        total=64,
        components=1,
        origin=[0] * 3,
        extent=[255, 64, 0],
        high=1.0,
        marks=("walls",),
    )
    about = {**POINTS, "kinds": ["slice"], "flat": True, "up": [0, 0, 1], "domain": [[0] * 3, [255, 64, 0]]}
    with FakeRun(lambda *_: [made], about) as run:
        page = opened(run.url)
        drawn, table = pixels(page), palette(page, "viridis")
        at = np.array([[x + 0.5, 20.5, 0] for x in range(0, 255, 6)])
        for (x, y), (place, *_rest) in zip(on_screen(page, at), at, strict=True):
            assert np.abs(drawn[int(y), int(x)] - table[round((place - 0.5) / 254 * 255)]).max() <= 8
        for x, y in on_screen(page, [[101.5, 41.5, 0], [148.5, 48.5, 0]]).astype(int):
            assert np.ptp(drawn[y, x]) < 20, "walls are grey"
        assert page.get_by_label("Across").is_hidden(), "a flat field has one slice"


def heard(page: Any, run: FakeRun, message: dict[str, Any]) -> bool:
    """Whether the run is told this, however slow the browser is."""
    for _ in range(200):
        if message in run.said:
            return True
        page.wait_for_timeout(50)
    return False


@pytest.mark.slow
@pytest.mark.parametrize("how", ["maximum", "emission", "walls"])
def test_a_volume_shows_what_is_in_it(opened: Opened, how: str) -> None:
    """A bright block, and a wall in front of another one."""
    field = np.ones((16, 16, 16), "u1")
    field[6:10, 6:10, 2:6] = 255
    field[2:6, 6:10, 10:14] = 255
    field[12:14, 4:12, 8:16] = 0
    made = frame("volume", field.tobytes(), first=16, total=16, count=16, extent=[16] * 3, high=1.0, marks=("walls",))
    about = {**POINTS, "kinds": ["volume", "slice"], "up": [0, 1, 0], "domain": [[0] * 3, [16] * 3]}
    with FakeRun(lambda *_: [made], about) as run:
        page = opened(run.url, color_scheme="dark")
        page.evaluate(f"lanewise.actions.set('axes', false); lanewise.actions.set('volume', '{how}')")
        page.evaluate("lanewise.actions.set('density', 1); lanewise.camera.azimuth = lanewise.camera.elevation = 0")
        drawn, table = pixels(page), palette(page, "viridis")
        (bx, by), (wx, wy), (ex, ey) = on_screen(page, [[4, 8, 8], [12, 8, 14], [8, 2, 8]]).astype(int)
        # the rim of what shines has the colours between
        reached = np.abs(table - drawn[by, bx]).sum(axis=1).argmin()
        if how == "walls":
            assert not lit(drawn)[by, bx], "the fluid is clear"
        else:
            assert reached > (240 if how == "maximum" else 180)
        assert np.ptp(drawn[wy, wx]) < 30, "the wall hides what is behind it"
        assert not lit(drawn)[ey, ex]
        page.get_by_label("Across").select_option("x")
        assert heard(page, run, {"do": "slice", "axis": 0, "place": 0.5})
        page.evaluate("lanewise.actions.set('volume', 'none')")
        assert not lit(pixels(page)).any()


@pytest.mark.slow
def test_a_picture_is_saved_as_it_is_seen(opened: Opened) -> None:
    with crossed() as run:
        page = opened(first(run).url)
        page.get_by_label("Picture").select_option("3x")
        with page.expect_download() as saved:
            page.keyboard.press("p")
        picture = np.asarray(Image.open(io.BytesIO(Path(saved.value.path()).read_bytes())).convert("RGB")).astype(int)
        size = page.evaluate("[lanewise.camera.width, lanewise.camera.height]")
        assert saved.value.suggested_filename == "gravity-1.png"
        assert picture.shape == (3 * size[1], 3 * size[0], 3)
        for x, y in (3 * on_screen(page, cross(1)[::100])).astype(int):
            assert lit(picture)[y - 3 : y + 4, x - 3 : x + 4].any()


@pytest.mark.slow
def test_a_film_is_recorded(opened: Opened) -> None:
    with FakeRun(cross_frames, POINTS) as run:
        page = opened(run.url, (400, 700))
        page.locator("#scene").focus()
        page.keyboard.press("r")
        until(page, f"lanewise.run.frame > {run.step + 15}")
        with page.expect_download() as saved:
            page.keyboard.press("r")
        film = Path(saved.value.path()).read_bytes()
        kind = saved.value.suggested_filename.rpartition(".")[2]
        assert (kind, film[4:8]) == ("mp4", b"ftyp") or (kind, film[:4]) == ("webm", b"\x1aE\xdf\xa3")
        assert len(film) > 2000


@pytest.mark.slow
def test_a_point_is_picked_and_followed(opened: Opened) -> None:
    with crossed() as run:
        page = opened(first(run).url)
        x, y = on_screen(page, cross(1)[1800:1801])[0]
        page.mouse.click(x, y)
        page.get_by_text("0.25").wait_for()
        row = next(m["row"] for m in run.said if m["do"] == "pick")
        assert np.abs(cross(1)[row] - cross(1)[1800]).max() < 0.05
        page.keyboard.press("ArrowRight")
        step_is(page, 2)
        assert page.evaluate("lanewise.camera.target") == pytest.approx(cross(2)[row].tolist(), abs=1e-4)
        page.get_by_text(", step 2").wait_for()
        page.keyboard.press("Escape")
        assert page.locator("#picked").is_hidden()


def test_the_camera_by_mouse_and_keys(opened: Opened) -> None:
    """What is under the pointer stays there when the wheel turns."""
    with crossed() as run:
        page = opened(first(run).url)
        before = on_screen(page, cross(1)[:1])[0]
        page.mouse.move(*before)
        page.mouse.wheel(0, -200)
        page.wait_for_timeout(100)
        # exact at the depth of the target, and nearly so near to it
        assert np.abs(on_screen(page, cross(1)[:1])[0] - before).max() < 40
        state = "JSON.stringify([lanewise.camera.azimuth, lanewise.camera.elevation, lanewise.camera.distance, lanewise.camera.target])"
        seen = [page.evaluate(state)]
        for key in ("Shift+ArrowLeft", "Shift+ArrowUp", "w", "a", "+", "-", "s", "d"):
            page.keyboard.press(key)
            seen.append(page.evaluate(state))
            assert seen[-1] != seen[-2], key
        page.mouse.move(500, 300)
        page.mouse.down()
        page.mouse.move(560, 320, steps=3)
        page.mouse.up()
        assert page.evaluate(state) != seen[-1]
        page.keyboard.press("z")
        page.keyboard.press("o")
        page.wait_for_timeout(200)
        turned = page.evaluate(state)
        page.wait_for_timeout(200)
        assert page.evaluate(state) != turned


def test_keys_and_controls_say_it_to_the_run(opened: Opened) -> None:
    with crossed() as run:
        page = opened(first(run).url)
        page.keyboard.press("c")
        until(page, "lanewise.settings.field === 'mass'")
        page.keyboard.press("t")
        assert page.evaluate("lanewise.settings.tails") == 32
        page.keyboard.press("m")
        assert page.evaluate("lanewise.settings.map") == "ember" or page.evaluate("lanewise.settings.map") == "magma"
        page.get_by_label("From", exact=True).fill("0.5")
        page.get_by_label("To", exact=True).fill("2")
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        assert heard(page, run, {"do": "range", "low": 0.5, "high": 2})
        assert {"do": "colour", "field": "mass"} in run.said
        page.locator("#scene").focus()
        page.keyboard.press("h")
        assert page.get_by_role("dialog").is_visible()
        page.keyboard.press("h")
        assert page.get_by_role("dialog").is_hidden()


@pytest.mark.slow
def test_tails_go_from_frame_to_frame(opened: Opened) -> None:
    with crossed() as run:
        page = opened(first(run).url)
        page.evaluate("lanewise.actions.set('axes', false); lanewise.actions.set('tails', 8)")
        for step in (2, 3, 4):
            page.keyboard.press("ArrowRight")
            step_is(page, step)
        between = (cross(3)[1000] + cross(4)[1000]) / 2
        x, y = on_screen(page, [between])[0].astype(int)
        assert lit(pixels(page), 30)[y - 2 : y + 3, x - 2 : x + 3].any()
        page.evaluate("lanewise.actions.set('tails', 0)")
        assert not lit(pixels(page), 30)[y - 2 : y + 3, x - 2 : x + 3].any()


@pytest.mark.slow
def test_a_curve_is_drawn_below_a_flat_scene(opened: Opened) -> None:
    """Its columns are as high as its values, to the pixel; what a frame tells beside it is said."""
    heights = [0.0, 5.0, 10.0, 2.5, 0.0, 10.0]
    text = json.dumps({"curve": {"x": [60, 60.6], "y": heights, "names": ["frequency, Hz", "2F"]}, "maps": "3 of 7"})
    told = frame("statistics", text.encode(), count=len(text))
    about = {**POINTS, "flat": True, "domain": [[-1, -1, 0], [1, 1, 0]], "counts": "map"}
    with FakeRun(lambda *_: [told, cross_frames(1, {})[0]], {**about, "paused": True}) as run:
        page = opened(first(run).url)
        until(page, "lanewise.run.curve && lanewise.camera.below > 0")
        assert page.locator("#moment").inner_text().startswith("map 1")
        until(page, "document.getElementById('statistics').textContent.startsWith('maps 3 of 7')")
        columns = page.evaluate(
            """() => {
                const ink = document.getElementById("ink"), { width, height } = ink;
                const { data } = ink.getContext("2d").getImageData(0, height - 150, width, 115);
                return Array.from({ length: 6 }, (_, k) => {
                    const x = Math.round(64 + (k + 0.5) * (width - 88) / 6);
                    let n = 0;
                    for (let y = 30; y < 115; y++) n += data[4 * (y * width + x) + 3] > 0;
                    return n;
                });
            }"""
        )
        tall = max(columns)
        assert tall > 60
        assert columns == pytest.approx([h / 10 * tall for h in heights], abs=2)


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_nothing_overflows_and_all_is_reached_by_keys(opened: Opened, size: tuple[int, int]) -> None:
    about = {**POINTS, "kinds": ["points", "slice", "volume"], "title": "galaxies, 1 000 000 bodies, tree, theta 0.6"}
    with crossed(**about) as run:
        page = opened(first(run).url, size)
        if size[0] < 760:
            page.get_by_role("button", name="Settings").click()
        assert page.evaluate("[document.scrollingElement.scrollWidth, document.scrollingElement.scrollHeight]") == [
            *size
        ]
        boxes = "[...document.querySelectorAll('button, select, input, #title')].filter(e => e.checkVisibility()).map(e => e.getBoundingClientRect())"
        for box in page.evaluate(f"{boxes}.map(b => [b.left, b.right])"):
            assert 0 <= box[0] < box[1] <= size[0]
        labels = "[...document.querySelectorAll('button, select, input')].filter(e => e.checkVisibility() && !(e.ariaLabel || e.labels[0] || e.textContent)).length"
        assert page.evaluate(labels) == 0
        all_of_them = page.evaluate(
            "[...document.querySelectorAll('button, select, input')].filter(e => e.checkVisibility() && !e.disabled).length"
        )
        reached = set()
        for _ in range(all_of_them + 4):
            page.keyboard.press("Tab")
            reached.add(page.evaluate("(e => [e.tagName, e.id, e.textContent].join())(document.activeElement)"))
        assert len([r for r in reached if not r.startswith(("BODY", "CANVAS", "FORM"))]) == all_of_them


# where coloured ink is, and the words above it; what lies over it there; where the scale bar ends at the most
LEGEND = """() => {
    const ink = document.getElementById("ink"), { width, height } = ink, copy = new OffscreenCanvas(width, height);
    const context = copy.getContext("2d", { willReadFrequently: true });
    context.drawImage(ink, 0, 0);
    const { data } = context.getImageData(0, 0, width, height);
    const [xs, ys] = [[], []];
    for (let k = 0; k < width * height; k++) {
        const [r, g, b, a] = data.subarray(4 * k, 4 * k + 4);
        if (a === 255 && Math.max(r, g, b) - Math.min(r, g, b) > 60) {
            xs.push(k % width);
            ys.push(Math.floor(k / width));
        }
    }
    const ends = (of) => [of.reduce((a, b) => Math.min(a, b)), of.reduce((a, b) => Math.max(a, b))];
    const [[left, right], [top, bottom]] = [ends(xs), ends(ys)];
    document.getElementById("statistics").textContent = "many words of what the run is doing ".repeat(3);
    const over = [...document.querySelectorAll("header, #link, #open, #panel, #transport, #picked")].filter((e) => {
        const box = e.getBoundingClientRect();
        return e.checkVisibility() && box.left < right && box.right > left && box.top < bottom + 14 && box.bottom > top - 32;
    });
    return { wide: right - left, over: over.map((e) => e.id || e.localName),
        bar: bottom > height / 2 && left < 88 + 150 };
}"""


def test_nothing_lies_over_the_legend(opened: Opened) -> None:
    with crossed() as run:
        page = opened(first(run).url)
        page.evaluate(
            "Object.assign(document.getElementById('picked'), {hidden: false, textContent: 'words '.repeat(20)})"
        )
        for width in (340, 479, 481, 561, 758, 761, 831, 1280):
            page.set_viewport_size({"width": width, "height": 450})
            until(page, "lanewise.camera.width === document.getElementById('scene').clientWidth")
            page.wait_for_timeout(60)
            seen = page.evaluate(LEGEND)
            assert (seen["over"], seen["bar"]) == ([], False), width
            assert seen["wide"] > 150, width


@pytest.mark.slow
def test_a_hidden_tab_wants_no_frames(opened: Opened) -> None:
    hide = "Object.defineProperty(document, 'hidden', {value: %s, configurable: true}); document.dispatchEvent(new Event('visibilitychange'))"
    with FakeRun(cross_frames, POINTS) as run:
        page = opened(run.url)
        page.evaluate(hide % "true")
        page.wait_for_timeout(300)
        step = page.evaluate("lanewise.run.frame")
        assert {"do": "credit", "n": 0} in run.said
        page.wait_for_timeout(300)
        assert page.evaluate("lanewise.run.frame") == step
        page.evaluate(hide % "false")
        until(page, f"lanewise.run.frame > {step}")


@pytest.mark.slow
def test_a_lost_connection_is_tried_again(opened: Opened) -> None:
    with FakeRun(cross_frames, POINTS) as run:
        page = opened(run.url)
        page.evaluate("lanewise.camera.azimuth = 1.25")
        run.drop()
        page.get_by_text("lost, trying again").wait_for()
        page.get_by_text("connected", exact=True).wait_for()
        assert (run.connections, page.evaluate("lanewise.camera.azimuth")) == (2, 1.25)


@pytest.mark.slow
def test_a_reload_keeps_the_token_and_a_wrong_one_is_said(opened: Opened) -> None:
    with crossed() as run:
        page = opened(first(run).url)
        page.reload()
        until(page, "lanewise.run.frame > 0")
        assert page.evaluate("location.hash") == f"#t={TOKEN}"
        wrong = opened(run.url.replace(TOKEN, "guess"), wait=False)
        wrong.get_by_text("This address was wrong token").wait_for()
        wrong.wait_for_timeout(900)
        assert run.connections == 3, "it does not try again"


@pytest.mark.slow
def test_a_lost_context_is_restored(opened: Opened) -> None:
    with crossed() as run:
        page = opened(first(run).url)
        before = hashed(page)
        page.evaluate("window.lose = lanewise.scene.gl.getExtension('WEBGL_lose_context'); lose.loseContext()")
        until(page, "lanewise.scene.gl.isContextLost()")
        page.wait_for_timeout(100)
        page.evaluate("lose.restoreContext()")
        until(page, "!lanewise.scene.gl.isContextLost()")
        page.wait_for_timeout(200)
        assert hashed(page) == before


def test_the_rate_is_that_of_the_server_until_one_is_chosen(opened: Opened) -> None:
    """And a new connection is told what was chosen."""
    with crossed(rate=12.5) as run:
        page = opened(first(run).url)
        slider = page.get_by_label("Frames/s")
        assert [page.evaluate("lanewise.settings.rate"), slider.get_attribute("max")] == [12.5, "12.5"]
        slider.fill("5")
        assert heard(page, run, {"do": "rate", "n": 5})
        run.said.clear()
        run.drop()
        assert heard(page, run, {"do": "rate", "n": 5})
        until(page, "lanewise.run.link === 'open'")
        assert slider.input_value() == "5"


def test_controls_are_disabled_while_they_do_nothing(opened: Opened) -> None:
    """Whatever they hang on, and where the run cannot be told anything."""
    with crossed(kinds=["points", "slice", "volume"]) as run:
        page = opened(first(run).url)

        def idle() -> set[str]:
            return set(
                page.evaluate(
                    "[...document.querySelectorAll('#panel :is(input, select, button):disabled')].map(e => e.id.slice(4))"
                )
            )

        def chosen(key: str, value: Any) -> set[str]:
            page.evaluate("([key, value]) => lanewise.actions.set(key, value)", [key, value])
            return idle()

        assert idle() == {"opacity", "density"}
        assert chosen("style", "glow") == {"density"}
        for volume in ("maximum", "emission"):
            assert chosen("volume", volume) == set()
        assert chosen("volume", "walls") == {"density"}
        assert chosen("slices", False) == {"density", "axis", "place", "smooth"}
        assert chosen("slices", True) == {"density"}
        run.leave()
        until(page, "lanewise.run.ended")
        assert idle() >= {"density", "axis", "place", "field", "rate"}
        assert chosen("style", "opaque") >= {"opacity", "axis"}
        assert "smooth" not in idle(), "the last frame is drawn as before"


def test_without_webgl2_there_is_a_sentence(opened: Opened) -> None:
    without = "HTMLCanvasElement.prototype.getContext = (old => function (kind, ...rest) { return kind === 'webgl2' ? null : old.call(this, kind, ...rest); })(HTMLCanvasElement.prototype.getContext);"
    with crossed() as run:
        page = opened(run.url, wait=False, script=without)
        page.get_by_text("Turn hardware acceleration on").wait_for()


@pytest.mark.slow
def test_what_a_frame_left_out_follows(opened: Opened) -> None:
    places, order = cross(1), np.random.default_rng(1).permutation(2000)

    def frames(*_: Any) -> list[bytes]:
        whole = cloud(places[order], np.full(2000, 0.5), *BOX)[HEADER_BYTES:]
        box = {"origin": BOX[0], "extent": BOX[1], "total": 2000, "high": 1.0}
        parts = [
            frame("suffix", whole[8 * k : 8 * k + 8 * 600], first=k, count=600, components=8, **box)
            for k in (800, 1400)
        ]
        return [frame("points", whole[: 8 * 800], count=800, components=8, **box), *parts]

    with FakeRun(frames, {**POINTS, "paused": True}) as run:
        page = opened(first(run).url)
        until(page, "document.getElementById('statistics').textContent.startsWith('2\u202f000 points')")
        page.evaluate("lanewise.actions.set('axes', false)")
        seen = lit(pixels(page))
        for x, y in on_screen(page, places[::50]).astype(int):
            assert seen[y - 2 : y + 3, x - 2 : x + 3].any()


def test_a_broken_frame_is_said_and_the_next_one_is_shown(opened: Opened) -> None:
    def frames(step: int, _: dict[str, Any]) -> list[bytes]:
        good = cross_frames(step, _)[0]
        return [good[:-8]] if step == 1 else [good]

    with FakeRun(frames, {**POINTS, "paused": True}) as run:
        page = opened(first(run).url, wait=False)
        page.get_by_text("15992 bytes where 16000 were said").wait_for()
        run._loop.call_soon_threadsafe(run._make)
        step_is(page, 2)


@pytest.mark.slow
def test_the_end_of_the_run_is_said(opened: Opened) -> None:
    with crossed() as run:
        page = opened(first(run).url)
        run.tell({"is": "state", "ended": True})
        until(page, "lanewise.run.ended")
        run.drop()
        page.wait_for_timeout(900)
        assert run.connections == 1, "it does not try again"
        page.get_by_text("the run has ended").wait_for()
        assert page.get_by_role("button", name="Ended").is_disabled()
        assert lit(pixels(page)).any()
        assert page.locator("#transport :enabled").all_inner_texts() == ["?"]
        page.keyboard.press("c")
        assert page.evaluate("lanewise.settings.field") == page.evaluate("lanewise.run.field"), "it shows what holds"


@pytest.mark.slow
def test_a_run_that_takes_leave_has_ended(opened: Opened) -> None:
    """Whatever it said last may be behind a frame that was still on its way."""
    with crossed() as run:
        page = opened(first(run).url)
        run.leave()
        page.get_by_text("the run has ended").wait_for()
        page.wait_for_timeout(900)
        assert run.connections == 1, "it does not try again"
        assert page.get_by_role("button", name="Ended").is_disabled()


@pytest.mark.slow
def test_a_frame_says_what_colours_it(opened: Opened) -> None:
    """As those of recordings do, whose fields cannot be chosen."""

    def frames(step: int, asked: Any) -> list[bytes]:
        told = json.dumps({"field": "warmth", "steps/s": 5}).encode()
        return [*cross_frames(step, asked), frame("statistics", told, count=len(told))]

    with FakeRun(frames, {**POINTS, "fields": [], "replay": True}) as run:
        page = opened(run.url)
        until(page, "lanewise.look().legend.field === 'warmth'")
        assert "warmth" not in page.locator("#statistics").inner_text()


@pytest.mark.slow
@pytest.mark.parametrize("thin", range(3))
@pytest.mark.parametrize("up", [[0, 1, 0], [0, 0, 1]])
def test_what_lies_in_a_plane_is_faced(opened: Opened, thin: int, up: list[int]) -> None:
    places = np.random.default_rng(1).uniform(-1, 1, (500, 3))
    places[:, thin] = 0
    body = cloud(places, np.full(500, 0.5), *BOX)
    with FakeRun(lambda *_: [body], {**POINTS, "up": up}) as run:
        page = opened(run.url)
        out = page.evaluate("lanewise.camera.basis().out")
        assert abs(out[thin]) == pytest.approx(1)


@pytest.mark.slow
def test_the_page_within_a_notebook(opened: Opened) -> None:
    """A document in one piece, in the frame that the widget makes, whose model passes messages on."""
    welcome = {"is": "welcome", **POINTS, "paused": True, "history": [1, 1]}
    body = cloud(cross(1), np.full(2000, 0.5), *BOX, sequence=1, step=7)
    page = opened("about:blank", wait=False)
    page.evaluate(
        """async ([html, script, welcome, bytes]) => {
            window.said = [];
            let heard;
            const model = {
                get: (name) => ({ page: html, height: 400 })[name],
                send({ text }) {
                    said.push(JSON.parse(text));
                    const { do: what } = said.at(-1);
                    if (what === "hello") heard({ text: welcome });
                    if (what === "credit") heard({}, [new DataView(new Uint8Array(bytes).buffer)]);
                },
                on: (_, call) => (heard = call),
                off() {},
            };
            const { default: widget } = await import(`data:text/javascript,${encodeURIComponent(script)}`);
            window.leave = widget.render({ model, el: document.body });
        }""",
        [page_in_one(), (HERE / "widget.js").read_text(), json.dumps(welcome), list(body)],
    )
    until(page, "said.some(m => m.do === 'ack' && m.sequence === 1)")
    inner = page.frames[1]
    assert inner.locator("#moment").inner_text().startswith("step 7")
    inner.evaluate("lanewise.actions.set('axes', false)")
    seen = lit(pixels(inner))
    for x, y in on_screen(inner, cross(1)[::100]).astype(int):
        assert seen[max(0, y - 2) : y + 3, max(0, x - 2) : x + 3].any()


@pytest.mark.slow
def test_an_error_within_the_page_is_said(opened: Opened) -> None:
    with crossed() as run:
        page = opened(first(run).url)
        page.evaluate("setTimeout(() => { throw new Error('no such program'); })")
        page.get_by_text("no such program").wait_for()
        opened.complaints.clear()  # type: ignore[attr-defined]
