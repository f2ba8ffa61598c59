"""File names of SFTs (LIGO-T040164): `H-21_H1_1800SFT_label-1238166018-43200.sft`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lanewise.support.attributes import frozen
from lanewise.support.checks import check_fields, checked
from lanewise.support.errors import InputError

_PATTERN = re.compile(
    r"(?P<site>[A-Z])-(?P<count>\d+)_(?P<detector>[A-Z]\d)_(?P<duration>\d+)SFT(?:_(?P<label>(?!NBF)[A-Za-z0-9+]+))?"
    r"(?:_NBF(?P<f>\d{4})Hz(?P<fr>\d+)W(?P<w>\d{4})Hz(?P<wr>\d+))?-(?P<start>\d+)-(?P<span>\d+)\.sft"
)


@frozen
@dataclass(frozen=True, slots=True)
class SftName:
    """The content of a file name.

    Attributes:
        detector: two characters, for example H1
        count: SFTs in the file
        duration: of one SFT, seconds
        start: GPS seconds of the first sample
        span: seconds from there to the end of the last SFT
        label: letters and digits; in public files O<run><kind>+V<revision>+C<channel>+W<window>
        band: of narrow-band files: the first bin and the width, each as (whole Hz, bins above it)
    """

    detector: str
    count: int
    duration: int
    start: int
    span: int
    label: str = ""
    band: tuple[tuple[int, int], tuple[int, int]] | None = None

    def __post_init__(self) -> None:
        check_fields(self, InputError)
        if not _PATTERN.fullmatch(str(self)):
            raise InputError(
                f"{str(self)!r} is no name of an SFT file; wanted for example "
                "H-21_H1_1800SFT_label-1238166018-43200.sft, "
                "with a label of letters and digits"
            )

    def __str__(self) -> str:
        label = f"_{self.label}" if self.label else ""
        if self.band is not None:
            (f, fr), (w, wr) = self.band
            label += f"_NBF{f:04d}Hz{fr}W{w:04d}Hz{wr}"
        head = f"{self.detector[:1]}-{self.count}_{self.detector}_{self.duration}SFT"
        return f"{head}{label}-{self.start:09d}-{self.span}.sft"


@checked(InputError)
def parse_name(name: str) -> SftName:
    """The content of a file name; raises InputError for a name that does not follow the
    convention.
    """
    match = _PATTERN.fullmatch(name)
    if match is None or match["site"] != match["detector"][0]:
        raise InputError(
            f"{name}: no name of an SFT file; wanted for example "
            "H-21_H1_1800SFT_label-1238166018-43200.sft"
        )
    band = None
    if match["f"] is not None:
        band = ((int(match["f"]), int(match["fr"])), (int(match["w"]), int(match["wr"])))
    count, duration, start, span = (int(match[k]) for k in ("count", "duration", "start", "span"))
    return SftName(match["detector"], count, duration, start, span, match["label"] or "", band)
