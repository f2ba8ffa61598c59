"""What is compiled knows no files and no lines: a comment, another file name or another place in the file compiles
nothing.
"""

from __future__ import annotations

import gc
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lanewise.explanation.offline import compile_offline
from lanewise.runtime import compiling

HEAD = """import lanewise as lw


@lw.record
class Body:
    position: lw.vec3
    mass: lw.f32


"""
HELPER = """@lw.function
def square(x):
    return x * x


"""
KERNEL = """@lw.pairwise
def pull(target: Body, source: Body, softening2: lw.f32) -> lw.vec3:
    d = source.position - target.position
    r2 = square(d.x) + square(d.y) + square(d.z) + softening2
    return source.mass / r2 * d
"""
COMMENTED = KERNEL.replace("    r2", "    # the squared distance,\n\n    # softened\n    r2")
VERSIONS = {
    "first.py": HEAD + HELPER + KERNEL,
    "renamed.py": HEAD + HELPER + KERNEL,
    "commented.py": "# A comment.\n" + HEAD + "# Another one.\n" + HELPER + COMMENTED,
    "documented.py": '"""Bodies."""\n\n' + HEAD + HELPER + KERNEL.replace("vec3:\n", 'vec3:\n    """The pull."""\n'),
    "moved.py": HEAD + "def square(x): ...\n\n\n" + "\n" * 100 + HELPER + KERNEL,
}


def load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_only_code_that_differs_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANEWISE_CACHE_DIR", str(tmp_path / "cache"))
    compilations: dict[str, int] = {}
    for name, text in {**VERSIONS, "changed.py": VERSIONS["first.py"].replace("x * x", "x * x * x")}.items():
        (tmp_path / name).write_text(text)
        module = load(tmp_path / name)
        before = compiling.count()
        bodies = module.Body.array(position=np.eye(3, dtype="f4"), mass=np.ones(3, "f4"))
        call = module.pull.bind(bodies, bodies, 0.1)
        call()
        offline = compile_offline(module.pull, 4096, "cuda", arch="sm_90")
        compilations[name] = compiling.count() - before
        shown, line = call.compiled.source, text[: text.index("    d = ")].count("\n") + 1
        assert f"# {name}:{line}" in shown  # the text for people says where everything stands
        assert f'#line {line} "{name}"' in offline.executable.source
        del module, bodies, call, offline
        gc.collect()
    assert min(compilations.pop("first.py"), compilations.pop("changed.py")) >= 2  # for both devices
    assert set(compilations.values()) == {0}
