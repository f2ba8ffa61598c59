"""What a command can be told, declared once: a field of the settings has its option with it, and
the command line is made of these.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Settings:
        dt: float = setting(1e-3, Option(METHOD, "X", "time step (default {default})"))

    @run_command(app, Settings, Output)
    def run(given: Given) -> None: ...

Every option is None when it is left out, so that one given together with --resume can be told from
it. Modules that declare options import little: the command line reads them at every start.

Commands that run simulations have `--profile`: a table of where the time went, and a trace for
Perfetto. It may be followed by the name of the trace, which ends in .json: what follows it
otherwise is another argument.
"""

from __future__ import annotations

import difflib
import inspect
import math
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, TypeVar, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from lanewise.profiling import Profile
from lanewise.sims import PRODUCTS
from lanewise.sims.common.completion import DEVICES, Values, completing
from lanewise.support.checks import plain_zero
from lanewise.support.errors import InputError

FLAG, SUFFIX = "--profile", ".json"


def split_trace(args: list[str]) -> list[str]:
    """`--profile FILE.json` and `--profile=FILE.json` as `--profile --profile-trace=FILE.json`; all
    else stays.
    """
    words: list[str] = []
    for position, word in enumerate(args):
        name, _, value = word.partition("=")
        if word == "--":
            return [*words, *args[position:]]
        if name == FLAG and value:
            words += [FLAG, f"--profile-trace={value}"]
        elif (
            position
            and args[position - 1] == FLAG
            and Path(word).suffix
            and not word.startswith("-")
        ):
            words.append(f"--profile-trace={word}")
        else:
            words.append(word)
    return words


class ProfileReport:
    """The profile of a command, from here to `finish`.

    `profile` is None when nobody asked for one.
    """

    def __init__(
        self, asked: bool, trace: Path | None, overwrite: bool, *others: Path | None
    ) -> None:
        """`others`: the other files of the command.

        Raises `InputError` for a trace that cannot be written.
        """
        if trace is not None:
            check_trace(trace, overwrite, *others)
        self.profile = Profile() if asked or trace is not None else None
        self._trace, self._overwrite = trace, overwrite
        self._whole = None if self.profile is None else self.profile.span("rest", name="run")
        if self._whole is not None:
            self._whole.__enter__()

    def finish(self, summary: dict[str, Any] | None = None) -> None:
        """Print the table on standard error, write the trace, and put the numbers into `summary`,
        as "profile".
        """
        if self.profile is None or self._whole is None:
            return
        from rich.console import Console

        self._whole.__exit__(None, None, None)
        Console(file=sys.stderr).print(self.profile.table())
        if self._trace is not None:
            self.profile.write_trace(self._trace, overwrite=self._overwrite)
            print(
                f"trace written to {self._trace}; https://ui.perfetto.dev opens it", file=sys.stderr
            )
        if summary is not None:
            summary["profile"] = self.profile.summary()


def check_trace(trace: Path, overwrite: bool, *others: Path | None) -> None:
    """Refuse, before anything is computed, a trace that cannot be written or would replace another
    file of the command.
    """
    from lanewise.io.atomic import writable_target

    if trace.suffix.lower() != SUFFIX:
        raise InputError(f"--profile {trace}: wanted a name that ends in {SUFFIX}")
    for other in others:
        if other is not None and other.resolve() == trace.resolve():
            raise InputError(
                f"--profile {trace} would replace another file of this command; wanted another name"
            )
    writable_target(trace, overwrite)


STATE, METHOD, OUTPUT = "Initial state", "Method", "Files and output"  # panels of the help
_KEY = "option"  # of a field's metadata
_AS_DECLARED: Mapping[str, str] = MappingProxyType({})
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Option:
    """What the command line says about a field; `{default}` in `help` stands for the field's
    default.

    flags: the names on the command line, if they are not the field's. minimum: of a number.
    argument: it has no flag, and its metavar is its name. parse: what makes the field's value of
    the text that is given, where its type is none that the command line knows.
    values: what a shell completes.
    """

    panel: str
    metavar: str
    help: str
    flags: tuple[str, ...] = ()
    minimum: float | None = None
    argument: bool = False
    hidden: bool = False
    parse: Callable[[str], Any] | None = None
    values: Values = ()


def setting(default: T, option: Option) -> T:
    """A field of a dataclass, with its option."""
    return field(default=default, metadata={_KEY: option})


def option_of(f: Field[Any]) -> Option | None:
    """The option of a field, if the command line has one."""
    return f.metadata.get(_KEY)


DEVICE = Option(
    METHOD, "NAME", "cpu, cuda, cuda:1, ... (default cpu; with --resume as before)", values=DEVICES
)
CHECKPOINT_EVERY = Option(
    OUTPUT,
    "N",
    "steps between checkpoints (default a minute or more; with --resume as before)",
    minimum=1,
)
RESUME = Option(OUTPUT, "FILE.h5", "continue this checkpoint, bit-exact on the same device")
OVERWRITE = Option(OUTPUT, "", "replace files that exist")


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """What every run can be told, after all else."""

    profile: bool = setting(
        False,
        Option(
            OUTPUT,
            "",
            "say where the time went; --profile FILE.json writes a trace for Perfetto, too",
            (FLAG,),
        ),
    )
    profile_trace: Path | None = setting(None, Option(OUTPUT, "", "", hidden=True))
    json: bool = setting(False, Option(OUTPUT, "", "end with one line of JSON"))
    quiet: bool = setting(False, Option(OUTPUT, "", "no progress bar"))


# ------------------------------------------------------------ what was given


class GivenOptions:
    """The options that were given on the command line, by the names of their fields."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = {name: value for name, value in values.items() if value is not None}

    def __getitem__(self, name: str) -> Any:
        """The value, or None when it was left out."""
        return self._values.get(name)

    def of(self, cls: type[Any]) -> dict[str, Any]:
        """The values of the fields of a class of settings."""
        options = {f.name: option_of(f) for f in fields(cls)}
        return {
            name: value if (o := options[name]) is None or o.parse is None else o.parse(value)
            for name, value in self._values.items()
            if name in options
        }

    def make(self, cls: type[T], **more: Any) -> T:
        """Settings of this class: as given, else their defaults."""
        return cls(**self.of(cls), **more)

    def refuse_with_resume(self, *classes: type[Any], but: tuple[str, ...] = ()) -> None:
        """Raise `InputError` for what a checkpoint says itself: the fields of these classes."""
        for f in (f for cls in classes for f in fields(cls)):
            option = option_of(f)
            if option is not None and f.name in self._values and f.name not in but:
                raise InputError(
                    f"{_flag(f, option)} cannot be given with --resume: the checkpoint keeps its "
                    "own"
                )


def _flag(f: Field[Any], option: Option) -> str:
    """The name by which users know it."""
    if option.argument:
        return option.metavar
    return option.flags[0] if option.flags else f"--{f.name.replace('_', '-')}"


# ------------------------------------------------------------ the command


USAGE_ERROR: Any = typer.BadParameter.__bases__[0]  # typer brings a click of its own


class Listed(TyperGroup):
    """Commands that are listed where another one is asked for."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that runs."""
        try:
            return super().resolve_command(ctx, args)
        except USAGE_ERROR as error:
            said: Any = error
            if "Did you mean" not in said.message:
                said.message += f" Wanted {', '.join(self.list_commands(ctx))}."
            raise

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as ever, but suggest only what is alike."""
        with _alike_only():
            return super().parse_args(ctx, args)

    def get_params(self, ctx: Any) -> list[Any]:
        """Its options, flags without the type of a value."""
        return _flags_alone(super().get_params(ctx))


class Command(TyperCommand):
    """A command that is none of a simulation's."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as ever, but suggest only what is alike."""
        with _alike_only():
            return super().parse_args(ctx, args)

    def get_params(self, ctx: Any) -> list[Any]:
        """Its options, flags without the type of a value."""
        return _flags_alone(super().get_params(ctx))


class ProfiledCommand(TyperCommand):
    """A command with the options of `Common`, of which users see `--profile`, or `--profile
    FILE.json`, as one.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Split the one into the two, then parse as ever, but suggest only what is alike."""
        with _alike_only():
            return super().parse_args(ctx, split_trace(args))

    def get_params(self, ctx: Any) -> list[Any]:
        """Its options, flags without the type of a value."""
        return _flags_alone(super().get_params(ctx))


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
    elif kind in (int, int | None) and not o.parse:
        described = typer.Option(
            *(o.flags or (_flag(f, o),)),
            metavar=o.metavar,
            help=text,
            rich_help_panel=o.panel,
            show_default=False,
            parser=whole_number,
            callback=at_least(o.minimum),
            hidden=o.hidden,
        )
    elif kind in (float, float | None) and not o.parse:
        described = typer.Option(
            *(o.flags or (_flag(f, o),)),
            metavar=o.metavar,
            help=text,
            rich_help_panel=o.panel,
            show_default=False,
            parser=real_number,
            callback=at_least(o.minimum),
            hidden=o.hidden,
        )
    else:
        described = typer.Option(
            *(o.flags or (_flag(f, o),)),
            metavar=o.metavar,
            help=text,
            rich_help_panel=o.panel,
            show_default=False,
            hidden=o.hidden,
            autocompletion=complete,
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
            raise typer.BadParameter(f"{text!r} is no whole number; wanted one as 10000 or 1e4")
        return int(plain)
    except ValueError:
        pass
    try:
        number = float(plain)
    except ValueError:
        number = math.nan
    if not number.is_integer():
        raise typer.BadParameter(f"{text!r} is no whole number; wanted one as 10000 or 1e4")
    return int(number)


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
        raise typer.BadParameter(f"{text!r} is no number; wanted one as 0.01 or 1e-2") from None


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
