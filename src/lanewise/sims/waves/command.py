"""`lanewise waves`: make data, compute F-statistics, search."""

from __future__ import annotations

import json
import math
import sys
import time
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lanewise.errors import InputError
from lanewise.sims.common.options import product_app
from lanewise.sims.waves.units.options import (
    SECONDS,
    CheckpointEvery,
    CheckpointFolder,
    Resume,
    Scheduler,
    Units,
    WorkerCount,
)

if TYPE_CHECKING:
    from lanewise.sims.waves import Ephemeris, SearchData, SftSet, Signal
    from lanewise.sims.waves.device.memory import Memory

DATA, METHOD, OUTPUT = "Data", "Method", "Files and output"


def _option(panel: str, metavar: str, text: str, *names: str) -> Any:
    return typer.Option(*names, metavar=metavar, help=text, rich_help_panel=panel, show_default=False)


Sfts = Annotated[list[str], _option(DATA, "PATTERN", "SFT files, for example 'dir/*.sft'; may be repeated", "--sfts")]
Cover = Annotated[
    str | None, _option(DATA, "LOW,HIGH", "band in Hz that frequencies at the detectors lie in (default all there is)")
]
SkipBad = Annotated[bool, _option(DATA, "", "leave damaged SFTs out and list them", "--skip-bad")]
EphemerisName = Annotated[
    str, _option(METHOD, "NAME", "DE405 (default) and others with the tables installed, or EPV00", "--ephemeris")
]
RefTime = Annotated[str, _option(METHOD, "GPS", "reference time of frequencies, seconds", "--ref-time")]
Dterms = Annotated[int, _option(METHOD, "N", "terms of the kernel on each side (default 8)", "--dterms")]
SqrtS = Annotated[
    str | None, _option(METHOD, "X,...", "assumed sqrt(S) in 1/sqrt(Hz), one a detector in the order of their names")
]
Overwrite = Annotated[bool, _option(OUTPUT, "", "replace files that exist", "--overwrite")]
Json = Annotated[bool, _option(OUTPUT, "", "print one line of JSON", "--json")]
Device = Annotated[
    str, _option(METHOD, "NAME", "cpu (default), cuda, cuda:1, ...; numpy is the definition in float64", "--device")
]
Plot = Annotated[Path | None, _option(OUTPUT, "FILE", "PNG: a picture of the results", "--plot")]
Quiet = Annotated[bool, _option(OUTPUT, "", "no progress bar", "--quiet")]

app = product_app("waves")


@app.command("make-data")
def make_data(
    out: Annotated[Path, _option(OUTPUT, "FOLDER", "where the files go, one a detector", "--out")],
    band: Annotated[str, _option(DATA, "LOW,HIGH", "of the SFTs, Hz", "--band")],
    start: Annotated[str, _option(DATA, "GPS", "start of the first SFT, seconds", "--start")],
    count: Annotated[int, _option(DATA, "N", "SFTs of a detector, one after another", "--sfts")],
    detectors: Annotated[str, _option(DATA, "NAMES", "for example H1,L1 (default)", "--detectors")] = "H1,L1",
    duration: Annotated[float, _option(DATA, "X", "of an SFT, seconds (default 1800)", "--duration")] = 1800.0,
    sqrt_s: SqrtS = None,
    signals: Annotated[
        list[str] | None,
        _option(DATA, "K=V,...", "h0, cosi, psi, phi0, freq, alpha, delta, f1dot, f2dot; may be repeated", "--signal"),
    ] = None,
    ref_time: Annotated[
        str | None, _option(DATA, "GPS", "of the signals' frequencies (default --start)", "--ref-time")
    ] = None,
    ephemeris: EphemerisName = "DE405",
    seed: Annotated[int, _option(DATA, "N", "of the noise (default 0)", "--seed")] = 0,
    label: Annotated[str, _option(OUTPUT, "TEXT", "letters and digits in the files' names", "--label")] = "",
    overwrite: Overwrite = False,
    json_: Json = False,
) -> None:
    """Write SFTs of noise and signals."""
    import numpy as np

    from lanewise.sims import waves

    names = [n.strip() for n in detectors.split(",")]
    first = _gps(start, "--start")
    reference = first if ref_time is None else _gps(ref_time, "--ref-time")
    if count < 1:
        raise InputError(f"--sfts is {count}; wanted at least 1")
    step = round(duration * 1e9)
    starts = {n: (first + step * np.arange(count)) / 1e9 if first % 10**9 or step % 10**9 else
              (first + step * np.arange(count)) // 10**9 for n in names}  # fmt: skip
    sfts = waves.make_data(
        starts, _pair(band, "--band"), duration=duration, sqrt_s=_sqrt_s(sqrt_s, sorted(names)),
        signals=[_signal(s, reference) for s in signals or ()], seed=seed,
        ephemeris=waves.Ephemeris.load(ephemeris) if signals else None,
    )  # fmt: skip
    paths = waves.write_sfts(out, sfts, label, overwrite)
    for path, d in zip(paths, sfts, strict=True):
        print(f"{path}: {len(d)} SFTs of {d.bins} bins", file=sys.stderr if json_ else sys.stdout)
    if json_:
        print(json.dumps({"files": [str(p) for p in paths], "sfts": len(sfts), "bins": sfts.detectors[0].bins}))


@app.command()
def fstat(
    sfts: Sfts,
    ref_time: RefTime,
    out: Annotated[Path, _option(OUTPUT, "FILE", "CSV with the results", "--out")],
    templates: Annotated[
        Path | None, _option(METHOD, "FILE", "CSV: freq, alpha, delta, f1dot, f2dot; other columns are kept")
    ] = None,
    freq: Annotated[float | None, _option(METHOD, "HZ", "lowest frequency of a band, in place of --templates")] = None,
    band: Annotated[float | None, _option(METHOD, "HZ", "width of the band")] = None,
    step: Annotated[float | None, _option(METHOD, "HZ", "from one frequency to the next")] = None,
    sky: Annotated[str | None, _option(METHOD, "ALPHA,DELTA", "direction of the band, radians")] = None,
    f1dot: Annotated[float, _option(METHOD, "X", "of the band, Hz/s (default 0)", "--f1dot")] = 0.0,
    f2dot: Annotated[float, _option(METHOD, "X", "of the band, Hz/s^2 (default 0)", "--f2dot")] = 0.0,
    method: Annotated[
        str,
        _option(METHOD, "NAME", "demod, resamp, or auto (default): resamp only for a band, where cheaper", "--method"),
    ] = "auto",
    cover: Cover = None,
    dterms: Dterms = 8,
    ephemeris: EphemerisName = "DE405",
    sqrt_s: SqrtS = None,
    device: Device = "cpu",
    skip_bad: SkipBad = False,
    plot: Plot = None,
    overwrite: Overwrite = False,
    json_: Json = False,
) -> None:
    """Compute 2F of templates, or of a band of frequencies."""
    from lanewise.io.atomic import writable_target
    from lanewise.sims import waves
    from lanewise.sims.waves.tables import read_templates, result_columns, write_table

    if method not in ("demod", "resamp", "auto"):
        raise InputError(f"--method is {method!r}; wanted demod, resamp or auto")
    if _check_device(device) and method == "resamp":
        raise InputError(f"--method resamp is computed on the host, found --device {device}; leave --device out")
    given = {"--freq": freq, "--band": band, "--step": step, "--sky": sky}
    reference = _gps(ref_time, "--ref-time")
    writable_target(out, overwrite)
    _picture(plot, out, overwrite)
    if templates is not None and plot is not None:
        raise InputError("--plot shows 2F over frequency; wanted a band: --freq, --band, --step and --sky")
    start = time.perf_counter()
    if templates is not None:
        if extra := [k for k, v in given.items() if v is not None]:
            raise InputError(f"{', '.join(extra)} cannot be given with --templates")
        if method == "resamp":
            raise InputError("--method resamp needs a band: --freq, --band, --step and --sky in place of --templates")
        table = read_templates(templates, reference)
        data, orbits = _data(sfts, cover, dterms, sqrt_s, skip_bad), waves.Ephemeris.load(ephemeris)
        found, reason = waves.f_statistic(data, table.templates, orbits, dterms=dterms, device=device), ""
        method, count, before = "demod", len(table.templates), (table.names, table.rows)
        columns = result_columns(found, data.detectors)
        if both := [n for n in columns if n in table.names]:
            raise InputError(f"{templates}: it has the column {both[0]} already; wanted a file without results")
    else:
        if missing := [k for k, v in given.items() if v is None]:
            raise InputError(
                f"{', '.join(missing)} is missing; wanted --templates, or --freq, --band, --step and --sky"
            )
        assert freq is not None
        assert band is not None
        assert step is not None
        assert sky is not None
        if not (step > 0 and band >= 0):
            raise InputError(f"--step is {step:g} and --band {band:g}; wanted above zero, and zero or more")
        alpha, delta = _pair(sky, "--sky")
        count = math.floor(band / step + 1e-6) + 1
        wanted = waves.Band(freq, step, count, alpha, delta, reference, f1dot, f2dot)
        data, orbits = _data(sfts, cover, dterms, sqrt_s, skip_bad), waves.Ephemeris.load(ephemeris)
        choice = waves.choose_method(data, wanted, dterms)
        reason = choice.reason if method == "auto" else "as --method says"
        method = choice.method if method == "auto" else method
        every = {"freq": wanted.frequencies}
        every |= {
            k: _same(v, count) for k, v in (("alpha", alpha), ("delta", delta), ("f1dot", f1dot), ("f2dot", f2dot))
        }
        if method == "resamp":
            found = waves.f_statistic_band(data, wanted, orbits, dterms=dterms)
        else:
            found = waves.f_statistic(
                data,
                waves.Templates(wanted.frequencies, alpha, delta, f1dot, f2dot, reference=reference),
                orbits,
                dterms=dterms,
                device=device,
            )
        columns, before = every | result_columns(found, data.detectors), ((), ())
    write_table(out, columns, overwrite, before)
    if plot is not None:
        from lanewise.sims.waves.view import draw_band

        draw_band(plot, columns["freq"], found, data.detectors, method)
    where = "numpy" if method == "resamp" else device
    best = int(found.two_f[0].argmax())
    seconds = time.perf_counter() - start
    to = sys.stderr if json_ else sys.stdout
    print(f"{data}", file=to)
    print(f"{method} on {where}: {count} templates in {seconds:.3f} s{f' ({reason})' if reason else ''}", file=to)
    print(f"largest 2F: {found.two_f[0, best]:.4f}, template {best}; results in {out}", file=to)
    if json_:
        summary = {
            "templates": count, "method": method, "device": where, "reason": reason, "seconds": seconds, "sfts": len(data),
            "ephemeris": orbits.name,
            "largest": {"template": best, "twoF": float(found.two_f[0, best])}, "out": str(out),
            "plot": None if plot is None else str(plot),
        }  # fmt: skip
        print(json.dumps(summary, allow_nan=False))


@app.command()
def run(
    sfts: Sfts,
    ref_time: RefTime,
    freq: Annotated[float, _option(METHOD, "HZ", "lowest frequency at the reference time", "--freq")],
    band: Annotated[float, _option(METHOD, "HZ", "width of the band", "--band")],
    sky: Annotated[
        list[str],
        _option(METHOD, "ALPHA,DELTA|FILE", "directions in radians, or a file of them; may be repeated", "--sky"),
    ],
    stack: Annotated[float, _option(METHOD, "X", "seconds of a stack", "--stack")],
    out: Annotated[Path, _option(OUTPUT, "FILE", "CSV with the candidates", "--out")],
    f1dot: Annotated[str, _option(METHOD, "LOW[,WIDTH]", "spin-downs, Hz/s (default 0)", "--f1dot")] = "0",
    stacks: Annotated[int | None, _option(METHOD, "N", "stacks at most", "--stacks")] = None,
    resolution: Annotated[float | None, _option(METHOD, "HZ", "of F (default 1 / stack)")] = None,
    f1dot_step: Annotated[float | None, _option(METHOD, "X", "of the coarse grid (default 1 / stack^2)")] = None,
    residuals: Annotated[int | None, _option(METHOD, "N", "spin-downs about each (default the stacks' number)")] = None,
    threshold: Annotated[float, _option(METHOD, "X", "of F = 2F / 2, for a peak (default 2.6)", "--threshold")] = 2.6,
    patch: Annotated[float | None, _option(METHOD, "X", "size of the patch about a direction, radians")] = None,
    weighted: Annotated[bool, _option(METHOD, "", "weight stacks by noise and response", "--weighted")] = False,
    most: Annotated[int, _option(OUTPUT, "N", "candidates in the list (default 100)", "--candidates")] = 100,
    method: Annotated[
        str, _option(METHOD, "NAME", "demod (default), or resamp: F by Fourier transforms, on the host", "--method")
    ] = "demod",
    dterms: Dterms = 8,
    ephemeris: EphemerisName = "DE405",
    device: Device = "cpu",
    skip_bad: SkipBad = False,
    plot: Plot = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    json_: Json = False,
    units: Units = None,
    workers: WorkerCount = None,
    scheduler: Scheduler = None,
    checkpoint_folder: CheckpointFolder = None,
    checkpoint_every: CheckpointEvery = SECONDS,
    resume: Resume = False,
) -> None:
    """Search directions and spin-downs by Hough maps over stacks."""
    from rich.console import Console
    from rich.progress import track

    from lanewise.io.atomic import writable_target
    from lanewise.sims import waves
    from lanewise.sims.waves.hierarchical import COLUMNS, METHODS, merged, middle_time, search_maps
    from lanewise.sims.waves.tables import write_table
    from lanewise.sims.waves.units import Job, Workers
    from lanewise.sims.waves.units.command import searched
    from lanewise.sims.waves.units.run import forget

    if most < 1:
        raise InputError(f"--candidates is {most}; wanted at least 1")
    _check_device(device)
    if method not in METHODS:
        raise InputError(f"--method is {method!r}; wanted demod or resamp")
    writable_target(out, overwrite)
    _picture(plot, out, overwrite)
    low, width = _pair(f1dot, "--f1dot") if "," in f1dot else (_number(f1dot, "--f1dot"), 0.0)
    search = waves.Search(
        freq=freq, freq_band=band, f1dot=low, f1dot_band=width, reference=_gps(ref_time, "--ref-time"), stack=stack,
        most_stacks=stacks, resolution=resolution, f1dot_step=f1dot_step, residuals=residuals, threshold=threshold,
        patch=None if patch is None else (patch, patch), weighted=weighted, dterms=dterms,
    )  # fmt: skip
    directions = [d for text in sky for d in _directions(text)]
    if not directions:
        raise InputError("--sky names no directions; wanted at least one")
    start = time.perf_counter()
    asked = resume or any(x is not None for x in (units, workers, scheduler, checkpoint_folder))
    in_units = device == "numpy" and method == "demod" and plot is None
    if asked and not in_units:
        raise InputError(
            "work units compute by the definition: wanted --device numpy with --units, --workers, --scheduler, --checkpoint-folder and "
            "--resume, and neither --method resamp nor --plot"
        )
    to, taken, made = sys.stderr if json_ else sys.stdout, 0, 1
    if in_units:
        job = Job(
            sfts=tuple(sfts), search=search, sky=tuple(directions), ephemeris=ephemeris, most=most, skip_bad=skip_bad
        )
        folder = checkpoint_folder or out.with_name(f"{out.name}.units")
        done = searched(
            job, folder, Workers(count=workers, scheduler=scheduler), units=units, seconds=checkpoint_every, resume=resume,
            overwrite=overwrite, quiet=quiet,
        )  # fmt: skip
        best, grids = done.candidates, done.ready.grids
        write_table(out, {name: best[name] for name in COLUMNS}, overwrite)
        if checkpoint_folder is None:
            forget(folder, done.units)
        count, made = done.maps, len(done.units)
    else:
        # Which bins are needed depends on the times, which one bin of every SFT tells.
        times = waves.load_sfts(sfts, (freq, freq), verify=False, skip_bad=True)
        cover = waves.search_cover(search, times.start, times.end, times.duration)
        grids = waves.set_up(_load(sfts, cover, waves.search_margin(dterms), skip_bad), search)
        orbits: Ephemeris = waves.Ephemeris.load(ephemeris)
        work = [(alpha, delta, f) for alpha, delta in directions for f in grids.f1dot.tolist()]
        console = Console(stderr=True)

        def announce(memory: Memory) -> None:
            nonlocal taken
            taken = memory.total
            if not quiet:
                print(f"memory: {memory}", file=to)

        best, leading, highest = None, work[0], (-math.inf, 0.0)
        maps = search_maps(grids, orbits, work, most, device=device, method=method, announce=announce)
        shown = track(maps, "searching", total=len(work), console=console, disable=quiet or not console.is_terminal)
        for point, found in zip(work, shown, strict=True):
            same = found["significance"] == found["significance"][0]
            level = float(found["significance"][0]), float(found["twoF"][same].max())
            if level > highest:
                leading, highest = point, level
            best = merged([found] if best is None else [best, found], most)
        assert best is not None
        write_table(out, {name: best[name] for name in COLUMNS}, overwrite)
        if plot is not None:
            from lanewise.sims.waves.view import draw_map

            draw_map(plot, waves.hough_maps(grids, orbits, *leading, device=device, method=method))
        count = len(work)
    seconds = time.perf_counter() - start
    print(f"{grids.data}", file=to)
    print(
        f"{method} on {device}: "
        f"{count} maps of {grids.frequencies} frequencies and {len(grids.residuals)} spin-downs in {seconds:.3f} s",
        file=to,
    )
    print(
        f"most significant: {best['significance'][0]:.3f} at {best['freq'][0]:.6f} Hz (GPS {middle_time(grids):.0f}); list in {out}",
        file=to,
    )
    if json_:
        first = {name: float(best[name][0]) for name in COLUMNS}
        print(json.dumps({"maps": count, "units": made, "stacks": grids.data.stacks, "seconds": seconds, "candidates": len(best),
                          "reference": middle_time(grids), "best": first, "out": str(out), "method": method,
                          "device": device, "memory": taken, "plot": None if plot is None else str(plot)}, allow_nan=False))  # fmt: skip


def _check_device(device: str) -> bool:
    """Refuse, before anything is read, a device that there is not; whether it is a GPU."""
    from lanewise.runtime.devices import resolve
    from lanewise.target import is_gpu

    return device != "numpy" and is_gpu(resolve(device))


def _picture(path: Path | None, out: Path, overwrite: bool) -> None:
    """Refuse, before anything is computed, a picture that could not be written."""
    from lanewise.io.atomic import writable_target

    if path is None:
        return
    if path.resolve() == out.resolve():
        raise InputError(f"--plot and --out are both {out}; wanted two files")
    if path.suffix.lower() != ".png":
        raise InputError(f"--plot is {path}; wanted a file that ends in .png")
    writable_target(path, overwrite)


def _load(patterns: list[str], cover: tuple[float, float] | None, margin: int, skip_bad: bool) -> SftSet:
    from lanewise.sims import waves

    sfts = waves.load_sfts(patterns, cover, margin=margin, skip_bad=skip_bad)
    for x in sfts.left_out:
        print(f"left out: {x}", file=sys.stderr)
    return sfts


def _data(patterns: list[str], cover: str | None, dterms: int, sqrt_s: str | None, skip_bad: bool) -> SearchData:
    from lanewise.sims import waves

    band = None if cover is None else _pair(cover, "--cover")
    sfts = _load(patterns, band, waves.search_margin(dterms) if band else 0, skip_bad)
    return waves.prepare(sfts, band, dterms=dterms, sqrt_s=_sqrt_s(sqrt_s, sfts.names))


def _same(value: float, count: int) -> Any:
    import numpy as np

    return np.full(count, value)


def _number(text: str, option: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{option} has {text!r}; wanted a finite number")
    return value


def _pair(text: str, option: str) -> tuple[float, float]:
    parts = text.split(",")
    if len(parts) != 2:
        raise InputError(f"{option} is {text!r}; wanted two numbers with a comma between")
    return _number(parts[0], option), _number(parts[1], option)


def _gps(text: str, option: str) -> int:
    try:
        value = Decimal(text) * 10**9
    except InvalidOperation:
        value = Decimal("nan")
    if not value.is_finite():
        raise InputError(f"{option} is {text!r}; wanted GPS seconds")
    return round(value)


def _sqrt_s(text: str | None, names: list[str] | tuple[str, ...]) -> dict[str, float] | None:
    if text is None:
        return None
    values = [_number(x, "--sqrt-s") for x in text.split(",")]
    if len(values) != len(names):
        raise InputError(f"--sqrt-s has {len(values)} values; wanted {len(names)}, for {', '.join(names)}")
    return dict(zip(names, values, strict=True))


def _directions(text: str) -> list[tuple[float, float]]:
    from lanewise.sims.waves.tables import read_sky

    return read_sky(text) if Path(text).exists() else [_pair(text, "--sky")]


def _signal(text: str, reference: int) -> Signal:
    from lanewise.sims import waves

    known = ("h0", "cosi", "psi", "phi0", "freq", "alpha", "delta", "f1dot", "f2dot", "f3dot")
    given: dict[str, Any] = {}
    for part in text.split(","):
        name, _, value = (x.strip() for x in part.partition("="))
        if name not in known or name in given:
            raise InputError(f"--signal has {part!r}; wanted NAME=NUMBER, each once, of {', '.join(known)}")
        given[name] = _number(value, "--signal")
    if missing := [n for n in ("h0", "cosi", "freq", "alpha", "delta") if n not in given]:
        raise InputError(f"--signal lacks {', '.join(missing)}")
    return waves.Signal(reference=reference, **given)
