"""`lanewise tune` over a tree: what keeps the accuracy is measured, remembered, and taken by later runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from lanewise.launch import tuned_plans as store
from lanewise.patterns.search.tree.choice import choice_from
from tests.cli.command import Command

FILE = """
import lanewise as lw

class Ion(lw.Record):
    position: lw.vec3
    charge: lw.f32

@lw.pairwise
def pull(target: Ion, source: Ion, softening2: lw.f32) -> lw.vec3:
    d = source.position - target.position
    return source.charge * lw.rsqrt(lw.dot(d, d) + softening2) ** 3 * d

far = pull.using(search=lw.Tree(accuracy=2e-2, order=2))
plain = pull.using(search=lw.Tree(theta=0.5))
"""


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tuned"
    monkeypatch.setattr(store, "store_directory", lambda: folder)
    return folder


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "ions.py"
    path.write_text(FILE)
    return path


@pytest.mark.slow
def test_a_kernel_over_a_tree(lanewise: Command, file: Path, own_store: Path) -> None:
    found = lanewise("tune", f"{file}:far", "--bodies", 700, "--seconds", 1, "--json").last_json
    assert (found["kernel"], found["elements"]) == ("pull", "700 target, 700 source")
    assert found["note"].startswith("99 % of the results within 0.02 predicted; measured median ")
    assert choice_from(found["structure"]).order == 2
    assert Path(found["path"]).parent == own_store
    shown = lanewise("explain", f"{file}:far", "--bodies", 700)
    assert "calibrated for an accuracy of 0.02" in " ".join(shown.out.split())


@pytest.mark.slow
def test_a_kernel_that_is_put_over_a_tree(lanewise: Command, file: Path) -> None:
    options = ("--method", "tree", "--accuracy", 3e-2, "--leaf", 16, "--walk", "walk", "--seconds", 1)
    found = lanewise("tune", f"{file}:pull", "--bodies", 600, *options, "--json").last_json
    assert found["default_structure"] == "walk(order=3, leaf=16, opening=0.03)"
    assert all(c["structure"].startswith("walk(") for c in found["candidates"])


@pytest.mark.slow
def test_a_run_takes_what_was_measured_for_bodies_like_its_own(lanewise: Command) -> None:
    asked = ("--method", "tree", "--accuracy", 2e-2)
    found = lanewise("tune", "gravity", "--bodies", 1000, *asked, "--seconds", 1, "--json").last_json
    choice = choice_from(found["structure"])
    run = ("gravity", "run", "--steps", 1, "--softening", 0.01, "--quiet", "--json")
    taken = lanewise(*run, "--bodies", 1020, *asked).last_json
    assert (taken["walk"], taken["order"], taken["leaf"], taken["opening"]) == (
        choice.method, choice.order, choice.leaf, choice.opening,
    )  # fmt: skip
    assert taken["method_reason"].startswith("calibrated for an accuracy of 0.02")
    assert taken["accuracy"] == 2e-2
    for other in (
        ("--bodies", 1020, "--method", "tree", "--accuracy", 3e-2),
        ("--bodies", 1020, *asked, "--order", 3),
        ("--bodies", 3000, *asked),
        ("--bodies", 1020, "--ic", "uniform-sphere", *asked),
    ):
        assert lanewise(*run, *other).last_json["opening"] is None, other


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("gravity", "--method", "tree"), "--method tree needs --accuracy: what is measured is which tree keeps it"),
        (("gravity", "--accuracy", "1e-3", "--method", "direct"), "--accuracy needs --method tree"),
        (("gravity", "--method", "tree", "--accuracy", "1e-9"), "results in f32 are no closer than about 1e-05"),
        (("gravity", "--method", "tree", "--accuracy", "1e-2", "--walk", "hop"), "unknown walk 'hop'"),
        (("boids", "--accuracy", "1e-3"), "--accuracy belongs to gravity and to kernels of files"),
        (("FILE:plain",), "which was requested and leaves nothing to choose"),
        (("FILE:pull", "--walk", "dual"), "--walk needs --method tree"),
        (("FILE:pull", "--method", "tree", "--walk", "hop"), "unknown walk 'hop'"),
        (("FILE:pull", "--method", "hash"), "unknown method 'hash'"),
    ],
)
def test_what_is_refused(lanewise: Command, file: Path, options: tuple[str, ...], message: str) -> None:
    given = [o.replace("FILE", str(file)) for o in options]
    outcome = lanewise("tune", *given, "--bodies", 300)
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err
    assert outcome.err.count("\n") == 1
