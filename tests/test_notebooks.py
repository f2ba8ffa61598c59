"""At hand in a notebook and at a prompt: one-line texts, tables, short tracebacks, progress, cells that run again."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.sims import boids, gravity, lbm

SOURCE = Path(lw.__file__).parent


class Body(lw.Record):
    position: lw.vec3
    mass: lw.f32


@lw.pairwise
def pull(target: Body, source: Body, softening2: lw.f32) -> lw.vec3:
    d = source.position - target.position
    return source.mass * lw.rsqrt(lw.dot(d, d) + softening2) ** 3 * d


@lw.elementwise
def misspelled(b: Body) -> lw.f32:
    return b.mas


BODIES = Body.array(position=np.arange(60.0).reshape(20, 3) % 7, mass=1.0)


def state() -> Any:
    return gravity.Body.array(position=np.arange(60.0).reshape(20, 3) % 7, mass=1.0)


# ------------------------------------------------------------ texts and tables


def test_one_line_each() -> None:
    compiled, profile = pull.compile(BODIES, BODIES, 0.1), lw.Profile()
    simulation = gravity.Simulation(state(), softening=0.1, profile=profile).run(3, 1e-3)
    texts = {
        repr(pull): "<lanewise pairwise kernel pull>",
        repr(compiled): f"<pull, compiled for cpu: {compiled.plan.short()}>",
        repr(pull.bind(BODIES, BODIES, 0.1)): "<bound call of pull on cpu>",
        repr(compiled.explain()): "<explanation of pull on cpu: ",
        repr(BODIES): "<20 Body(position: vec3, mass: f32) as ",
        repr(simulation): "<gravity of 20 bodies, step 3, time 0.003, leapfrog, f32 on cpu>",
        repr(boids.Flock(50).run(2)): "<flock of 50 agents, step 2, time 0.0333333, on cpu>",
        repr(
            lbm.Simulation(shape=(16, 16), viscosity=0.1).run(3)
        ): "<flow over 16 x 16 sites, D2Q9, step 3, trt, f32 on cpu>",
        repr(lw.Profile()): "<profile: nothing was measured yet>",
        repr(profile): "<profile: ",
    }
    for text, start in texts.items():
        assert text.startswith(start), text
        assert "\n" not in text
        assert len(text) < 200


def test_tables() -> None:
    compiled, profile = pull.compile(BODIES, BODIES, 0.1), lw.Profile()
    gravity.Simulation(state(), softening=0.1, profile=profile).run(3, 1e-3)
    tuning = pull.tune(BODIES, BODIES, 0.1, seconds=0.5)
    for shown, text in ((BODIES, "<td"), (compiled, "targets"), (profile, "setup"), (tuning, "the default plan"), (compiled.explain(), "why")):  # fmt: skip
        html = shown._repr_html_()
        assert html.count("<table>") == html.count("</table>") == (3 if "<details>" in html else 1)  # what is folded
        assert text in html
    assert BODIES._repr_html_().count("<tr>") == 1 + 8 + 1  # the head, eight records, and that there are more
    assert "&lt;20 Body(" in BODIES._repr_html_()


# ------------------------------------------------------------ tracebacks


def frames(error: BaseException) -> list[str]:
    return [f.name for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).is_relative_to(SOURCE)]


def callback(_: object) -> None:
    misspelled(Body.zeros(3))


MISTAKES = {
    "a call": lambda: misspelled(BODIES),
    "compile": lambda: misspelled.compile(BODIES),
    "an argument": lambda: pull(BODIES, BODIES, "soft"),
    "a setting": lambda: gravity.Simulation(state(), softening=-1.0),
    "explain": lambda: pull.compile(BODIES, BODIES, 0.1).explain(3),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_traceback_has_one_frame_of_lanewise(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LANEWISE_TRACE", raising=False)
    with pytest.raises(lw.LanewiseError) as caught:
        MISTAKES[name]()
    assert len(frames(caught.value)) == 1
    monkeypatch.setenv("LANEWISE_TRACE", "1")
    with pytest.raises(lw.LanewiseError) as caught:
        MISTAKES[name]()
    assert len(frames(caught.value)) > 1


def test_frames_of_the_user_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LANEWISE_TRACE", raising=False)
    with pytest.raises(lw.CompileError) as caught:
        gravity.Simulation(state(), softening=0.1).run(3, 1e-3, callback=callback)
    names = [f.name for f in traceback.extract_tb(caught.value.__traceback__)]
    assert names[-1] == "callback"
    assert len(frames(caught.value)) == 1


# ------------------------------------------------------------ progress


def test_progress_changes_no_bits(capfd: pytest.CaptureFixture[str]) -> None:
    runs: list[bytes] = []
    for progress in (False, True):
        simulation = gravity.Simulation(state(), softening=0.1).run(20, 1e-3, progress=progress)
        runs.append(simulation.bodies.position.tobytes())
        errors = capfd.readouterr().err
        assert ("gravity" in errors) == progress
        assert ("20/20" in errors) == progress
    assert runs[0] == runs[1]
    seen: list[int] = []
    boids.Flock(50).run(7, callback=lambda flock: seen.append(flock.step), every=3, progress=True)
    lbm.Simulation(shape=(16, 16), viscosity=0.1).run(
        7, callback=lambda flow: seen.append(flow.step), every=3, progress=True
    )
    assert seen == [3, 6, 7] * 2


# ------------------------------------------------------------ kernels that stand in no file

SCRIPT = """import lanewise as lw
import numpy as np


@lw.function
def twice(x):
    return 2 * x


@lw.elementwise
def scaled(x: lw.f32) -> lw.f32:
    return twice(x) + 1


print(scaled(np.ones(3, np.float32)))
"""
WRONG = SCRIPT.replace("twice(x) + 1", "x.y")
EXECUTED = f"exec({SCRIPT!r})"


def python(*options: str, text: str = "", file: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *options]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE.parent)}
    with nullcontext() if file is None else file.open() as opened:
        given: dict[str, Any] = {"input": text} if opened is None else {"stdin": opened}
        return subprocess.run(
            command, capture_output=True, text=True, check=False, env=environment, timeout=120, **given
        )


@pytest.mark.slow
def test_scripts_without_a_file(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    assert python("-c", SCRIPT).stdout == "[3. 3. 3.]\n"
    assert python(file=path).stdout == "[3. 3. 3.]\n"
    said = python("-c", WRONG).stderr
    assert "<python -c>:12:12: a value of type f32 has no 'y'\n    return x.y\n           ^^^\n" in said
    assert said.count('  File "') == 2  # the call, and one frame of lanewise
    piped = python(text=SCRIPT).stderr
    assert piped.endswith(
        "CompileError: <stdin>:10:1: the source of this function cannot be read\n"
        "  found: a script that came through a pipe, which Python has read to its end and not kept\n"
        "  wanted: a function defined in a file, a notebook cell, `python -c` or `python < file`, or typed at the prompt\n"
        "  hint: name the file, `python script.py`, or let the shell read it, `python < script.py`; text that a program writes may be an "
        'argument, `python -c "$(program)"`\n'
    )
    assert piped.count("Traceback") == 1
    # Its text is nowhere, and that of `-c` is not its own.
    executed = python("-c", EXECUTED).stderr
    assert (
        "the source of this function cannot be read\n  found: text that the program executed, which is in no file\n"
        in executed
    )


def test_at_the_prompt(tmp_path: Path) -> None:
    pty = pytest.importorskip("pty")
    pytest.importorskip("readline")
    lines = SCRIPT.splitlines()
    typed = (
        "\n".join(["import lanewise as lw, numpy as np", *lines[4:7], "", *lines[9:12], "", lines[14], "exit()"]) + "\n"
    )
    process, terminal = pty.fork()
    if not process:
        os.environ.update(PYTHONPATH=str(SOURCE.parent), TERM="dumb", HOME=str(tmp_path))
        os.execv(sys.executable, [sys.executable, "-q"])
    os.write(terminal, typed.encode())
    said = b""
    while True:
        try:
            said += os.read(terminal, 4096)
        except OSError:  # the process has ended
            break
    os.waitpid(process, 0)
    assert b"[3. 3. 3.]" in said, said.decode()


# ------------------------------------------------------------ a notebook

CELLS = (
    "import numpy as np\nimport lanewise as lw\nclass Body(lw.Record):\n    mass: lw.f32\nb = Body.array(mass=np.ones(3))\nb",
    "@lw.function\ndef law(m):\n    return 2 * m\n@lw.elementwise\ndef weight(b: Body) -> lw.f32:\n    return law(b.mass)\nprint(weight(b))",
    "@lw.function\ndef law(m):\n    return 3 * m\nprint(weight(b))",
    "class Body(lw.Record):\n    mass: lw.f32\nb = Body.array(mass=np.ones(3))\nprint(weight(b))",
    "weight(b, 3)",
    "from lanewise.sims import gravity\ns = gravity.Simulation(gravity.Body.array(position=np.eye(3), mass=np.ones(3)), softening=0.1)\n"
    "s = s.run(40, 1e-3, progress=True)",
    "def fail(s):\n    raise ValueError('of the callback')\ns.run(40, 1e-3, callback=fail, every=10, progress=True)",
)


def test_a_notebook_runs_headless(tmp_path: Path) -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in CELLS])
    kernel = tmp_path / "kernels" / "python3"
    kernel.mkdir(parents=True)
    (kernel / "kernel.json").write_text(
        f'{{"argv": ["{sys.executable}", "-m", "ipykernel_launcher", "-f", "{{connection_file}}"], '
        f'"display_name": "Python", "language": "python", "env": {{"PYTHONPATH": "{SOURCE.parent}"}}}}'
    )
    os.environ["JUPYTER_PATH"] = str(tmp_path)
    try:
        nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", allow_errors=True).execute()
    finally:
        del os.environ["JUPYTER_PATH"]
    array, wrong = notebook.cells[0].outputs[-1], notebook.cells[4].outputs[-1]
    assert array.data["text/plain"].startswith("<3 Body(mass: f32)")
    assert "<table>" in array.data["text/html"]
    said = ["".join(o.text for o in cell.outputs) for cell in notebook.cells[1:4]]  # a line may come in pieces
    assert said == ["[2. 2. 2.]\n", "[3. 3. 3.]\n", "[3. 3. 3.]\n"]
    assert wrong.ename == "ArgumentError"
    assert sum("lanewise" in line and "File" in line for line in wrong.traceback) <= 2
    (bar,) = notebook.cells[5].outputs  # and no warning that a package of widgets is missing
    assert bar.output_type == "display_data"
    assert 'gravity <progress value="40" max="40">' in bar.data["text/html"]
    assert bar.data["text/plain"] == "gravity 40/40"
    bar, error = notebook.cells[6].outputs
    assert bar.data["text/plain"] == "gravity 10/40"
    assert error.ename == "ValueError"
