"""Loading the kernel of a file: what is found, and every way in which nothing is."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lanewise.cli.target import load_kernel
from lanewise.patterns.elementwise.kernel import Elementwise
from lanewise.patterns.pairwise.kernel import Pairwise
from lanewise.support.errors import InputError

GOOD = """\
from __future__ import annotations
import lanewise as lw
from beside import STRENGTH

print("hello")

@lw.record
class Ball:
    place: lw.vec2
    weight: lw.f32

@lw.pairwise
def pull(target: Ball, source: Ball, softening2: lw.f32) -> lw.vec2:
    d = source.place - target.place
    return STRENGTH * source.weight / (lw.dot(d, d) + softening2) * d

@lw.elementwise
def grow(ball: Ball, rate: lw.f32):
    ball.weight *= rate

number = 7
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("good.py").write_text(GOOD)
    Path("beside.py").write_text("STRENGTH = 2.0\n")
    monkeypatch.delitem(sys.modules, "beside", raising=False)
    return tmp_path


def test_kernels_are_found(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = list(sys.path)
    pull = load_kernel("good.py:pull")
    assert isinstance(pull, Pairwise)
    assert pull.lowered.function.name == "pull"
    assert isinstance(load_kernel(f"{folder}/good.py:grow"), Elementwise)
    assert sys.path == before
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "hello\nhello\n")


BROKEN = {
    "syntax.py": "x = 1\ndef (\n",
    "raises.py": "import math\n\ndef root(x):\n    return math.sqrt(x)\n\nroot(-1)\n",
    "leaves.py": "import sys\nsys.exit('no licence')\n",
    "imports.py": "import no_such_package\n",
    "record.py": "import lanewise as lw\n@lw.record\nclass Body:\n    mass: float\n",
    "empty.py": "x = 1\n",
}
CHOICES = "wanted good.py:grow or good.py:pull"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "foo",
            "unknown kernel 'foo'; wanted boids, gravity, lbm, waves, or a kernel of a file as in path/to/file.py:name",
        ),
        (
            "foo.txt:f",
            "unknown kernel 'foo.txt:f'; wanted boids, gravity, lbm, waves, or a kernel of a file as in path/to/file.py:name",
        ),
        ("none.py:f", "none.py: there is no such file"),
        ("folder.py:f", "folder.py: wanted a Python file, found a folder"),
        ("good.py", f"good.py: which kernel? {CHOICES}"),
        ("good.py:", f"good.py has no kernel ''; {CHOICES}"),
        ("good.py:push", f"good.py has no kernel 'push'; {CHOICES}"),
        ("good.py:number", f"good.py: number is no kernel, found int 7; {CHOICES}"),
        (
            "empty.py:f",
            "empty.py has no kernel 'f'; it has no kernels: functions under @lw.pairwise, @lw.elementwise, @lw.threadwise, @lw.segmentwise, "
            "@lw.sitewise(lattice) or @lw.stencil(lattice)",
        ),
        ("raises.py:f", "raises.py cannot be run: line 4: ValueError: "),
        ("leaves.py:f", "leaves.py cannot be run: line 2: SystemExit: no licence"),
        ("syntax.py:f", "syntax.py cannot be run: line 2: SyntaxError: "),
        ("imports.py:f", "imports.py cannot be run: line 1: ModuleNotFoundError: No module named 'no_such_package'"),
        ("record.py:f", "record.py cannot be run: Body.mass is annotated with <class 'float'>; a record holds "),
    ],
)
def test_what_is_not_found_is_said(folder: Path, text: str, message: str) -> None:
    for name, source in BROKEN.items():
        (folder / name).write_text(source)
    (folder / "folder.py").mkdir()
    with pytest.raises(InputError) as caught:
        load_kernel(text)
    found = str(caught.value)
    assert found.startswith(message) if message.endswith(": ") or message.endswith("holds ") else found == message
    assert "\n" not in found
