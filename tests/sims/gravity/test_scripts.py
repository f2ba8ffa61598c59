"""Initial conditions of users' own: functions, and functions of scripts, with every way in which they give no bodies."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import lanewise as lw
from lanewise.io.particles import Particles
from lanewise.sims.gravity import make_bodies, make_initial_conditions, runner
from lanewise.sims.gravity.command import say
from lanewise.sims.gravity.options import Output
from lanewise.support.errors import InputError

SCRIPT = """\
import sys
import numpy as np
from beside import RADIUS

print("made", sys.argv)

def ring(bodies=6, seed=0, radius=RADIUS, tilt=(0, 0)):
    angle = np.linspace(0, 2 * np.pi, bodies, endpoint=False) + 0.01 * seed + sum(tilt)
    position = radius * np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
    return {"position": position, "velocity": position[:, [1, 0, 2]] * [-1, 1, 0], "mass": np.full(bodies, 1 / bodies)}

def needs(bodies, seed):
    return ring(bodies, seed)

def fixed():
    return np.eye(3), np.zeros((3, 3)), np.ones(3)

def hot():
    place = np.eye(3)
    place[1, 2] = np.nan
    return place, np.zeros((3, 3)), np.ones(3)

def flat():
    return {"position": np.zeros((4, 2)), "velocity": np.zeros((4, 3)), "mass": 1.0}

def words():
    return {"position": [["a", "b", "c"]], "velocity": np.zeros((1, 3)), "mass": 1.0}

def misnamed():
    return dict(position=np.eye(3), velocity=np.eye(3), masses=1.0)

def poor():
    return dict(position=np.eye(3))

def nothing():
    return None

def fails():
    return 1 / 0

def quits():
    sys.exit("no bodies today")

def talks():
    raise ValueError("two\\n  lines")

async def later():
    return fixed()

def huge():
    return 1e30 * np.eye(3), np.zeros((3, 3)), np.ones(3)

def weightless():
    return np.zeros((1, 3)), np.zeros((1, 3)), np.zeros(1)

number = 7
"""
HEADS = {
    name: 1 + SCRIPT.splitlines().index(f"def {name}():")
    for name in ("fixed", "hot", "flat", "words", "misnamed", "poor", "nothing", "fails", "quits")
}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("start.py").write_text(SCRIPT)
    Path("beside.py").write_text("RADIUS = 2.0\n")
    Path("empty.py").write_text("x = 1\n")
    Path("many.py").write_text("".join(f"def f{n}():\n    return 0\n" for n in range(45)))
    Path("broken.py").write_text("def f():\n    return 1 +\n")
    monkeypatch.delitem(sys.modules, "beside", raising=False)


def test_a_script_gives_bodies(capsys: pytest.CaptureFixture[str]) -> None:
    before = list(sys.path), list(sys.argv)
    made = make_initial_conditions("start.py:ring")
    assert len(made) == 6
    assert made.mass.sum() == pytest.approx(1)
    assert np.linalg.norm(made.position, axis=1) == pytest.approx(2.0)
    assert (list(sys.path), list(sys.argv)) == before
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("made [")
    assert captured.err.endswith("start.py']\n")


def test_its_call_has_arguments_bodies_and_a_seed() -> None:
    plain = make_initial_conditions("start.py:ring", 8)
    turned = make_initial_conditions(" start.py:ring( radius = 3, tilt=(0.25, 0.25) )".strip(), 8, 5)
    assert len(plain) == len(turned) == 8
    angle = np.arctan2(turned.position[0, 1], turned.position[0, 0])
    assert (angle, np.linalg.norm(turned.position[0])) == pytest.approx((0.55, 3.0))
    assert len(make_initial_conditions("start.py:needs")) == 16384
    again = make_initial_conditions("start.py:ring(radius=3, tilt=(0.25, 0.25))", 8, 5)
    assert again.position.tobytes() == turned.position.tobytes()


REFUSED = {
    "absent.py:ring": "absent.py: there is no such file",
    "start.py": "start.py: which function? wanted start.py:ring, start.py:needs, start.py:fixed, start.py:hot",
    "start.py:": "start.py: which function? wanted start.py:ring",
    "empty.py": "empty.py: which function? it has none",
    "broken.py:f": "broken.py cannot be run: line 2: SyntaxError",
    "start.py:rign": "start.py has no function 'rign'; did you mean 'ring'? wanted start.py:ring, ",
    "start.py:number": "start.py: number is no function, found 7; wanted start.py:ring",
    "start.py:ring(": "'ring(' is no call of a function; wanted start.py:function or start.py:function(name=value, ...)",
    "start.py:ring + 1": "'ring + 1' is no call of a function",
    "start.py:ring(2.0)": "arguments have names here; wanted start.py:function",
    "start.py:ring(**x)": "** has no values here; wanted name=value",
    "start.py:ring(radius=2 * x)": "radius=2 * x: wanted a value as Python writes it",
    "start.py:ring(bodies=7)": "bodies is an option; wanted --bodies next to it",
    "start.py:ring(seed=7)": "seed is an option; wanted --seed next to it",
    "start.py:ring(raduis=7)": "start.py:7: ring(): got an unexpected keyword argument 'raduis'; did you mean 'radius'?",
    "start.py:hot": f"start.py:{HEADS['hot']}: hot() gives bodies that are none: position of body 1 is nan in z; wanted",
    "start.py:flat": f"start.py:{HEADS['flat']}: flat() gives bodies that are none: position has shape (4, 2); wanted (n, 3)",
    "start.py:words": f"start.py:{HEADS['words']}: words() gives bodies that are none: position has dtype <U1; wanted real",
    "start.py:misnamed": "misnamed() gives bodies that are none: 'masses' is nothing that bodies have; did you mean 'mass'?",
    "start.py:poor": "poor() gives bodies that are none: there is no velocity and no mass; wanted position, velocity, mass",
    "start.py:nothing": "nothing() gives bodies that are none: found None; wanted position, velocity and mass",
    "start.py:fails": f"start.py:{HEADS['fails']}: fails() failed: line {HEADS['fails'] + 1}: ZeroDivisionError: division",
    "start.py:talks": "talks() failed: line 45: ValueError: two lines",
    "start.py:later": "start.py:47: later() is an async function, which nothing awaits here; wanted def",
    "many.py": "which function? wanted many.py:f0, many.py:f1, many.py:f2, many.py:f3, many.py:f4, many.py:f5, many.py:f6, many.py:f7 or one of 37 others",
    "many.py:f444": "many.py has no function 'f444'; did you mean 'f44'? wanted many.py:f0, many.py:f1",
    "start.py:quits": f"quits() failed: line {HEADS['quits'] + 1}: SystemExit: no bodies today",
}  # fmt: skip


@pytest.mark.parametrize("ic", REFUSED)
def test_what_gives_no_bodies_is_refused(ic: str) -> None:
    with pytest.raises(InputError) as refused:
        make_initial_conditions(ic)
    assert REFUSED[ic] in str(refused.value)


def test_bodies_that_are_too_far_away_name_their_script() -> None:
    with pytest.raises(InputError, match=r"^start.py:huge: position of body 0 is \(1e\+30, 0, 0\); forces in f32"):
        runner.start(ic="start.py:huge", device="cpu")


def test_a_body_without_weight_has_no_ratio_of_energies(capsys: pytest.CaptureFixture[str]) -> None:
    run = runner.start(ic="start.py:weightless", method="tree", steps=1, dt=0.1, device="cpu")
    run.execute()
    say(run, run.finish())
    said = capsys.readouterr().out
    assert "(of 1 body against all pairs in float64)" in said
    assert said.endswith("angular momentum drift 0.000e+00, no potential energy\n")


def test_options_that_a_function_does_not_take_are_refused() -> None:
    with pytest.raises(InputError, match=r"fixed\(\) takes no seed; leave the seed out"):
        make_initial_conditions("start.py:fixed", seed=3)
    with pytest.raises(InputError, match=r"fixed\(\) gives 3 bodies, not 7; leave --bodies out"):
        make_initial_conditions("start.py:fixed", 7)
    assert len(make_initial_conditions("start.py:fixed", 3)) == 3
    with pytest.raises(InputError, match="plummer takes no radius: arguments of a script stand in its name"):
        make_initial_conditions("plummer", 10, radius=2.0)


def _particles() -> Particles:
    return Particles.of(np.eye(3), np.zeros((3, 3)), [1.0, 2.0, 3.0], ids=[5, 3, 9], component=2, time=4.0)


def _records() -> Any:
    return make_bodies(_particles(), device="cpu")


def _structured() -> Any:
    made = np.zeros(3, [("mass", "f4"), ("velocity", "f8", 3), ("position", "f8", 3)])
    made["mass"], made["position"] = [1, 2, 3], np.eye(3)
    return made


@pytest.mark.parametrize(
    "function", [_particles, _records, _structured, lambda: (np.eye(3), np.zeros((3, 3)), [1, 2, 3])]
)
def test_a_function_gives_them_in_any_form(function: Callable[[], Any]) -> None:
    made = make_initial_conditions(function)
    assert made.position.tolist() == np.eye(3).tolist()
    assert made.mass.tolist() == [1.0, 2.0, 3.0]
    if function is _particles:
        assert (made.ids.tolist(), made.component.tolist(), made.time) == ([5, 3, 9], [2, 2, 2], 4.0)


def test_a_function_is_called_with_its_arguments_and_fails_as_itself() -> None:
    def row(bodies: int, *, gap: float) -> dict[str, Any]:
        if gap < 0:
            raise ArithmeticError("a gap below zero")
        place = np.zeros((bodies, 3))
        place[:, 0] = gap * np.arange(bodies)
        return {"position": place, "velocity": np.zeros((bodies, 3)), "mass": 1.0}

    assert make_initial_conditions(row, 4, gap=2.0).position[:, 0].tolist() == [0, 2, 4, 6]
    with pytest.raises(ArithmeticError, match="below zero"):
        make_initial_conditions(row, 4, gap=-1.0)
    with pytest.raises(InputError, match=r"test_scripts.py:\d+: row\(\): missing a required argument: 'gap'"):
        make_initial_conditions(row, 4)


def _begin(ic: str, steps: int, **output: Any) -> runner.GravityRun:
    run = runner.start(ic=ic, bodies=12, seed=2, steps=steps, dt=0.01, softening=0.1, output=Output(**output))
    run.execute()
    return run


def test_a_checkpoint_keeps_the_script_and_goes_on_without_it() -> None:
    ic = "start.py:ring(radius=1.5)"
    whole = _begin(ic, 9)
    _begin(ic, 4, out=Path("part.h5"))
    with h5py.File("part.h5") as file:
        assert file["lanewise"].attrs["ic"] in (ic, ic.encode())
        assert bytes(np.asarray(file["lanewise/ic_script"])).decode() == SCRIPT

    def resumed() -> runner.GravityRun:
        run = runner.resume(Path("part.h5"), steps=5, device=None, output=Output(out=Path("rest.h5"), overwrite=True))
        run.execute()
        return run

    for text, said in (
        (SCRIPT, ""),
        (SCRIPT + "# more\n", "the script of start.py:ring(radius=1.5) has changed"),
        (None, ""),
    ):
        Path("start.py").unlink(missing_ok=True)
        if text is not None:
            Path("start.py").write_text(text)
        run = resumed()
        assert run.note.startswith(said)
        assert bool(run.note) == bool(said)
        assert bytes(run.state.simulation.bodies.data) == bytes(whole.state.simulation.bodies.data)
    with h5py.File("rest.h5") as file:
        assert bytes(np.asarray(file["lanewise/ic_script"])).decode() == SCRIPT


def test_a_run_of_a_script_that_fails_leaves_no_file() -> None:
    with pytest.raises(InputError, match="ZeroDivisionError"):
        runner.start(ic="start.py:fails", output=Output(out=Path("none.h5")))
    assert not Path("none.h5").exists()
    assert isinstance(lw.sims.gravity.make_initial_conditions("start.py:fixed"), Particles)
