"""Options that are declared with the fields of settings, and what a command makes of them."""

from __future__ import annotations

import inspect
import subprocess
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from lanewise import sims
from lanewise.sims.boids import Flock
from lanewise.sims.boids.options import Asked
from lanewise.sims.boids.parameters import NUMBERS, Parameters
from lanewise.sims.common.commands import run_command
from lanewise.sims.common.films import parse_size
from lanewise.sims.common.options import METHOD, GivenOptions, Option, option_of, setting
from lanewise.support.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Of a product that is none."""

    case: str | None = setting(None, Option(METHOD, "CASE", "which", argument=True))
    dt: float = setting(0.25, Option(METHOD, "X", "time step (default {default})", minimum=0.0))
    size: tuple[int, int] = setting((1, 1), Option(METHOD, "WxH", "in pixels", ("--size", "-s"), parse=parse_size))
    steady: bool | None = setting(None, Option(METHOD, "", "or not", ("--steady/--no-steady",)))
    inner: int = 3  # nobody's option


@pytest.fixture
def given() -> Any:
    """Runs a command with these words; what it was given, or what it said."""
    app, seen = typer.Typer(add_completion=False), list[GivenOptions]()

    @run_command(app, Settings, after={"dt": "size"})
    def run(given: GivenOptions) -> None:
        """Run."""
        seen.append(given)

    assert inspect.getdoc(run) == "Run."

    def call(*words: str) -> GivenOptions | str:
        result = CliRunner().invoke(app, list(words), env={"COLUMNS": "100", "TERM": "dumb"})
        return seen.pop() if result.exit_code == 0 and seen else result.output

    return call


def test_settings_are_made_of_what_was_given(given: Any) -> None:
    assert given("box", "-s", "64x128", "--no-steady", "--quiet").make(Settings, inner=4) == Settings(
        case="box", size=(128, 64), steady=False, inner=4
    )
    found = given("--dt", "0.5")
    assert found.make(Settings) == Settings(dt=0.5)
    assert (found["dt"], found["case"], found["json"], found["profile_trace"]) == (0.5, None, False, None)
    assert given("--profile", "a.json")["profile_trace"] == Path("a.json")


def test_what_is_refused(given: Any) -> None:
    assert "Invalid value for '--dt'" in given("--dt", "-1")
    assert "Invalid value for '--dt'" in given("--dt", "nan")
    assert "No such option" in given("--inner", "3")
    with pytest.raises(InputError, match=r"^--size 3: wanted WIDTHxHEIGHT"):
        given("--size", "3").make(Settings)
    for words, name in ((("box",), "CASE"), (("--dt", "1"), "--dt"), (("--no-steady",), "--steady/--no-steady")):
        with pytest.raises(InputError, match=f"^{name} cannot be given with --resume: the checkpoint keeps its own$"):
            given(*words).refuse_with_resume(Settings)
    given("box", "--dt", "1").refuse_with_resume(Settings, but=("case", "dt"))


def test_help_shows_defaults_in_the_order_asked_for(given: Any) -> None:
    text = given("--help")
    assert "time step (default 0.25)" in text
    places = [text.index(name) for name in ("--size", "--dt", "--steady", "--profile", "--json")]
    assert places == sorted(places)
    assert "profile-trace" not in text


def test_rules_of_flocks_are_options() -> None:
    described = {f.name: option_of(f) for f in fields(Parameters)}
    assert tuple(name for name, option in described.items() if option) == NUMBERS
    assert set(described) - set(NUMBERS) == {"facing", "unit_side"}


def test_defaults_of_flocks_are_those_of_the_library() -> None:
    """What the command shows as a default is what `Flock` does when it is left out, as the command then
    leaves it out.
    """
    own = {name: p.default for name, p in inspect.signature(Flock).parameters.items()}
    assert {f.name for f in fields(Asked)} - set(own) == {"table"}
    assert {f.name: f.default for f in fields(Asked) if f.name not in ("table", "obstacles")} == {
        f.name: own[f.name] for f in fields(Asked) if f.name not in ("table", "obstacles")
    }


def test_products_are_loaded_when_they_run() -> None:
    """And neither the command line nor a command's help imports a product's physics, LLVM, h5py or matplotlib."""
    code = """
import sys
from lanewise.cli.main import app
def loaded():
    return [n for n in sys.modules if n.startswith("lanewise.sims.") and not n.startswith("lanewise.sims.common")]
assert loaded() == [], loaded()
try:
    app(["boids", "run", "--help"], standalone_mode=False)
except SystemExit:
    pass
assert sorted(n.removeprefix("lanewise.sims.") for n in loaded()) == ["boids", "boids.command", "boids.options", "boids.parameters"], loaded()
assert not {"llvmlite", "h5py", "matplotlib"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_public_names_are_there() -> None:
    for name in sims.PRODUCTS:
        product = getattr(sims, name)
        assert set(product.__all__) <= set(dir(product))
        assert all(getattr(product, n) is not None for n in product.__all__)
        with pytest.raises(AttributeError, match=f"module 'lanewise.sims.{name}' has no attribute 'nothing'"):
            product.nothing  # noqa: B018
    with pytest.raises(AttributeError, match=r"module 'lanewise.sims' has no attribute 'nothing'"):
        sims.nothing  # type: ignore[attr-defined]  # noqa: B018
