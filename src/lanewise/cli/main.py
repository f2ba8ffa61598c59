"""`lanewise`: the command line. Each command lives in a file of its own; errors of the user end with code 2 and one clear message."""

from __future__ import annotations

import atexit
import gc
import importlib
import itertools
import os
import sys
from typing import Annotated, Any

import typer

from lanewise._version import __version__
from lanewise.cli.compiling import spoken
from lanewise.cli.explain import explain
from lanewise.cli.info import info
from lanewise.cli.ladder import ladder
from lanewise.cli.tune import tune
from lanewise.errors import InputError, LanewiseError
from lanewise.sims import PRODUCTS
from lanewise.sims.common import INTERRUPTED
from lanewise.sims.common.options import Listed


class Commands(Listed):
    """The commands; those of a product are loaded when one of them runs, and the help knows what they are about."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that runs."""
        _check_empty(args)
        if args and args[0] in PRODUCTS:
            module = importlib.import_module(f"lanewise.sims.{args[0]}.command")
            self.add_command(typer.main.get_command(module.app), args[0])
        return super().resolve_command(ctx, args)


def _check_empty(args: list[str]) -> None:
    """Raise `InputError` for an empty value of an option, such as a variable that a script has not set.

    Where a default is meant the option is left out: an empty name of a layout or a file must not stand for one.
    """
    for option, value in itertools.pairwise([*args, "end"]):
        name, joined, text = option.partition("=")
        if option.startswith("--") and (value == "" or (joined and not text)):
            raise InputError(f"{name}: found an empty text; give a value, or leave the option out")


app = typer.Typer(
    name="lanewise", cls=Commands, no_args_is_help=True, pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Write the physics for one element; lanewise designs the data structure and the kernel.",
    epilog="First: lanewise gravity run --plot run.png. Then: lanewise explain gravity. Every command has --help.",
)  # fmt: skip


def _say_version(asked: bool) -> None:
    if asked:
        print(f"lanewise {__version__}")
        raise typer.Exit


@app.callback()
def _lanewise(  # pyright: ignore[reportUnusedFunction]
    _: Annotated[
        bool,
        typer.Option("--version", metavar="", is_eager=True, callback=_say_version, help="the version of lanewise"),
    ] = False,
) -> None: ...


for _name, _help in PRODUCTS.items():
    app.add_typer(typer.Typer(help=_help), name=_name)
app.command()(info)
for _command in (explain, ladder, tune):
    app.command(no_args_is_help=True)(_command)


YOUNG = 100_000  # objects that Python makes before it looks for garbage: modules and compilers make many that stay


def program() -> None:
    """Run a command as a process of its own, and end it.

    What lies in memory is not taken apart first, which takes a quarter of a second with a compiler loaded.
    """
    gc.set_threshold(YOUNG)
    code: int | str | None = 0
    try:
        main()
    except SystemExit as end:
        code = end.code
        if isinstance(code, str):
            raise
    try:
        atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:  # a closed pipe, a full disk: Python ends such a process with a word and a code of its own
        sys.exit(code)
    os._exit(code or 0)


def main() -> None:
    """Run a command; the exit code is 0, 2 for an error of the user, 130 for Ctrl-C."""
    try:
        with spoken():
            app(prog_name="lanewise")
    except LanewiseError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except MemoryError:
        print("error: the memory does not suffice; fewer bodies or sites need less", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        print(f"error: {place}{error.strerror or error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        _interrupted()
    except SystemError as error:
        if not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        _interrupted()  # within a library's compiled code, whose answer came with it


def _interrupted() -> None:
    print("interrupted", file=sys.stderr)
    sys.exit(INTERRUPTED)


if __name__ == "__main__":
    program()
