"""The commands of `lanewise`: each lives in its own file, those of a product in its folder."""

from __future__ import annotations

import itertools
from typing import Annotated, Any

import typer

from lanewise._version import __version__
from lanewise.cli.explain import explain
from lanewise.cli.info import info
from lanewise.cli.ladder import ladder
from lanewise.cli.tune import tune
from lanewise.cli.units import app as units
from lanewise.cli.view import view
from lanewise.sims import PRODUCTS
from lanewise.sims.common.commands import Command, Listed
from lanewise.support.errors import InputError
from lanewise.support.interrupts import imported
from lanewise.support.launchers import ALONE, started

READING = ("info", "explain", "view")  # commands that write nothing
TOGETHER = tuple(
    (name, "run") for name in ("gravity", "lbm", "boids")
)  # commands that several processes run as one


class Commands(Listed):
    """The commands; those of a product are loaded when one of them runs, and the help knows what
    they are about.
    """

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that runs."""
        if args:
            _with_others(args)
        _check_empty(args)
        if args and args[0] in PRODUCTS:
            module = imported(f"lanewise.sims.{args[0]}.command")
            self.add_command(typer.main.get_command(module.app), args[0])
        return super().resolve_command(ctx, args)


def _with_others(args: list[str]) -> None:
    """Join the other processes of a command that several run together. What writes nothing is said
    by the first of them alone. Of another command refuse the copies, which would write one file:
    the first raises `InputError`, the others end without a word.
    """
    if (found := started()) is None:
        return
    if args[0] in READING or {"--help", "-h"} & set(args):
        if found.rank:
            raise typer.Exit(0)
        return
    if tuple(args[:2]) in TOGETHER:
        ranks = imported("lanewise.runtime.ranks").join()
        ranks.mute()
        return
    if not found.speaks:
        raise typer.Exit(2)
    raise InputError(
        f"{found.copies_of(f'`lanewise {args[0]}`')}, and would write the same files; start one, "
        f"or set {ALONE}=alone if each has its own files"
    )


def _check_empty(args: list[str]) -> None:
    """Raise `InputError` for an empty value of an option, such as a variable that a script has not
    set.

    Where a default is meant the option is left out: an empty name of a layout or a file must not
    stand for one.
    """
    for option, value in itertools.pairwise([*args, "end"]):
        name, joined, text = option.partition("=")
        if option.startswith("--") and (value == "" or (joined and not text)):
            raise InputError(f"{name}: found an empty text; give a value, or leave the option out")


app = typer.Typer(
    name="lanewise",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Write the physics for one element; lanewise designs the data structure and the kernel.",
    epilog="First: lanewise gravity run --out first.h5 --plot first.png. Then: lanewise explain "
    "gravity. Every command has --help.",
)


def _say_version(asked: bool) -> None:
    if asked:
        print(f"lanewise {__version__}")
        raise typer.Exit


@app.callback()
def _lanewise(  # pyright: ignore[reportUnusedFunction]
    _: Annotated[
        bool,
        typer.Option(
            "--version",
            metavar="",
            is_eager=True,
            callback=_say_version,
            help="the version of lanewise",
        ),
    ] = False,
) -> None: ...


for _name, _help in PRODUCTS.items():
    app.add_typer(typer.Typer(help=_help), name=_name)
app.command(cls=Command)(info)
for _command in (explain, ladder, tune, view):
    app.command(cls=Command, no_args_is_help=True)(_command)
app.add_typer(units, name="units")
