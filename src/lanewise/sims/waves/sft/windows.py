"""The windows that SFTs of version 3 name in their header: 5001 A + B (LIGO-T040164).

A is the kind; B is the window's number for kinds without a parameter (A = 0), else 5000 times the
parameter.
"""

from __future__ import annotations

from dataclasses import dataclass

from lanewise.support.attributes import frozen, near
from lanewise.support.checks import check_fields
from lanewise.support.errors import InputError
from lanewise.support.numerals import numeral, numerals

WITHOUT_PARAMETER = ("unknown", "rectangular", "hann")
WITH_PARAMETER = ("tukey",)
SHORT = {"unknown": "UNKN", "rectangular": "RECT", "hann": "HANN", "tukey": "TKEY"}
STEPS = 5000


@frozen
@dataclass(frozen=True, slots=True)
class Window:
    """What the samples were multiplied by before the transform: unknown, rectangular, hann, or
    tukey with its parameter of 0 to 1.
    """

    name: str
    parameter: float = 0.0

    def __post_init__(self) -> None:
        check_fields(self, InputError)
        if self.name not in SHORT:
            raise InputError(
                f"there is no window {self.name!r} in SFT files{near(self.name, SHORT) or ';'} "
                f"wanted {', '.join(SHORT)}"
            )
        if self.name in WITHOUT_PARAMETER and self.parameter:
            raise InputError(
                f"the window {self.name} has no parameter, found {numeral(self.parameter)}"
            )
        if not 0 <= self.parameter <= 1:
            raise InputError(
                f"the parameter of a window is {numerals(self.parameter, 0, 1)[0]}; wanted 0 to 1"
            )

    @property
    def code(self) -> int:
        """The number in the header."""
        if self.name in WITHOUT_PARAMETER:
            return WITHOUT_PARAMETER.index(self.name)
        return (STEPS + 1) * (1 + WITH_PARAMETER.index(self.name)) + round(STEPS * self.parameter)

    @property
    def short(self) -> str:
        """The letter in the names of public files."""
        return SHORT[self.name] + (
            str(round(STEPS * self.parameter)) if self.name in WITH_PARAMETER else ""
        )


def window_of(code: int) -> Window:
    """The window of a header's number; raises InputError for a number that stands for none."""
    kind, rest = divmod(code, STEPS + 1)
    if kind == 0 and rest < len(WITHOUT_PARAMETER):
        return Window(WITHOUT_PARAMETER[rest])
    if 1 <= kind <= len(WITH_PARAMETER):
        return Window(WITH_PARAMETER[kind - 1], rest / STEPS)
    raise InputError(f"the window has the number {code}, which stands for none")
