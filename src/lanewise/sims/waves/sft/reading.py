"""SFTs from files: headers first, then the checksums, then the bins of the band and no others."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import groupby, pairwise
from pathlib import Path
from typing import BinaryIO

import numpy as np

from lanewise.io.source import matching, of_brackets
from lanewise.sims.waves.sft.blocks import (
    SECOND,
    Block,
    Damage,
    checksum,
    gps_text,
    read_bins,
    read_comment,
    read_header,
)
from lanewise.sims.waves.sft.sets import DetectorSfts, LeftOut, SftSet
from lanewise.sims.waves.sft.windows import window_of
from lanewise.support.checks import checked
from lanewise.support.errors import InputError
from lanewise.support.numerals import numerals

ROUNDING = 1e-3  # bins; by so much a frequency may miss a bin and still lie on it
Report = Callable[[Path, int, str], None]
BandOf = Callable[[int, int, float], tuple[float, float]]


def band_bins(low: float, high: float, duration: float, margin: int = 0) -> tuple[int, int]:
    """The first bin and the number of bins that cover low <= f < high (Hz) of SFTs of `duration`
    seconds.

    A frequency within 1/1000 of a bin lies on it: floor(low T + 1e-3) to ceil(high T - 1e-3) - 1,
    and `margin` bins more on both sides.
    """
    first = math.floor(low * duration + ROUNDING)
    last = math.ceil(high * duration - ROUNDING) - 1
    return first - margin, max(last - first + 1, 1) + 2 * margin


@checked(InputError)
def load_sfts(
    files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    band: tuple[float, float] | None = None,
    *,
    margin: int = 0,
    skip_bad: bool = False,
    verify: bool = True,
    detectors: Sequence[str] | None = None,
    span: tuple[float, float] | None = None,
) -> SftSet:
    """Read SFTs of versions 2 and 3 in either byte order.

        files: a path, a pattern such as "data/*.sft", or several of them; a file may hold one SFT
          or many
        band: frequencies in Hz that are loaded: low <= f < high; None for all, which then must be
          the same for all SFTs
        margin: bins more on both sides of the band; a search needs `search_margin` of them
        skip_bad: leave out what is damaged, overlaps or does not cover the band, and list it in
          `left_out`, instead of raising
        verify: check the CRC-64 of every SFT that is used. A checksum is of the whole SFT: this
          reads the files once, in parts of 1 MiB. Without it only headers and the band are read.
          Memory is that of the band in both cases
        detectors: which ones, by their two characters; None for all
        span: GPS seconds: SFTs that start in low <= t < high

    SFTs of one detector and time that hold neighbouring bands (narrow-band files) are joined.
    Raises InputError that names file and SFT: no file, not an SFT, unsupported version, truncated,
    wrong checksum, several detectors in a file, out of order within a file, overlapping in time,
    band not covered, several durations.
    """
    return load_band(
        files,
        band,
        margin=margin,
        skip_bad=skip_bad,
        verify=verify,
        detectors=detectors,
        span=span,
    )


def load_band(
    files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    band: tuple[float, float] | BandOf | None,
    *,
    margin: int = 0,
    skip_bad: bool = False,
    verify: bool = True,
    detectors: Sequence[str] | None = None,
    span: tuple[float, float] | None = None,
) -> SftSet:
    """`load_sfts` of checked arguments. The band may be a function of when the sound SFTs begin and
    end (GPS nanoseconds) and of how long each lasts (seconds), as the band of a search is.
    """
    left_out: list[LeftOut] = []
    report: Report = partial(_leave_out, left_out) if skip_bad else _refuse
    blocks: list[Block] = []
    paths = _paths(files)
    for path in paths:
        blocks += _headers(path, report)
    blocks = [b for b in blocks if _is_chosen(b, detectors, span)]
    with ExitStack() as stack:
        streams: dict[Path, BinaryIO] = {}

        def stream(b: Block) -> BinaryIO:
            if b.path not in streams:
                if len(streams) >= 64:  # far fewer than a process may open
                    streams.pop(next(iter(streams))).close()
                streams[b.path] = stack.enter_context(_open(b.path))
            return streams[b.path]

        if verify:
            blocks = [b for b in blocks if _is_sound(stream(b), b, report)]
        _one_duration(blocks)  # of sound ones: a damaged header may say any
        blocks.sort(key=lambda b: (b.detector, b.start, b.first_bin))
        if callable(band):
            band = band(*_times(blocks)) if blocks else None
        sets: list[DetectorSfts] = []
        for _, own in groupby(blocks, key=lambda b: b.detector):
            sfts = _detector(list(own), band, margin, stream, report)
            if sfts is not None:
                sets.append(sfts)
    if not sets:
        reasons = "".join(f"\n  {x}" for x in left_out)
        raise InputError(f"no SFT of {_listed(paths)} can be used; wanted at least one{reasons}")
    _one_band(sets)
    return SftSet(tuple(sets), tuple(left_out))


def _listed(paths: Sequence[Path]) -> str:
    return str(paths[0]) if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more files"


def _refuse(path: Path, number: int, reason: str) -> None:
    raise InputError(f"{path}, SFT {number}: {reason}")


def _leave_out(left_out: list[LeftOut], path: Path, number: int, reason: str) -> None:
    left_out.append(LeftOut(path, number, reason))


def _paths(files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Path]:
    """The files that are named, each once, in the order of their names within a pattern."""
    names: Iterable[str | os.PathLike[str]] = (
        [files] if isinstance(files, str | os.PathLike) else files
    )
    paths: dict[Path, None] = {}
    for name in names:
        text = os.fspath(name)
        matches = matching(text)
        if not matches:
            raise InputError(
                f"{text}: there is no such file, and nothing that matches; wanted SFT "
                f"files{of_brackets(text)}"
            )
        for match in matches:
            if not Path(match).is_file():
                raise InputError(
                    f"{match}: not a file; wanted SFT files, for example {Path(match) / '*.sft'}"
                )
            paths[Path(match)] = None
    if not paths:
        raise InputError("no SFT files are named; wanted a path, a pattern or several of them")
    return list(paths)


def _open(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error


def _headers(path: Path, report: Report) -> list[Block]:
    """The SFTs of a file as far as it can be followed."""
    blocks: list[Block] = []
    with _open(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size == 0:
            report(path, 0, "not an SFT file: it is empty")
        number, offset = 0, 0
        while offset < size:
            stream.seek(offset)
            try:
                block = read_header(stream, path, number, size)
            except Damage as damage:
                report(path, number, str(damage))
                break
            if (reason := _misplaced(block, blocks)) is None:
                blocks.append(block)
            else:
                report(path, number, reason)
            number, offset = number + 1, block.end
    return blocks


def _misplaced(block: Block, before: Sequence[Block]) -> str | None:
    """Why a block may not stand where it does in its file."""
    if block.version > 2:
        try:
            window_of(block.window)
        except InputError as error:
            return str(error)
    if not before:
        return None
    first, last = before[0], before[-1]
    if block.detector != first.detector:
        return (
            f"of the detector {block.detector}, in a file of {first.detector}; wanted one detector "
            "in a file"
        )
    if block.start < last.start:
        return (
            f"out of order: it starts at GPS {gps_text(block.start)}, before SFT {last.number} at "
            f"{gps_text(last.start)}"
        )
    return None


def _is_chosen(
    block: Block, detectors: Sequence[str] | None, span: tuple[float, float] | None
) -> bool:
    if detectors is not None and block.detector not in detectors:
        return False
    return span is None or round(span[0] * SECOND) <= block.start < round(span[1] * SECOND)


def _is_sound(stream: BinaryIO, block: Block, report: Report) -> bool:
    if (computed := checksum(stream, block)) == block.crc:
        return True
    report(
        block.path, block.number,
        f"damaged: its checksum (CRC-64) is {computed:016x}, and its header says {block.crc:016x}",
    )  # fmt: skip
    return False


def _one_duration(blocks: Sequence[Block]) -> None:
    for b in blocks:
        if b.duration != blocks[0].duration:
            one, first = numerals(b.duration, blocks[0].duration)
            raise InputError(
                f"{b} lasts {one} s, and {blocks[0]} {first} s; wanted SFTs of one duration"
            )


def _times(blocks: Sequence[Block]) -> tuple[int, int, float]:
    """Start of the first and end of the last in GPS nanoseconds, and how long each lasts."""
    duration = blocks[0].duration
    last = max(b.start for b in blocks)
    return min(b.start for b in blocks), last + round(duration * SECOND), duration


def _one_band(sets: Sequence[DetectorSfts]) -> None:
    for d in sets[1:]:
        if (d.first_bin, d.bins) != (sets[0].first_bin, sets[0].bins):
            raise InputError(
                f"the SFTs of {sets[0].detector} have the bins "
                f"{_bins(sets[0].first_bin, sets[0].bins)}, those of "
                f"{d.detector} {_bins(d.first_bin, d.bins)}; give a band that both have"
            )


def _bins(first: int, bins: int) -> str:
    return f"{first} to {first + bins - 1}"


def _detector(
    blocks: list[Block],
    band: tuple[float, float] | None,
    margin: int,
    stream: Callable[[Block], BinaryIO],
    report: Report,
) -> DetectorSfts | None:
    """The SFTs of one detector; blocks: ordered by time and band."""
    groups = _joined(blocks, report)
    if band is None:
        first = groups[0][0].first_bin
        bins = groups[0][-1].first_bin + groups[0][-1].bins - groups[0][0].first_bin
    else:
        first, bins = band_bins(*band, blocks[0].duration, margin)
    used: list[list[Block]] = []
    for group in groups:
        if (reason := _lacking(group, first, bins, band)) is None:
            used.append(group)
        else:
            report(group[0].path, group[0].number, reason)
    if not used:
        return None
    data = np.empty((len(used), bins), np.complex64)
    for row, group in zip(data, used, strict=True):
        for b in group:
            low, high = max(b.first_bin, first), min(b.first_bin + b.bins, first + bins)
            if low < high:
                read_bins(stream(b), b, low, row[low - first : high - first])
    heads = [group[0] for group in used]
    return DetectorSfts(
        heads[0].detector,
        np.array([b.start for b in heads], np.int64),
        heads[0].duration,
        first,
        data,
        np.array([b.version for b in heads], np.uint8),
        np.array([b.window for b in heads], np.uint16),
        tuple(read_comment(stream(b), b) for b in heads),
    )


def _joined(blocks: list[Block], report: Report) -> list[list[Block]]:
    """The SFTs by their times; those of one time are neighbouring bands, and times do not
    overlap.
    """
    groups: list[list[Block]] = []
    for b in blocks:
        before = groups[-1][-1] if groups else None
        if before is None or b.start >= before.start + round(before.duration * SECOND):
            groups.append([b])
        elif b.start == before.start and b.first_bin >= before.first_bin + before.bins:
            groups[-1].append(b)
        else:
            report(b.path, b.number, f"overlaps {before}: it starts at GPS {gps_text(b.start)}")
    return groups


def _lacking(
    group: Sequence[Block], first: int, bins: int, band: tuple[float, float] | None
) -> str | None:
    """Why the SFTs of one time do not hold the bins that are wanted."""
    low, high = group[0].first_bin, group[-1].first_bin + group[-1].bins
    gaps = [
        (a.first_bin + a.bins, b.first_bin)
        for a, b in pairwise(group)
        if a.first_bin + a.bins < b.first_bin
    ]
    inside = [(a, b) for a, b in gaps if a < first + bins and b > first]
    if (
        low <= first
        and first + bins <= high
        and not inside
        and (band is not None or high - low == bins)
    ):
        return None
    t = group[0].duration
    if inside:
        return (
            f"the band is not covered: the bins {_bins(inside[0][0], inside[0][1] - inside[0][0])} "
            "are missing"
        )
    have = f"it has {low / t:.6f} to {(high - 1) / t:.6f} Hz (bins {_bins(low, high - low)})"
    if band is None:
        return f"{have}, the first SFT has the bins {_bins(first, bins)}; give a band that all have"
    return (
        f"the band is not covered: {have}; wanted {' to '.join(numerals(*band))} Hz (bins "
        f"{_bins(first, bins)})"
    )
