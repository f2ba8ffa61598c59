"""Templates, directions and results as text: CSV files, whole or not at all; what is written begins
with the sum of its lines (`io/summed_text.py`).
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.io.columns import plain
from lanewise.io.source import FilePath, reading
from lanewise.io.summed_text import check_lines, summed_text, without_comments
from lanewise.sims.waves.definition import FStatistic
from lanewise.sims.waves.templates import Templates
from lanewise.support.errors import InputError

NEEDED = ("freq", "alpha", "delta")
OPTIONAL = ("f1dot", "f2dot", "f3dot")
RESULTS = ("twoF", "Fa_re", "Fa_im", "Fb_re", "Fb_im", "A", "B", "C", "D")


@dataclass(frozen=True, slots=True)
class TemplateTable:
    """The rows of a file as they stand there, with the names of their columns, and the templates
    that they are.
    """

    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    templates: Templates


def read_templates(path: FilePath, reference: int) -> TemplateTable:
    """A CSV file with the columns freq, alpha and delta, perhaps f1dot, f2dot and f3dot, and
    others, which are kept; lines that begin with # are passed over.

    reference: GPS nanoseconds. Raises InputError that names file, line and column, where the lines
    are not those of the file's sum, and for a line with # that may be a template whose first value
    is a text.
    """
    numbered = _read(path)
    if not numbered:
        raise InputError(
            f"{path}: the file is empty; wanted a line of names, among them {', '.join(NEEDED)}"
        )
    (_, head), *below = numbered
    names, lines, body = (
        tuple(n.strip() for n in head),
        [n for n, _ in below],
        [row for _, row in below],
    )
    if missing := [n for n in NEEDED if n not in names]:
        raise InputError(
            f"{path}: there is no column {', '.join(missing)}; wanted "
            f"{', '.join((*NEEDED, *OPTIONAL))}"
        )
    _check_comments(path, names, numbered[0][0])
    if not body:
        raise InputError(f"{path}: there are no templates below the names of the columns")
    for number, row in below:
        if len(row) != len(names):
            raise InputError(
                f"{path}, line {number}: it has {len(row)} values; wanted {len(names)}, one for "
                "each column"
            )
    columns: dict[str, Any] = {
        n: _numbers(path, n, [r[names.index(n)] for r in body], lines)
        for n in (*NEEDED, *OPTIONAL)
        if n in names
    }
    templates = Templates(**columns, reference=reference)
    return TemplateTable(names, tuple(tuple(r) for r in body), templates)


def _check_comments(path: FilePath, names: Sequence[str], head: int) -> None:
    """Refuse comments below the names that have a value for each column, the first of which is no
    number.
    """
    if len(names) < 2 or names[0] in (*NEEDED, *OPTIONAL):
        return
    with Path(path).open(newline="", encoding="utf-8-sig") as stream:
        for number, line in enumerate(stream, 1):
            if number <= head or not line.lstrip().startswith("#"):
                continue
            if len(next(csv.reader([line]))) == len(names):
                raise InputError(
                    f"{path}, line {number}: it begins with #, as comments do, and has a value for "
                    f"each column, as templates have; wanted its {names[0]} in quotes, or no such "
                    "line"
                )


def read_sky(path: FilePath) -> list[tuple[float, float]]:
    """Directions, one a line: alpha and delta in radians, apart by blanks or a comma; lines with #
    are comments.
    """
    directions: list[tuple[float, float]] = []
    for number, row in _read(path, summed=False):
        words = " ".join(row).split("#")[0].split()
        if not words:
            continue
        if len(words) != 2:
            raise InputError(
                f"{path}, line {number}: it has {len(words)} values; wanted alpha and delta"
            )
        alpha, delta = _numbers(path, "direction", words, [number] * 2)
        directions.append((float(alpha), float(delta)))
    return directions


def _read(path: FilePath, summed: bool = True) -> list[tuple[int, list[str]]]:
    """The rows that are not blank, with the numbers of their lines."""
    with (
        reading(path, "CSV", (UnicodeDecodeError, csv.Error)),
        Path(path).open(newline="", encoding="utf-8-sig") as stream,
    ):
        if summed:
            check_lines(path)
        lines = csv.reader(without_comments(stream))
        return [(lines.line_num, row) for row in lines if row]


def _numbers(
    path: FilePath, name: str, texts: Sequence[str], lines: Sequence[int]
) -> NDArray[np.float64]:
    numbers = np.empty(len(texts))
    for i, text in enumerate(texts):
        try:
            numbers[i] = float(plain(text))
        except ValueError:
            raise InputError(
                f"{path}, line {lines[i]}: {name} is {text!r}; wanted a number"
            ) from None
    return numbers


def result_names(detectors: Sequence[str]) -> list[str]:
    """The names of `result_columns`."""
    return [*RESULTS, *(f"twoF_{name}" for name in detectors)]


def result_columns(
    statistic: FStatistic, detectors: Sequence[str]
) -> dict[str, NDArray[np.float64]]:
    """The columns of an F-statistic of one stack: twoF, Fa_re, Fa_im, Fb_re, Fb_im, A, B, C, D and
    twoF_<detector>.
    """
    fa, fb = statistic.fa[0], statistic.fb[0]
    values = (
        statistic.two_f[0],
        fa.real,
        fa.imag,
        fb.real,
        fb.imag,
        statistic.a[0],
        statistic.b[0],
        statistic.c[0],
        statistic.d[0],
    )
    return dict(zip(result_names(detectors), (*values, *statistic.two_f_detector[0]), strict=True))


def write_table(
    path: FilePath,
    columns: Mapping[str, NDArray[Any]],
    overwrite: bool,
    before: tuple[Sequence[str], Iterable[Sequence[str]]] = ((), ()),
) -> None:
    """Write columns of numbers as CSV, each with the digits that give it back. before: names and
    rows of text to their left.
    """
    names, rows = before
    numbers = zip(*([repr(x) for x in c.tolist()] for c in columns.values()), strict=True)
    with summed_text(path, overwrite) as lines:
        out = csv.writer(lines, lineterminator="\n")
        out.writerow([*names, *columns])
        if names:
            quoted: Any = csv.writer(lines, lineterminator="\n", quoting=csv.QUOTE_ALL)
            for left, right in zip(rows, numbers, strict=True):
                comment = left[0].lstrip().startswith("#")  # without quotes it would be one
                (quoted if comment else out).writerow([*left, *right])
        else:
            out.writerows(numbers)
