"""`lw.view`: simulations, records and arrays of loops of one's own."""

from __future__ import annotations

import math
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.live import feed as feeds
from lanewise.live.clouds import CloudScene, shown_by_default
from lanewise.live.feed import RESTS_SECONDS, Feed
from lanewise.live.fields import FieldScene
from lanewise.live.frame import decode
from lanewise.live.protocol import GONE, PATH
from lanewise.live.recording import read_recording
from lanewise.live.scenes import Asked, LaterFrames, finished
from lanewise.live.server import Server, Serving
from lanewise.runtime.aside import Aside
from lanewise.sims import gravity
from lanewise.sims.boids import Flock
from lanewise.sims.common.options import GivenOptions
from lanewise.sims.common.viewing import served
from lanewise.sims.lbm import Simulation
from lanewise.support.errors import InputError
from tests.live.sparks import Spark, sparks
from tests.live.talk import Talk, talking
from tests.live.test_server import Counting

pytest.importorskip("websockets")


def test_records_of_an_own_loop() -> None:
    array = sparks()
    with lw.view(array, colour="heat", heading="velocity", port=0, quiet=True) as view, talking(view._server) as talk:
        assert view.url.startswith(f"http://127.0.0.1:{view._server.port}/#t=")
        while not view.viewers:
            pass
        for step in range(5):
            array.heat = np.float32(array.heat) + 1
            view.update(step=step, time=step / 10)
        header, body = talk.frame()
        assert (header.kind, header.count, header.components) == ("arrows", 40, 12)
        assert len(body) == 480
        assert view._feed.asked.field == "heat"
    assert not view._server._thread.is_alive()


@lw.record
class Core:
    charge: lw.f64
    spins: lw.ivec3


@lw.record
class Carrier:
    position: lw.vec3
    core: Core
    bound: lw.u32
    force: lw.vec3


def carriers() -> Any:
    array = Carrier.array(position=np.eye(3), bound=[1, 2, 2**32 - 1])
    array.core.charge = [math.nan, 0.5, -math.inf]
    array.core.spins = np.arange(9).reshape(3, 3)
    array.force = [[0, math.inf, 1], [1, 2, 3], [-0.0, math.nan, 1e38]]
    return array


def test_a_picked_element_has_all_its_fields_whatever_they_are() -> None:
    """What colours nothing may be not finite."""
    array = carriers()
    with lw.view(array, colour="bound", port=0, quiet=True) as view, talking(view._server) as talk:
        header, _ = talk.frame()
        seen = dict[int, Any]()
        for place in range(3):
            talk.say("pick", row=place, order=header.order)
            end = time.monotonic() + 20
            while not view._feed._picks and time.monotonic() < end:
                pass
            view.update(place)
            fields = talk.text("picked", row=place)["fields"]
            seen[fields.pop("row")] = fields
    assert seen[0] == {
        "position": [1, 0, 0], "core.charge": "nan", "core.spins": [0, 1, 2], "bound": 1, "force": [0, "inf", 1],
    }  # fmt: skip
    assert (seen[1]["core.charge"], seen[1]["force"]) == (0.5, [1, 2, 3])
    assert (seen[2]["core.charge"], seen[2]["force"][:2], seen[2]["bound"]) == ("-inf", [0, "nan"], 2**32 - 1)


def test_a_pick_that_fails_ends_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    said = list[Any]()
    with lw.view(sparks(), port=0, quiet=True) as view:
        monkeypatch.setattr(view._feed, "say", said.append)
        monkeypatch.setattr(CloudScene, "picked", lambda *_: 1 // 0)
        for step in range(2):
            view._feed.pick(0, said.append)
            view.update(step)
    assert said == ["view: no fields of an element: integer division or modulo by zero", {}, {}]


class Slow(Counting):
    """Its frames are on their way for a while."""

    def frames(self, asked: Asked) -> Any:
        made = super().frames(asked)[0]

        def later() -> list[bytes]:
            time.sleep(0.2)
            return [made]

        return [LaterFrames(later)]


def test_frames_that_are_on_their_way_are_recorded_when_a_run_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = GivenOptions({"view": True, "view_port": 0, "view_record": tmp_path / "run.lwv"})

    def run() -> None:
        with served(Slow(), given, None) as feed:
            feed.make()
            raise ZeroDivisionError

    def own_loop() -> None:
        with lw.view(sparks(), port=0, quiet=True, record=tmp_path / "own.lwv", rate=1e6) as view:
            for _ in range(2):
                view.update()
            raise ZeroDivisionError

    brought = Aside.brought

    def slow(aside: Aside, *given: Any) -> bytearray:
        time.sleep(0.2)
        return brought(aside, *given)

    monkeypatch.setattr(Aside, "brought", slow)
    for failing in (run, own_loop):
        with pytest.raises(ZeroDivisionError):
            failing()
    for name, wanted in (("run", [1, 2]), ("own", [1, 2, 3])):
        found = read_recording(tmp_path / f"{name}.lwv")
        assert found.whole
        assert [sequence for sequence, _ in found.looks] == wanted
        assert [found.frames(n).sequence for n in range(len(wanted))] == wanted
    assert "no frame" not in capsys.readouterr().err


@pytest.mark.parametrize("what", ["cloud", "field"])
@pytest.mark.parametrize("failing", ["statistics", "submit", "another"])
def test_copies_are_given_back_where_their_frames_are_not_made(what: str, failing: str) -> None:
    array, field = sparks(), np.ones((5, 6), np.float32)
    scene: Any = CloudScene(array, shown_by_default(array.record), {}, lambda: (0, 0.0))
    if what == "field":
        scene = FieldScene(field.shape, "cpu", {"t": lambda: field}, {}, lambda: (0, 0.0))
    feed: Any = Feed(scene)
    if failing == "submit":
        feed._finisher.shutdown()
    elif failing == "statistics":
        feed._statistics = lambda step: 1 / 0
    for _ in range(5):
        if failing == "another":

            def fail() -> Any:
                raise ZeroDivisionError

            with pytest.raises(ZeroDivisionError):
                finished([LaterFrames(fail), *scene.frames(feed.asked)])
        else:
            with pytest.raises((RuntimeError, ZeroDivisionError)):
                feed.make()
    assert [s.free for s in scene._aside._snapshots] == [True]


def test_frames_that_cannot_be_submitted_are_not_waited_for() -> None:
    feed = Feed(Slow())
    feed._finisher.shutdown()
    with pytest.raises(RuntimeError):
        feed.make()
    feed.flush()


@pytest.mark.parametrize("shape", [(6, 9), (4, 5, 6)])
def test_arrays_are_pictures(shape: tuple[int, ...]) -> None:
    picture = np.linspace(0, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)
    with lw.view(picture, port=0, quiet=True) as view:
        frames = finished(view._feed.scene.frames(view._feed.asked))
    header, body = decode(frames[0])
    assert header.kind == "slice"
    assert (header.total, header.first) == shape[-2:]
    assert [decode(f)[0].kind for f in frames] == [*["slice", "volume"][: len(shape) - 1], "statistics"]
    assert view._feed.scene.about["domain"][1] == [*shape[::-1], 0][:3], "a picture has no depth to be seen nearer by"
    first = np.frombuffer(body, np.uint8).reshape(shape[-2:])[0]
    assert first[0] < first[-1]
    assert (first.min() > 200) == (len(shape) == 2), "row 0 of a matrix is on top"


@pytest.mark.parametrize("make", [
    lambda: gravity.Simulation(gravity.make_bodies(gravity.make_initial_conditions("plummer", 64, 1)), softening=0.1),
    lambda: Flock(agents=60, seed=1),
    lambda: Simulation(lattice="D2Q9", shape=(12, 14), viscosity=0.05),
])  # fmt: skip
def test_simulations_are_recorded_as_they_run(make: Any, tmp_path: Path) -> None:
    simulation, path = make(), tmp_path / "run.lwv"
    run = simulation.run
    with lw.view(simulation, port=0, quiet=True, record=path, rate=1000):
        run(20, dt=1e-3) if not isinstance(simulation, Simulation) else run(20)
    found = read_recording(path)
    assert found.whole
    assert found.frames(len(found.looks) - 1).step == 20


@lw.stencil(lw.D2Q5)
def heat(t: lw.Field[lw.f32], rate: lw.f32) -> lw.f32:
    return t[0] + rate * (t[1] + t[2] + t[3] + t[4] - 4 * t[0])


@pytest.mark.parametrize("make", [
    lambda: gravity.Simulation(gravity.make_bodies(gravity.make_initial_conditions("plummer", 64, 1)), softening=0.1),
    lambda: Flock(agents=60, seed=1),
    lambda: Simulation(lattice="D2Q9", shape=(12, 14), viscosity=0.05),
])  # fmt: skip
def test_what_is_seen_of_a_state_that_rests_is_that_state(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though no frame is due for a long time, as between two cells of a notebook."""
    now = 1.0
    monkeypatch.setattr(feeds, "time", SimpleNamespace(monotonic=lambda: now))
    simulation = make()
    run = partial(simulation.run, dt=1e-3) if isinstance(simulation, gravity.Simulation) else simulation.run
    with lw.view(simulation, port=0, quiet=True, rate=0.01) as view, talking(view._server):
        while not view.viewers:
            time.sleep(0.01)
        for steps in (1, 40, 3):
            run(steps)
            view._feed.flush()
            assert view._feed.newest().step == simulation.step
            now += 1.01 * RESTS_SECONDS
        made = view._feed.made
        for _ in range(20):
            run(1)
        assert view._feed.made <= made + 1, "single steps are no rests"


def test_sites_are_seen_as_they_step(tmp_path: Path) -> None:
    start = np.random.default_rng(4).random((16, 20)).astype(np.float32)
    alone, plate = heat.sites((16, 20), t=start), heat.sites((16, 20), t=start)
    heat.run(alone, 60, rate=0.2)
    fields = {"t": lambda: heat.field(plate, "t")}
    with lw.view(plate, fields=fields, port=0, quiet=True, record=tmp_path / "t.lwv", rate=2000):
        heat.run(plate, 60, rate=0.2)
    found = read_recording(tmp_path / "t.lwv")
    assert len(found.looks) > 1
    header, _ = decode(found.frames(len(found.looks) - 1).frames[0])
    assert (header.kind, header.step, header.first, header.total) == ("slice", 60, 20, 16)
    assert np.array_equal(heat.field(plate, "t"), heat.field(alone, "t"))


class Other:
    pass


@pytest.mark.parametrize(
    ("what", "options", "message"),
    [
        (Other(), {}, "found Other; a view shows a simulation of a product, sites, an array of records"),
        (np.zeros(3), {}, "found ndarray of shape .* a view shows"),
        (np.zeros((3, 3), complex), {}, "found ndarray of shape .* a view shows"),
        (np.zeros((0, 3)), {}, "found ndarray of shape .* a view shows"),
        (np.zeros((3, 3)), {"colour": "heat"}, "colour='heat' is of records: an array has one value at each place"),
        (sparks(), {"colour": "cold"}, "cold"),
        (sparks(), {"fields": {}}, "fields= are of sites, found RecordArray; leave it out"),
        (heat.sites((8, 8)), {}, "sites say nothing of what is seen of them: give fields=, as"),
        (heat.sites((8, 8)), {"fields": {"t": 3}}, "wanted names with functions of no arguments"),
        (sparks(), {"heading": "heat"}, "heat"),
        (sparks(), {"rate": 0.0}, "rate=0: wanted frames per second, at least 0.001"),
        (sparks(), {"rate": math.nan}, "rate=nan: wanted frames per second, at least 0.001"),
        (sparks(), {"rate": 1e-320}, "wanted frames per second, at least 0.001"),
        (sparks(), {"port": 70_000}, "port=70000: wanted one from 0 to 65535"),
        (sparks(), {"record": "none/run.lwv"}, "the folder none does not exist"),
    ],
)
def test_what_cannot_be_shown_is_refused(what: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(lw.LanewiseError, match=message):
        lw.view(what, **{"port": 0, **options})


def fails() -> Any:
    raise ZeroDivisionError("mine")


def is_interrupted(*_: Any) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("old", [None, "mine"], ids=["new", "replaced"])
@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"fields": {"t": fails}}, ZeroDivisionError),
        ({"fields": {"t": lambda: None}}, InputError),
        ({"host": "a" * 80}, InputError),
        ({"wait": True}, KeyboardInterrupt),
    ],
    ids=["field", "shape", "host", "interrupt"],
)
def test_a_view_that_does_not_begin_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    options: dict[str, Any],
    error: type[BaseException],
    old: str | None,
) -> None:
    """No server that holds its port and nobody can close, and no file that a second attempt would be refused for."""
    path, plate, begun = tmp_path / "t.lwv", heat.sites((8, 8)), list[Server]()
    if old is not None:
        path.write_text(old)
    serving = Serving(port=0, host=options.get("host", "127.0.0.1"), unsafe=True)
    monkeypatch.setattr("lanewise.live.view.Serving", lambda **_: serving)
    monkeypatch.setattr("lanewise.live.view.Server", lambda *given: begun.append(Server(*given)) or begun[-1])
    monkeypatch.setattr(Feed, "wait_for_viewer", is_interrupted)
    given = {"fields": {"t": lambda: heat.field(plate, "t")}, "wait": False, **options}
    given.pop("host", None)
    with pytest.raises(error):
        lw.view(plate, record=path, overwrite=old is not None, quiet=True, **given)
    assert [server._thread.is_alive() for server in begun] == [False]
    if error is KeyboardInterrupt:  # it had a frame
        assert read_recording(path).whole
    else:
        assert (path.read_text() if path.exists() else None) == old
    heat.run(plate, 1, rate=0.1)


@pytest.mark.parametrize(
    ("field", "found"),
    [
        (lambda: None, "None"),
        (lambda: np.zeros((8, 9)).tolist(), "[[0.0"),
        (lambda: np.zeros((9, 8)), "<array of float64 with shape (9, 8)>"),
        (lambda: np.zeros((8, 9), complex), "<array of complex128 with shape (8, 9)>"),
        (lambda: np.zeros((8, 9, 2)), "<array of float64 with shape (8, 9, 2)>"),
        (lambda: 3.0, "3.0"),
    ],
)
def test_fields_of_sites_have_a_number_at_each_site(field: Any, found: str) -> None:
    with pytest.raises(InputError, match="wanted an array of real numbers of NumPy or CuPy with shape") as refused:
        lw.view(heat.sites((8, 9)), fields={"t": field}, port=0, quiet=True)
    assert f"the field t is {found}" in str(refused.value)


FORGOTTEN = """
import os, sys, warnings
import lanewise as lw
from tests.live.sparks import sparks
view = lw.view(sparks(), port=0, quiet=True, record=sys.argv[1], rate=1000)
print(view._server.port, view._server.token, flush=True)
sys.stdin.readline()
warnings.simplefilter("ignore")  # of forks beside threads
for step in range(5):
    view.update(step)
    if step == 2 and sys.argv[2] == "forks":
        if not os.fork():
            view.close()  # which would wait for threads that a fork has not
            sys.exit()
        os.wait()
if sys.argv[2] == "fails":
    raise ZeroDivisionError
"""


@pytest.mark.slow_cases("fails", "forks")
@pytest.mark.parametrize("how", ["ends", "fails", "forks"])
def test_a_view_that_nobody_closes_ends_with_its_program(tmp_path: Path, how: str) -> None:
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect

    command = [sys.executable, "-c", FORGOTTEN, str(path := tmp_path / "run.lwv"), how]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True, cwd=Path(__file__).parents[2])  # fmt: skip
    assert child.stdout is not None
    port, token = child.stdout.readline().split()
    with connect(f"ws://127.0.0.1:{port}{PATH}") as connection:
        talk = Talk(connection)
        talk.say("hello", token=token)
        talk.text("welcome")
        _, complaints = child.communicate("go on\n", timeout=60)
        assert talk.text("state", ended=True)
        with pytest.raises(ConnectionClosed) as closed:
            talk.message()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == GONE
    assert ("ZeroDivisionError" in complaints) if how == "fails" else complaints == ""
    found = read_recording(path)
    assert found.whole
    assert list(found.damaged()) == []


def test_the_address_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    view = lw.view(sparks(), port=0)
    printed = capsys.readouterr()
    assert printed.err.startswith(f"view: {view.url}   (from your machine: ssh -L {view._server.port}:127.0.0.1:")
    assert printed.out == ""
    view.close()
    view.close()


def test_a_closed_view_says_so() -> None:
    view = lw.view(sparks(), port=0, quiet=True)
    assert repr(view).startswith("<view at http://127.0.0.1:")
    view.close()
    assert repr(view) == "<view, closed>"
    with pytest.raises(InputError, match=r"this view is closed; lw\.view"):
        view.update(6)
    with pytest.raises(InputError, match=r"this view is closed; lw\.view"):
        view.widget()
    view.close()


@lw.elementwise
def warmth(spark: Spark) -> lw.f32:
    return 2 * spark.heat + spark.position.x


@lw.function
def far(spark):
    return lw.length(spark.position)


@lw.elementwise
def heating(spark: Spark) -> lw.f32:
    spark.heat += 1
    return spark.heat


@pytest.mark.parametrize(("colour", "oracle"), [
    (warmth, lambda heat, place: 2 * heat + place[:, 0]),
    (far, lambda heat, place: np.linalg.norm(place, axis=1)),
])  # fmt: skip
def test_records_are_coloured_by_a_function(colour: Any, oracle: Any) -> None:
    array = sparks()
    wanted = oracle(np.asarray(array.heat), np.asarray(array.position))
    with lw.view(array, colour=colour, port=0, quiet=True) as view:
        scene = view._feed.scene
        assert scene.about["fields"][0] == f"{colour.__name__}()"
        header, body = decode(finished(scene.frames(view._feed.asked))[0])
    rows = np.frombuffer(body, "<u2").reshape(-1, 4)[:, 3] / 65535 * (header.high - header.low) + header.low
    assert np.sort(rows) == pytest.approx(np.sort(wanted), abs=1e-3 * float(np.ptp(wanted)))


def test_a_function_that_changes_records_colours_none() -> None:
    array = sparks()
    with pytest.raises(lw.CompileError, match="heat"):
        lw.view(array, colour=heating, port=0, quiet=True)
    assert np.asarray(array.heat).tolist() == list(range(40))
    with pytest.raises(InputError, match="colour=3: wanted the name of a field, or an elementwise function"):
        lw.view(array, colour=3, port=0, quiet=True)


@lw.elementwise
def momentum(body: gravity.Body) -> lw.f32:
    return body.mass * lw.length(body.velocity)


def test_a_simulation_is_coloured_by_a_function_or_by_one_of_its_fields() -> None:
    bodies = gravity.make_bodies(gravity.make_initial_conditions("plummer", 64, 1))
    simulation = gravity.Simulation(bodies, softening=0.1)
    wanted = np.asarray(bodies.mass) * np.linalg.norm(np.asarray(bodies.velocity), axis=1)
    with lw.view(simulation, colour=momentum, port=0, quiet=True) as view:
        assert view._feed.asked.field == "momentum()"
        assert view._feed.scene.about["fields"] == ["momentum()", "speed", "mass", "kinetic energy"]
        header, _ = decode(finished(view._feed.scene.frames(view._feed.asked))[0])
        assert (header.low, header.high) == pytest.approx((wanted.min(), wanted.max()), rel=1e-5)
        simulation.run(3, dt=1e-3)
    with lw.view(simulation, colour="mass", port=0, quiet=True) as view:
        assert view._feed.asked.field == "mass"
    with pytest.raises(InputError, match="unknown field 'weight'; wanted one of speed, mass, kinetic energy"):
        lw.view(simulation, colour="weight", port=0, quiet=True)
    with pytest.raises(InputError, match="heading='velocity' is of records: a simulation says itself"):
        lw.view(simulation, heading="velocity", port=0, quiet=True)


@pytest.mark.parametrize(
    "what",
    [sparks, lambda: np.ones((3, 4)), lambda: np.ones((3, 4, 5), np.float32)],
    ids=["records", "matrix", "field"],
)
def test_what_is_there_is_seen_before_any_update(what: Any) -> None:
    with lw.view(what(), port=0, quiet=True) as view, talking(view._server) as talk:
        header, _ = talk.frame()
        assert header.step == 0
        assert header.count


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"step": "x"}, "the step is 'x'; wanted an integer"),
        ({"step": -3}, "the step is -3; wanted"),
        ({"step": 1.5}, "the step is 1.5; wanted"),
        ({"step": 2**60}, r"the step is 1152921504606846976; wanted an integer from 0 to 9,007,199,254,740,991"),
        ({"step": 6, "time": math.nan}, "the time is nan; wanted a finite number"),
    ],
)
def test_moments_that_are_none_are_refused(given: dict[str, Any], found: str) -> None:
    with lw.view(sparks(), port=0, quiet=True) as view:
        with pytest.raises(InputError, match=found):
            view.update(**given)
        view.update(np.int64(6))


def test_recordings_have_their_ending(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"wanted a recording's name to end in \.lwv"):
        lw.view(sparks(), port=0, quiet=True, record=tmp_path / "foo.txt")


def test_arrays_that_no_view_has_are_described() -> None:
    with pytest.raises(InputError, match=r"found ndarray of shape \(10,\) and float64; a view shows"):
        lw.view(np.zeros(10), port=0, quiet=True)
