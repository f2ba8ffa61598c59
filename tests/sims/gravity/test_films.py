"""Films of bodies: what their light is, that its scale holds, and what a resumed run makes of one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from PIL import Image

from lanewise.sims.gravity import Simulation, make_bodies, make_initial_conditions, runner
from lanewise.sims.gravity.options import Output, Pictures
from lanewise.sims.gravity.painting import (
    BodiesThen,
    BodyPainter,
    FilmPlan,
    Look,
    Shot,
    film_from_json,
    film_to_json,
    shot_of,
    spread,
    surface,
)
from lanewise.sims.gravity.pictures import Film, film_title, picture
from lanewise.support.errors import InputError

SIZE = (96, 160)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def sheet(count: int = 40_000, seed: int = 1) -> BodiesThen:
    """Bodies evenly on 4 x 2.4 x 1 lengths, of mass 3 together; those at the right are three times as fast."""
    rng = np.random.default_rng(seed)
    position = (rng.random((count, 3)) - 0.5) * [4.0, 2.4, 1.0]
    velocity = np.zeros((count, 3))
    velocity[:, 2] = np.where(position[:, 0] > 0, -3.0, 1.0)
    component = np.where(position[:, 1] > 0, 2, 1).astype(np.uint8)
    return BodiesThen(0.5, 10, position, velocity, np.full(count, 3.0 / count), component)


def shot(**changed: Any) -> Shot:
    return replace(Shot("density", "xy", "", (0.0, 0.0), 4.0, 1.0, 0.0, 4.0), **changed)


def test_light_is_mass_by_area_and_speed_a_mean_by_mass() -> None:
    light, mean = surface(sheet(), shot(), SIZE)
    inner = light[20:-20, 20:-20]
    assert inner.mean() == pytest.approx(3.0 / (4.0 * 2.4), rel=0.02)
    assert mean[30:60, 20:60].mean() == pytest.approx(1.0, rel=1e-3)
    assert mean[30:60, 100:140].mean() == pytest.approx(3.0, rel=1e-3)
    upper, _ = surface(sheet(), shot(show="disc"), SIZE)
    assert upper[10:38].mean() > 20 * upper[58:86].mean()  # y points upwards
    along_y, _ = surface(sheet(), shot(projection="xz"), SIZE)
    assert along_y[30:66, 20:-20].mean() == pytest.approx(3.0 / 4.0, rel=0.05)
    assert along_y[:16].max() < 0.05


def test_few_bodies_keep_their_mass_and_many_stay_sharp() -> None:
    few = sheet(400)
    light, _ = surface(few, shot(width=12.0), (180, 240))
    pixel = (12.0 / 240) ** 2
    assert light.sum() * pixel == pytest.approx(3.0, rel=0.02)
    spike = np.zeros((64, 64), np.float32)
    spike[31, 31] = 1e5
    (wide,) = spread(spike, (spike,))
    assert wide.sum() == pytest.approx(1e5, rel=1e-3)
    assert np.count_nonzero(wide > 1.0) == 9


def test_the_first_frame_fixes_frame_and_scale() -> None:
    first = sheet()
    one = shot_of(Look(), first, SIZE)
    assert one.centre == pytest.approx((0, 0), abs=0.05)
    assert one.width == pytest.approx(1.25 * 4 * 0.97, rel=0.05)
    painter = BodyPainter(one, SIZE)
    whole = painter.paint(first).astype(int)
    # a tenth of the mass is darker on the same scale, and half of the places fill half of the frame
    assert painter.paint(replace(first, mass=first.mass / 10)).mean() < 0.8 * whole.mean()
    near = painter.paint(replace(first, position=first.position / 2)).astype(int)
    assert near[48, 10].sum() < 0.3 * whole[48, 40].sum()
    assert whole.dtype == int
    assert painter.paint(first).shape == (*SIZE, 3)
    assert shot_of(Look(width=9.0), first, SIZE).width == 9.0


@pytest.mark.parametrize("count", [1, 2])
def test_bodies_at_one_point_or_one_body_have_a_picture(count: int) -> None:
    still = BodiesThen(
        0.0, 0, np.full((count, 3), 1e6), np.zeros((count, 3)), np.zeros(count), np.ones(count, np.uint8)
    )
    one = shot_of(Look(colour="speed"), still, SIZE)
    assert one.width > 0
    assert one.fast > one.slow
    assert one.white > 0
    assert BodyPainter(one, SIZE).paint(still).shape == (*SIZE, 3)


def test_colours_of_speed_are_amber_and_blue() -> None:
    painted = BodyPainter(shot(colour="speed", white=5.0), SIZE).paint(sheet()).astype(int)
    left, right = painted[30:60, 30:60].mean((0, 1)), painted[30:60, 100:130].mean((0, 1))
    assert left[0] > left[2] + 20
    assert right[2] > right[0] + 20


REFUSED = {
    "colour": (Pictures(movie=Path("a.gif"), colour="heat"), "unknown colour 'heat'; wanted one of density, speed"),
    "projection": (Pictures(movie=Path("a.gif"), projection="yx"), "unknown projection 'yx'; wanted one of xy, xz, yz"),
    "show": (Pictures(movie=Path("a.gif"), show="disc,dsic"), "unknown component 'dsic'"),
    "nobody": (Pictures(movie=Path("a.gif"), show="stars"), "--show stars: there are no such bodies; there are halo"),
    "width": (Pictures(movie=Path("a.gif"), width=0.0), "--width 0: wanted a finite length above zero"),
    "name": (Pictures(movie=Path("a.avi")), "--movie a.avi: animations are GIF or MP4"),
    "rate": (Pictures(movie=Path("a.gif"), fps=80), "--fps 80: wanted more than 0 and at most 50 frames per second"),
    "no film": (Pictures(colour="speed"), "--colour needs --movie"),
    "no frames": (Pictures(movie_every=3), "--movie-every needs --movie"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_film_can_be_is_refused(name: str) -> None:
    pictures, message = REFUSED[name]
    with pytest.raises(InputError) as refused:
        runner.start(bodies=8, steps=2, output=Output(out=Path("a.h5"), pictures=pictures)).execute()
    assert message in str(refused.value)
    assert not list(Path().glob("a.*"))


def begin(steps: int, **pictures: Any) -> runner.GravityRun:
    film = Pictures(size=(64, 96), **pictures)
    return runner.start(bodies=50, seed=2, steps=steps, dt=0.01, output=Output(out=Path("run.h5"), pictures=film))


def again(steps: int | None, **pictures: Any) -> runner.GravityRun:
    film = Pictures(size=(64, 96) if "movie" in pictures else None, **pictures)
    return runner.resume(Path("run.h5"), steps=steps, device=None, output=Output(pictures=film))


def frames(path: str) -> list[Any]:
    with Image.open(path) as image:
        film: Any = image
        return [np.asarray((film.seek(n), film.convert("RGB"))[1]) for n in range(film.n_frames)]


def test_a_resumed_run_films_the_rest_on_the_same_scale() -> None:
    begin(8, movie=Path("first.gif"), movie_every=2, colour="speed").execute()
    with h5py.File("run.h5") as file:
        kept = film_from_json(np.asarray(file["lanewise"].attrs["film"]).item().decode())
    assert (kept.every, kept.shot.colour) == (2, "speed")
    assert len(frames("first.gif")) == 5
    with pytest.raises(InputError, match=r"first.gif exists, and no film is continued in its file; .* from step 8 on"):
        again(4, movie=Path("first.gif"))
    with pytest.raises(
        InputError, match="--width cannot be given with --resume: the animation keeps the look of its first part"
    ):
        again(4, movie=Path("rest.gif"), width=3.0)
    silent = again(4)
    assert silent.note == "the film of this run ends here; --movie FILE makes one of the rest, on its scale"
    silent.execute()  # the checkpoint keeps the scale
    rest = again(6, movie=Path("rest.gif"))
    assert not rest.note
    rest.execute()
    assert rest.state.film == kept
    assert len(frames("rest.gif")) == 3
    assert rest.finish()["movie"] == "rest.gif"


def test_a_film_of_a_checkpoint_is_checked() -> None:
    plan = FilmPlan(shot(), 3)
    assert film_from_json(film_to_json(plan)) == plan
    for damage in (
        "{}",
        film_to_json(replace(plan, every=0)),
        film_to_json(FilmPlan(shot(white=-1.0), 3)),
        film_to_json(FilmPlan(shot(slow=4.0), 3)),
    ):
        with pytest.raises(InputError, match="damaged checkpoint: its film"):
            film_from_json(damage)
    with pytest.raises(InputError, match="unknown projection"):
        film_from_json(film_to_json(FilmPlan(shot(projection="ab"), 3)))


def test_films_and_pictures_from_python() -> None:
    particles = make_initial_conditions("galaxies", 60, 2)
    simulation = Simulation(make_bodies(particles), softening=0.05)
    look: dict[str, Any] = {"component": particles.component, "show": "disc", "size": (64, 96)}
    with Film(simulation, "a.gif", fps=10, **look) as film:
        simulation.run(6, dt=0.01, callback=film, every=2)
    assert len(frames("a.gif")) == 3
    picture(simulation, "a.png", colour="speed", projection="xz", **look)
    with Image.open("a.png") as image:
        assert image.size == (96, 64)
    with pytest.raises(InputError, match=r"component is float64 of shape \(2,\); wanted integers of shape \(60,\)"):
        picture(simulation, "b.png", component=[1.0, 2.0])
    with pytest.raises(InputError, match="pictures are PNG"):
        picture(simulation, "b.jpg")
    title = film_title(particles.component, shot(show="disc", colour="speed"))
    assert title == "30 of 60 bodies (disc), xy plane, slow amber, fast blue"
