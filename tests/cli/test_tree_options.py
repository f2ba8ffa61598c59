"""Refusals of trees speak of the options of the command that was given, not of Python's settings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lanewise.sims.common.tree_options import in_options
from tests.cli.command import Command

COMMANDS = {
    "run": ("gravity", "run", "--steps", 1, "--quiet"), "explain": ("explain", "gravity"), "tune": ("tune", "gravity", "--seconds", 1),
}  # fmt: skip
REFUSED = {
    "--theta 2": "--theta 2.0: wanted a number above 0 and at most 0.9: a group counts as far where its radius is less than "
    "theta times its distance",
    "--theta nan": "--theta nan: wanted a number above 0 and at most 0.9",
    "--order 9": "--order 9: wanted an integer from 0 to 8",
    "--order -1": "--order -1: wanted an integer from 0 to 8",
    "--leaf 0": "--leaf 0: wanted an integer from 1 to 256",
    "--accuracy 1.5": "--accuracy 1.5: wanted a number above 0 and below 1: the error of results relative to themselves",
    "--accuracy 1e-9": "--accuracy 1e-09: results in f32 are no closer than about 1e-05; choose that or more, or --precision f64",
    "--accuracy 1e-14 --precision f64": "--accuracy 1e-14: results in f64 are no closer than about 1e-12; choose that or more",
    "--walk dual --accuracy 1e-2": "--walk dual, --accuracy: errors are estimated where targets meet groups, and not of pairs of "
    "groups; choose --theta and --order, or --walk walk",
}
OF_PYTHON = re.compile(r"\b(theta|order|leaf|accuracy|method)=|\bTree\(|AllPairs")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("options", REFUSED)
def test_refusals_are_in_words_of_the_command(lanewise: Command, command: str, options: str) -> None:
    given = ("--bodies", 300, "--method", "tree", *options.split())
    outcome = lanewise(*COMMANDS[command], *given)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"error: {REFUSED[options]}")
    assert not OF_PYTHON.search(outcome.err)


@pytest.mark.filterwarnings("default::lanewise.FarFieldWarning")
def test_warnings_too(lanewise: Command) -> None:
    outcome = lanewise(*COMMANDS["run"], "--bodies", 3000, "--method", "tree", "--theta", 0.9, "--order", 0)
    assert outcome.code == 0
    (line,) = [x for x in outcome.err.splitlines() if "compiling" not in x]
    assert line.startswith(
        "warning: gravity over tree: theta 0.9, order 0, leaves of 32: results are not those of all pairs"
    )
    assert line.endswith("choose a smaller theta, a larger order, --accuracy, --precision f64, or --method direct")


FILE = """
import lanewise as lw

class Star(lw.Record):
    position: lw.vec3
    mass: lw.f32
    eps: lw.f32

@lw.pairwise
def own(target: Star, source: Star) -> lw.vec3:
    d = source.position - target.position
    return source.mass * lw.rsqrt(lw.dot(d, d) + target.eps * d.x * d.x + 0.1) ** 3 * d

@lw.pairwise
def pull(target: Star, source: Star) -> lw.vec3:
    d = source.position - target.position
    return source.mass * lw.rsqrt(lw.dot(d, d) + 0.1) ** 3 * d
"""


@pytest.mark.parametrize("command", ["explain", "tune"])
@pytest.mark.parametrize(
    ("kernel", "options", "wanted"),
    [
        (
            "own",
            "--walk dual",
            ("found: --walk dual\n", "hint: lw.far_field(...) shows what is proved; choose --walk walk\n"),
        ),
        (
            "own",
            "--accuracy 1e-2",
            ("found: --accuracy\n", "hint: choose --theta and --order instead", "with --method direct\n"),
        ),
        (
            "pull",
            "--accuracy 1e-9",
            ("--accuracy 1e-09: results in f32", "choose that or more, or records of float64\n"),
        ),
    ],
)
def test_kernels_of_files_too(
    lanewise: Command, tmp_path: Path, command: str, kernel: str, options: str, wanted: tuple[str, ...]
) -> None:
    """Whose precision is in their file."""
    (tmp_path / "stars.py").write_text(FILE)
    outcome = lanewise(command, f"stars.py:{kernel}", "--bodies", 300, "--method", "tree", *options.split())
    assert (outcome.code, outcome.out) == (2, "")
    for text in wanted:
        assert text in outcome.err
    assert not OF_PYTHON.search(outcome.err)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "gravity: no tree holds. The best found is dual(order=4, leaf=32, opening=0.72): median 1e-5. Choose accuracy=3.5e-05 or "
            "more, records of float64, or lw.AllPairs()",
            "gravity: no tree holds. The best found is --walk dual, --order 4, --leaf 32 and an opening of 0.72: median 1e-5. Choose "
            "--accuracy 3.5e-05 or more, --precision f64, or --method direct",
        ),
        ("choose method='dual' with theta=0.5.", "choose --walk dual with --theta 0.5."),
        ("lw.DynamicGrid(leaf=0): wanted more", "lw.DynamicGrid(leaf=0): wanted more"),
        ("the order of all; a border=3", "the order of all; a border=3"),
    ],
)
def test_texts(text: str, wanted: str) -> None:
    assert in_options(text, precision=True) == wanted
