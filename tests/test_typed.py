"""What type checkers, editors and `help` see: `class Body(lw.Record)`, arrays of it, and the calls of kernels."""

from __future__ import annotations

import copy
import inspect
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lanewise as lw
from tests.markdown import blocks

ROOT = Path(__file__).parent.parent


class Body(lw.Record):
    """A star."""

    position: lw.vec3
    mass: lw.f32


@lw.record
class Same:
    position: lw.vec3
    mass: lw.f32


@lw.pairwise
def gravity(target: Body, source: Body, softening2: lw.f32) -> lw.vec3:
    """The acceleration for G = 1."""
    d = source.position - target.position
    return source.mass * lw.rsqrt(lw.dot(d, d) + softening2) ** 3 * d


@lw.pairwise
def pull(target: Same, source: Same, softening2: lw.f32) -> lw.vec3:
    d = source.position - target.position
    return source.mass * lw.rsqrt(lw.dot(d, d) + softening2) ** 3 * d


FIELDS = {"position": np.arange(30.0).reshape(10, 3) % 7, "mass": np.ones(10)}


def test_both_spellings_are_one_record() -> None:
    bodies, same = Body.array(**FIELDS), Same.array(**FIELDS)
    assert gravity(bodies, bodies, 0.5).tobytes() == pull(same, same, 0.5).tobytes()
    assert str(bodies.record) == "Body(position: vec3, mass: f32)"
    assert Body.__doc__ == "A star."
    row = bodies[3]
    row.mass = 7.0
    assert isinstance(row, Body)
    assert bodies.mass[3] == 7
    assert isinstance(bodies, lw.RecordArray)
    for again in (pickle.loads(pickle.dumps(bodies)), copy.deepcopy(bodies)):
        assert isinstance(again[3], Body)
        assert again.mass.tobytes() == bodies.mass.tobytes()
    assert repr(Body(mass=3.0)) == "Body(position=vec3(0.0, 0.0, 0.0), mass=np.float32(3.0))"


REFUSED: dict[str, tuple[str, str]] = {
    "another record": ("class A(Body):\n    age: lw.f32", "A inherits from Body; a record names all of its fields itself"),
    "another class": ("class A(lw.Record, int):\n    x: lw.f32", "A inherits from int; a record names"),
    "no type of lanewise": ("class A(lw.Record):\n    x: int", "A.x is annotated with <class 'int'>; a record holds lanewise"),
    "no fields": ("class A(lw.Record):\n    pass", "A has no fields; write them as annotations"),
    "a default": ("class A(lw.Record):\n    x: lw.f32 = 3", "A.x = 3: fields have no default values"),
    "both": ("@lw.record\nclass A(lw.Record):\n    x: lw.f32", "which makes it a record class; leave out @lw.record"),
    "a reserved name": ("class A(lw.Record):\n    layout: lw.f32", "arrays of records use the name 'layout' themselves"),
    "options": ("class A(lw.Record, frozen=True):\n    x: lw.f32", "A: a record class takes no options, found frozen"),
    "itself": ("lw.Record(mass=1)", "lw.Record has no fields; write a class that inherits from it"),
    "its arrays": ("lw.Record.zeros(3)", "lw.Record has no fields; write a class that inherits from it"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    text, message = REFUSED[name]
    with pytest.raises(lw.RecordError) as caught:
        exec(compile(text, "records.py", "exec", dont_inherit=True), {"lw": lw, "Body": Body, "__name__": "records"})
    assert message in str(caught.value)


def test_signatures_and_documents() -> None:
    signature = inspect.signature(gravity)
    assert list(signature.parameters) == ["target", "source", "softening2", "out", "plan", "checks"]
    assert signature.parameters["target"].annotation == lw.RecordArray[Body]
    assert gravity.__doc__ == "The acceleration for G = 1."
    assert "plan" not in inspect.signature(lw.pairwise).parameters

    @lw.threadwise
    def double(i: lw.index, a: lw.Array1[lw.f32]) -> None:
        a[i] = 2 * a[i]

    assert {"grid", "checks"} <= {*inspect.signature(double).parameters}


SETTINGS = {
    "typeCheckingMode": "strict", "pythonVersion": "3.11", "extraPaths": [str(ROOT / "src")],
    # Helpers without annotations are part of the language: they are typed by their calls.
    "reportMissingParameterType": False, "reportUnknownParameterType": False, "reportUnknownVariableType": False,
    "reportUnknownMemberType": False, "reportUnknownArgumentType": False, "reportMissingTypeStubs": False,
    "reportUnusedVariable": False, "reportRedeclaration": False,
}  # fmt: skip


def pyright(folder: Path) -> list[str]:
    """What the type checker says of the files of a folder, a line each."""
    (folder / "pyrightconfig.json").write_text(json.dumps(SETTINGS))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(folder)]
    environment = {**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    said = json.loads(done.stdout)["generalDiagnostics"]
    return [f"{Path(d['file']).name}:{d['range']['start']['line'] + 1}: {d['message']}" for d in said]


WRONG = """
import lanewise as lw


class Body(lw.Record):
    mass: lw.f32


bodies = Body.zeros(3)
bodies[0].mas
Body.aray(mass=[1.0])
bodies.positions(1)
"""


@pytest.mark.slow
def test_a_type_checker_reads_the_documents(tmp_path: Path) -> None:
    """The Python of the README and of the documents is right in strict mode, and mistakes are seen."""
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = path.read_text(encoding="utf-8")
        if "```" not in text or path.name == "walkthrough.md":  # which shows generated code
            continue
        lines = [""] * (text.count("\n") + 1)
        for block in (b for b in blocks(text) if b.language == "python"):
            own = block.text.splitlines()
            lines[block.line - 1 : block.line - 1 + len(own)] = own
        (tmp_path / f"{path.stem.lower()}.py").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "wrong.py").write_text(WRONG, encoding="utf-8")
    said = pyright(tmp_path)
    assert [s.partition("\n")[0] for s in said if s.startswith("wrong.py")] == [
        'wrong.py:10: Cannot access attribute "mas" for class "Body"',
        'wrong.py:11: Cannot access attribute "aray" for class "type[Body]"',
        'wrong.py:12: Object of type "FieldOrPart" is not callable',
    ]
    refused = [s.partition(":")[0] for s in said if "floating[Any]" in s]  # NumPy in a kernel, where its error is shown
    assert refused == ["language.py"]
    assert [s for s in said if not s.startswith("wrong.py") and "floating[Any]" not in s] == []
