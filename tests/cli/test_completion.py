"""What a shell completes, asked as shells ask it; and what help and wrong options say."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from lanewise.cli.commands import app
from lanewise.sims import PRODUCTS
from lanewise.support.interrupts import imported
from tests.cli.command import Command

CASES: dict[str, list[str]] = {
    "lanewise gravity run --integrator ": ["euler", "leapfrog", "yoshida4"],
    "lanewise gravity run --ic plu": ["plummer"],
    "lanewise lbm run k": ["karman"],
    "lanewise lbm run --lattice D3": ["D3Q19", "D3Q27"],
    "lanewise ladder t": ["tutorial"],
    "lanewise explain b": ["boids"],
    "lanewise boids run --device c": ["cpu", "cuda"],
    "lanewise boids run --boundary outside-s": ["outside-sphere", "outside-spheres", "outside-spheres-wrap"],
    "lanewise tune gravity --layout so": ["soa", "soaoas"],
    "lanewise grav": ["gravity"],
}


def asked(line: str) -> list[str]:
    words = line.split(" ")
    environment = {
        **os.environ, "_LANEWISE_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "lanewise"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    return sorted(done.stdout.split())


@pytest.mark.parametrize(
    "line", [pytest.param(x, marks=[] if n in (0, 2) else pytest.mark.slow) for n, x in enumerate(CASES)]
)
def test_a_shell_is_told_the_values(line: str) -> None:
    assert asked(line) == CASES[line]


def _commands() -> Iterator[tuple[str, Any]]:
    group: Any = typer.main.get_command(app)
    for name, command in group.commands.items():
        if name not in PRODUCTS:
            yield name, command
    for product in PRODUCTS:
        own: Any = typer.main.get_command(imported(f"lanewise.sims.{product}.command").app)
        for name, command in own.commands.items():
            yield f"{product} {name}", command


OPEN = {"--arch"}
"""Names that no list holds: architectures of GPUs."""


def test_every_option_that_takes_a_name_completes_it() -> None:
    """And all that is completed is text that begins as asked."""
    without: list[str] = []
    for name, command in _commands():
        context = typer.Context(command)
        for option in command.params:
            if option.metavar in ("NAME", "NAME|FILE", "KERNEL", "LADDER", "CASE"):
                found = [c.value for c in option.shell_complete(context, "")]
                if not found and not OPEN & set(option.opts):
                    without.append(f"{name} {option.opts[0]}")
                for value in found:
                    assert value in [c.value for c in option.shell_complete(context, value[:2])]
    assert not without, without


def test_no_flag_has_the_type_of_a_value(lanewise: Command) -> None:
    for words in ((), ("gravity",), ("waves",), *(tuple(name.split()) for name, _ in _commands())):
        said = lanewise(*words, "--help")
        assert said.code == 0
        assert "<bool>" not in said.out, words


def test_only_what_is_alike_is_suggested(lanewise: Command) -> None:
    said = lanewise("gravity", "run", "--quux", "x.mp4")
    assert said.code == 2
    assert "No such option: --quux" in said.err
    assert "Possible" not in said.err
    assert "Did you mean" not in said.err
    said = lanewise("gravity", "run", "--integrater", "euler")
    assert "--integrator" in said.err
    for words in (("explain", "boids", "--devise", "cpu"), ("boids", "run", "--agent", 4), ("--verion",)):
        assert "No such option" in (text := lanewise(*words).err), words
        assert any(x in text for x in ("--device", "--agents", "--version")), words
