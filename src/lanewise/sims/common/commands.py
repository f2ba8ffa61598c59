"""Commands with the options that settings declare.

    @run_command(app, Settings, Output)
    def run(given: GivenOptions) -> None: ...

Commands that run simulations have `--profile`: a table of where the time went, and a trace for
Perfetto. It may be followed by the name of the trace, which ends in .json: what follows it
otherwise is another argument.
"""

from __future__ import annotations

import difflib
import inspect
import math
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, Field, fields
from types import MappingProxyType
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from lanewise.sims import PRODUCTS
from lanewise.sims.common.completion import completing
from lanewise.sims.common.options import Common, GivenOptions, Option, flag_of, option_of
from lanewise.sims.common.profile_report import split_trace
from lanewise.support.checks import plain_zero

_AS_DECLARED: Mapping[str, str] = MappingProxyType({})
LARGEST = 2**63 - 1  # an integer that a checkpoint can keep
USAGE_ERROR: Any = typer.BadParameter.__bases__[0]  # typer brings its own click


class _Plain:
    """What all commands add to those of typer: only options that are alike are suggested, and flags
    have no type.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as ever, but suggest only what is alike."""
        with _alike_only():
            return super().parse_args(ctx, args)  # pyright: ignore[reportAttributeAccessIssue]

    def get_params(self, ctx: Any) -> list[Any]:
        """Its options, flags without the type of a value."""
        parameters = super().get_params(ctx)  # pyright: ignore[reportAttributeAccessIssue]
        return _flags_alone(parameters)


class Listed(_Plain, TyperGroup):
    """Commands that are listed where another one is requested."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that runs."""
        try:
            return super().resolve_command(ctx, args)
        except USAGE_ERROR as error:
            said: Any = error
            if "Did you mean" not in said.message:
                said.message += f" Wanted {', '.join(self.list_commands(ctx))}."
            raise


class Command(_Plain, TyperCommand):
    """A command that is none of a simulation's."""


class ProfiledCommand(_Plain, TyperCommand):
    """A command with the options of `Common`, of which users see `--profile`, or `--profile
    FILE.json`, as one.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Split the one into the two, then parse as ever."""
        return super().parse_args(ctx, split_trace(args))


@contextmanager
def _alike_only() -> Generator[None]:
    """Within the block, an unknown option is compared with others without its dashes, which all of
    them have.
    """
    try:
        yield
    except USAGE_ERROR as error:
        wrong: Any = error
        if possible := getattr(wrong, "possibilities", None):
            asked = wrong.option_name.lstrip("-")
            wrong.possibilities = [
                p for p in possible if difflib.get_close_matches(asked, [p.lstrip("-")])
            ]
        raise


def _flags_alone(parameters: list[Any]) -> list[Any]:
    """Options as they are, with an empty metavar for flags that have none: the help would give them
    a type.
    """
    for p in parameters:
        if getattr(p, "is_flag", False) and p.metavar is None:
            p.metavar = ""
    return parameters


def product_app(name: str) -> typer.Typer:
    """The commands of a product, `lanewise NAME ...`."""
    app = typer.Typer(cls=Listed, no_args_is_help=True, add_completion=False, help=PRODUCTS[name])

    @app.callback(help=PRODUCTS[name])  # with one, a single command keeps its name
    def _() -> None: ...

    return app


def run_command(
    app: typer.Typer,
    *classes: type[Any],
    after: Mapping[str, str] = _AS_DECLARED,
    name: str = "run",
    common: type[Any] = Common,
) -> Callable[[Callable[[GivenOptions], None]], Callable[[GivenOptions], None]]:
    """Make a function the command `name` of a product; its options are those of the fields of these
    classes, and of `common`.

    after: options that stand elsewhere in the help than where they are declared, and behind which
    one.
    """

    def decorate(function: Callable[[GivenOptions], None]) -> Callable[[GivenOptions], None]:
        def run(**values: Any) -> None:
            function(GivenOptions(values))

        run.__doc__ = function.__doc__
        run.__signature__ = inspect.Signature(  # pyright: ignore[reportFunctionMemberAccess]
            _ordered(
                [_parameter(f, o, hints[f.name]) for f, o, hints in _declared((*classes, common))],
                after,
            )
        )
        app.command(name, cls=ProfiledCommand)(run)
        return function

    return decorate


def _declared(classes: tuple[type[Any], ...]) -> list[tuple[Field[Any], Option, dict[str, Any]]]:
    declared: list[tuple[Field[Any], Option, dict[str, Any]]] = []
    for cls in classes:
        hints = get_type_hints(cls)
        declared += [(f, o, hints) for f in fields(cls) if (o := option_of(f)) is not None]
    return declared


def _ordered(
    parameters: list[inspect.Parameter], after: Mapping[str, str]
) -> list[inspect.Parameter]:
    order = [p.name for p in parameters if p.name not in after]
    for name, before in after.items():
        order.insert(order.index(before) + 1, name)
    return sorted(parameters, key=lambda p: order.index(p.name))


def _parameter(f: Field[Any], o: Option, kind: Any) -> inspect.Parameter:
    """The parameter that typer makes an option of."""
    text = o.help.replace("{default}", _shown(f.default))
    complete = completing(o.values) if o.values else None
    if o.argument:
        described: Any = typer.Argument(
            metavar=o.metavar, show_default=False, help=text, autocompletion=complete
        )
    else:
        parser = None if o.parse else PARSERS.get(kind)
        described = typer.Option(
            *(o.flags or (flag_of(f, o),)),
            metavar=o.metavar,
            help=text,
            rich_help_panel=o.panel,
            show_default=False,
            parser=parser,
            callback=None if parser is None else at_least(o.minimum),
            hidden=o.hidden,
            autocompletion=complete if parser is None else None,
        )
    kind = str if o.parse else kind
    alone = kind is bool  # one flag, which is there or not
    annotation = Annotated[kind, described] if alone else Annotated[kind | None, described]
    default = False if alone else None
    return inspect.Parameter(
        f.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


def whole_number(text: str | int) -> int:
    """`10000`, `10_000`, `10,000` or `1e4`; raises `typer.BadParameter` for anything else.

    A number is a default.
    """
    plain = str(text).strip().replace("_", "").replace(",", "")
    try:
        if not plain.isascii():  # digits of other scripts, which Python reads
            raise typer.BadParameter(f"{text!r} is not an integer; write it like 10000 or 1e4")
        return _kept_integer(text, int(plain))
    except ValueError:
        pass
    try:
        number = float(plain)
    except ValueError:
        number = math.nan
    if not number.is_integer():
        raise typer.BadParameter(f"{text!r} is not an integer; write it like 10000 or 1e4")
    return _kept_integer(text, int(number))


def _kept_integer(text: str | int, number: int) -> int:
    """The number, if a checkpoint can keep it."""
    if abs(number) > LARGEST:
        raise typer.BadParameter(f"{text} is too large; wanted at most {LARGEST:,}")
    return number


def real_number(text: str | float) -> float:
    """`0.01`, `1e-2` or `1_000.5`; raises `typer.BadParameter` for anything else.

    A number is a default.
    """
    try:
        number = float(text)
        if not str(text).isascii():  # digits of other scripts, which Python reads
            raise ValueError
        return plain_zero(number)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a number; write it like 0.01 or 1e-2") from None


# of options that are numbers, by their type
PARSERS: Mapping[Any, Callable[[Any], Any]] = {
    int: whole_number,
    int | None: whole_number,
    float: real_number,
    float | None: real_number,
}


def at_least(minimum: float | None) -> Callable[[Any], Any]:
    """A callback of an option that is no smaller than this."""

    def check(value: Any) -> Any:
        if minimum is not None and isinstance(value, int | float) and not value >= minimum:
            raise typer.BadParameter(f"{value} is too small; wanted {minimum:g} or more")
        return value

    return check


def _shown(default: Any) -> str:
    assert default is not MISSING
    return f"{default:g}" if isinstance(default, float) else str(default)
