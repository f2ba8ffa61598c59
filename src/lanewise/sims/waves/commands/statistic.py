"""`lanewise waves fstat`: 2F of the templates of a file, or of a band of frequencies."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.profiling import Profile, span
from lanewise.sims import waves
from lanewise.sims.common.frame import held, print_json
from lanewise.sims.common.options import GivenOptions
from lanewise.sims.common.profile_report import ProfileReport
from lanewise.sims.waves.commands.arguments import require
from lanewise.sims.waves.commands.files import check_device, check_outputs, prepared_data
from lanewise.sims.waves.commands.options import Input, SoughtTemplates
from lanewise.sims.waves.lost import said
from lanewise.sims.waves.ranges import MOST_FREQUENCIES
from lanewise.sims.waves.tables import read_templates, result_columns, result_names, write_table
from lanewise.support.errors import InputError
from lanewise.support.numerals import counted, numeral

METHODS = ("demod", "resamp", "auto")
HOST = ("cpu", "numpy")  # devices whose user does not mind that transforms are NumPy's
BAND = ("freq", "band", "step", "sky")


@dataclass(frozen=True, slots=True)
class _Computed:
    """2F of templates: by which method, why by this one, where, and what stands left of the results
    in the file.
    """

    statistic: waves.FStatistic
    data: waves.SearchData
    columns: Mapping[str, NDArray[Any]]
    before: tuple[Sequence[str], Sequence[Sequence[str]]]
    method: str
    where: str
    reason: str

    @property
    def count(self) -> int:
        return self.statistic.two_f.shape[1]


def fstat(matched: GivenOptions) -> None:
    """Compute, write, say."""
    require(matched, "sfts", "ref_time", "out")
    asked, sought = matched.make(Input), matched.make(SoughtTemplates)
    out, plot = sought.out, sought.plot
    assert out is not None
    _check(matched, asked, sought)
    check_outputs(out, plot, sought.overwrite)
    report = ProfileReport(
        matched["profile"], matched["profile_trace"], sought.overwrite, out, plot
    )
    start = time.perf_counter()
    with held(out, plot, matched["profile_trace"]):
        computed = (_of_a_file if sought.templates is not None else _of_a_band)(
            asked, sought, report.profile
        )
        with span(report.profile, "output", name="table"):
            write_table(out, computed.columns, sought.overwrite, computed.before)
        if plot is not None:
            with span(report.profile, "output", name="picture"):
                _draw(plot, computed)
        seconds = time.perf_counter() - start
        summary = _summary(computed, asked, seconds, out, plot)
        report.finish(summary)
    _say(computed, seconds, out, sys.stderr if matched["json"] else sys.stdout)
    if matched["json"]:
        print_json(summary)


def _check(matched: GivenOptions, asked: Input, sought: SoughtTemplates) -> None:
    """Refuse what does not go together, before anything is read."""
    if sought.method not in METHODS:
        raise InputError(f"--method is {sought.method!r}; wanted demod, resamp or auto")
    if sought.method == "resamp" and asked.device not in HOST:
        raise InputError(
            f"--method resamp is computed on the host, found --device {asked.device}; leave "
            "--device out"
        )
    check_device(asked.device)
    if sought.templates is not None:
        extra = [n for n in (*BAND, "f1dot", "f2dot") if matched[n] is not None]
        if extra:
            raise InputError(
                f"{', '.join(f'--{n}' for n in extra)} cannot be given with --templates"
            )
        if sought.method == "resamp":
            raise InputError(
                "--method resamp needs a band: --freq, --band, --step and --sky instead of "
                "--templates"
            )
        if sought.plot is not None:
            raise InputError(
                "--plot shows 2F over frequency; wanted a band: --freq, --band, --step and --sky"
            )
    elif missing := [f"--{n}" for n in BAND if matched[n] is None]:
        verb = "is" if len(missing) == 1 else "are"
        raise InputError(
            f"{', '.join(missing)} {verb} missing; wanted --templates, or --freq, --band, --step "
            "and --sky"
        )


def _read(
    asked: Input, sought: SoughtTemplates, profile: Profile | None
) -> tuple[waves.SearchData, waves.Ephemeris]:
    orbits = waves.Ephemeris.load(asked.ephemeris)
    with span(profile, "input", name="SFTs"):
        data = prepared_data(
            asked.sfts or (), sought.cover, asked.dterms, sought.sqrt_s, asked.skip_bad
        )
    return data, orbits


def _of_a_file(asked: Input, sought: SoughtTemplates, profile: Profile | None) -> _Computed:
    assert sought.templates is not None
    table = read_templates(sought.templates, asked.ref_time)
    data, orbits = _read(asked, sought, profile)
    if both := [n for n in result_names(data.detectors) if n in table.names]:
        raise InputError(
            f"{sought.templates}: it has the column {both[0]} already; wanted a file without "
            "results"
        )
    with span(profile, "compute", name="demodulation"), said():
        statistic = waves.f_statistic(
            data, table.templates, orbits, dterms=asked.dterms, device=asked.device
        )
    columns = result_columns(statistic, data.detectors)
    return _Computed(statistic, data, columns, (table.names, table.rows), "demod", asked.device, "")


def _of_a_band(asked: Input, sought: SoughtTemplates, profile: Profile | None) -> _Computed:
    band = _band(asked, sought)
    data, orbits = _read(asked, sought, profile)
    method, reason = _method(data, band, asked, sought)
    with (
        span(profile, "compute", name="resampling" if method == "resamp" else "demodulation"),
        said(),
    ):
        if method == "resamp":
            statistic = waves.f_statistic_band(data, band, orbits, dterms=asked.dterms)
        else:
            templates = waves.Templates(
                band.frequencies,
                band.alpha,
                band.delta,
                sought.f1dot,
                sought.f2dot,
                reference=asked.ref_time,
            )
            statistic = waves.f_statistic(
                data, templates, orbits, dterms=asked.dterms, device=asked.device
            )
    fixed = {"alpha": band.alpha, "delta": band.delta, "f1dot": sought.f1dot, "f2dot": sought.f2dot}
    columns = {"freq": band.frequencies, **{k: np.full(band.count, v) for k, v in fixed.items()}}
    where = "numpy" if method == "resamp" else asked.device
    return _Computed(
        statistic,
        data,
        columns | result_columns(statistic, data.detectors),
        ((), ()),
        method,
        where,
        reason,
    )


def _method(
    data: waves.SearchData, band: waves.Band, asked: Input, sought: SoughtTemplates
) -> tuple[str, str]:
    """The method, and why this one."""
    if sought.method != "auto":
        return sought.method, "as --method says"
    if asked.device not in HOST:
        return "demod", "resampling is computed on the host alone"
    choice = waves.choose_method(data, band, asked.dterms, device=asked.device)
    return choice.method, choice.reason


def _band(asked: Input, sought: SoughtTemplates) -> waves.Band:
    freq, width, step, sky = sought.freq, sought.band, sought.step, sought.sky
    assert freq is not None
    assert width is not None
    assert step is not None
    assert sky is not None
    if not (step > 0 and width >= 0):
        raise InputError(
            f"--step is {numeral(step)} and --band {numeral(width)}; wanted above zero, and zero "
            "or more"
        )
    if not (steps := width / step) < MOST_FREQUENCIES:
        raise InputError(
            f"--step is {numeral(step)} and --band {numeral(width)}, which makes {steps:.3g} "
            f"frequencies; wanted at most {MOST_FREQUENCIES:,}"
        )
    count = math.floor(steps + 1e-6) + 1
    return waves.Band(freq, step, count, *sky, asked.ref_time, sought.f1dot, sought.f2dot)


def _draw(path: Path, computed: _Computed) -> None:
    from lanewise.sims.waves.view import draw_band

    alpha, delta, f1dot = (float(computed.columns[n][0]) for n in ("alpha", "delta", "f1dot"))
    where = f"towards ({alpha:.4f}, {delta:.4f}) rad, {numeral(f1dot)} Hz/s"
    draw_band(
        path,
        computed.columns["freq"],
        computed.statistic,
        computed.data.detectors,
        computed.method,
        where,
    )


def _summary(
    computed: _Computed, asked: Input, seconds: float, out: Path, plot: Path | None
) -> dict[str, Any]:
    best = int(computed.statistic.two_f[0].argmax())
    return {
        "templates": computed.count,
        "method": computed.method,
        "device": computed.where,
        "reason": computed.reason,
        "seconds": seconds,
        "sfts": len(computed.data),
        "ephemeris": asked.ephemeris,
        "largest": {"template": best, "twoF": float(computed.statistic.two_f[0, best])},
        "out": str(out),
        "plot": None if plot is None else str(plot),
    }


def _say(computed: _Computed, seconds: float, out: Path, to: Any) -> None:
    two_f = computed.statistic.two_f[0]
    best, why = int(two_f.argmax()), f" ({computed.reason})" if computed.reason else ""
    print(f"{computed.data}", file=to)
    print(
        f"{computed.method} on {computed.where}: "
        f"{counted(computed.count, 'template', 'templates')} in {seconds:.3f} s{why}",
        file=to,
    )
    print(f"largest 2F: {two_f[best]:.4f}, template {best}; results in {out}", file=to)
