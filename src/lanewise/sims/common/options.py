"""What a command can be told, declared once: a field of the settings has its option with it, and
the command line is made of these.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Settings:
        dt: float = setting(1e-3, Option(METHOD, "X", "time step (default {default})"))

Every option is None when it is left out, so that one given together with --resume can be told from
it. Modules that declare options import little: the command line reads them at every start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from lanewise.sims.common.completion import DEVICES, Values
from lanewise.support.errors import InputError

STATE, METHOD, OUTPUT = "Initial state", "Method", "Files and output"  # panels of the help
_KEY = "option"  # of a field's metadata
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
PLACE = Option(
    METHOD,
    "NAME",
    "cpu, cuda, cuda:1, ..., or several GPUs: cuda:*, cuda:0,1 (default cpu; with --resume as "
    "before)",
    values=DEVICES,
)
CHECKPOINT_EVERY = Option(
    OUTPUT,
    "N",
    "steps between checkpoints (default a minute or more; with --resume as before)",
    minimum=1,
)
RESUME = Option(OUTPUT, "FILE.h5", "continue this checkpoint, bit-exact on the same device")
OVERWRITE = Option(OUTPUT, "", "replace files that exist")


PROFILE = setting(
    False,
    Option(
        OUTPUT,
        "",
        "report where the time goes; --profile FILE.json also writes a trace for Perfetto",
        ("--profile",),
    ),
)
PROFILE_TRACE: Path | None = setting(None, Option(OUTPUT, "", "", hidden=True))
JSON = setting(False, Option(OUTPUT, "", "end with one line of JSON"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """What every run can be told, after all else."""

    profile: bool = PROFILE
    profile_trace: Path | None = PROFILE_TRACE
    json: bool = JSON
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
            if option is None or f.name not in self._values or f.name in but:
                continue
            flag = flag_of(f, option)
            # a flag without its opposite is False where it is left out
            if self._values[f.name] is not False or "/" in flag:
                raise InputError(
                    f"{flag} cannot be given with --resume: the checkpoint keeps its own"
                )


def flag_of(f: Field[Any], option: Option) -> str:
    """The name by which users know it."""
    if option.argument:
        return option.metavar
    return option.flags[0] if option.flags else f"--{f.name.replace('_', '-')}"
