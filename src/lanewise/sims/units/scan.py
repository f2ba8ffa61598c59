"""A scan: a product, the options of all its units, and the axes along which they differ. It stands
in the folder as `units.json`, and decides every result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import typer

from lanewise.io.documents import damaged, digest_of, digest_of_file, read_document, write_document
from lanewise.sims.common.commands import USAGE_ERROR
from lanewise.sims.common.devices import CPU, CUDA
from lanewise.sims.common.options import GivenOptions
from lanewise.sims.units.axes import Axis, points
from lanewise.sims.units.products import OF_UNITS, PANELS, scanned
from lanewise.support.attributes import frozen
from lanewise.support.checks import check_fields
from lanewise.support.errors import InputError
from lanewise.support.interrupts import imported

SCAN, KIND = "units.json", "lanewise scan"
_TYPED = "COMMANDLINE"  # by name, as typer brings its own click
MOST_COPIES = 9
MOST_NAMED = 5  # scans that an error lists


@frozen
@dataclass(frozen=True, slots=True)
class ScanUnit:
    """One run of a scan: its number from 1 on, its values by the order of the axes, and its
    command line behind `lanewise PRODUCT run`.
    """

    number: int
    values: tuple[str, ...]
    arguments: tuple[str, ...]


@frozen
@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """What is computed.

    product: gravity, lbm or boids. options: of all units, as on the command line. axes: what
    differs. quorum: results of a unit that have to agree, each computed for itself. folder: where
    names of files in the options begin. inputs: SHA-256 of files that the options name.

    Raises InputError for options that the product does not take, for files and for GPUs by number.
    """

    product: str
    options: tuple[str, ...]
    axes: tuple[Axis, ...]
    quorum: int = 1
    folder: str = "."
    inputs: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)
        scanned(self.product)
        if not 1 <= self.quorum <= MOST_COPIES:
            raise InputError(f"the quorum is {self.quorum}; wanted 1 to {MOST_COPIES}")
        names = [a.name for a in self.axes]
        if twice := sorted({n for n in names if names.count(n) > 1}):
            raise InputError(f"--scan {twice[0]} is given twice; wanted all its values in one")

    @property
    def units(self) -> tuple[ScanUnit, ...]:
        """A unit for every point, numbered as `points` has them."""
        positional = _positional(self.product)
        return tuple(
            ScanUnit(n, values, _arguments(self, values, positional))
            for n, values in enumerate(points(self.axes), 1)
        )

    @property
    def digest(self) -> str:
        """SHA-256 of what decides the results."""
        return digest_of(self.configuration)

    @property
    def configuration(self) -> dict[str, Any]:
        """What decides the results, as JSON has it."""
        return {
            "product": self.product,
            "options": list(self.options),
            "axes": {a.name: list(a.values) for a in self.axes},
            "quorum": self.quorum,
            "inputs": dict(self.inputs),
        }

    @property
    def device(self) -> str:
        """Where its units run: "cpu", or "cuda" for any GPU that is free."""
        given = _parsed(self.product, self.units[0].arguments)
        return str(given.get("device") or "cpu")


def checked(scan: Scan) -> Scan:
    """The scan with the sums of the files that it reads; raises InputError for what the product
    would refuse of a command line.
    """
    _refuse_fixed_axes(scan)
    inputs: dict[str, str] = {}
    devices = dict[str, None]()
    for unit in scan.units:
        try:
            given = _parsed(scan.product, unit.arguments)
        except USAGE_ERROR as error:
            said: Any = error
            raise InputError(f"unit {unit.number}: {said.format_message()}") from error
        _refuse_files(scan.product, given)
        _check_device(given.get("device"))
        devices[str(given.get("device") or CPU.name)] = None
        _check_settings(scan.product, unit, given)
        for value in given.values():
            inputs.update(_sums(value))
    if len(devices) > 1:  # GPUs are given out, and cores shared, for a scan as a whole
        raise InputError(
            f"the scan runs on {' and '.join(devices)}; wanted one kind of device for all units, "
            "and a scan for each"
        )
    return Scan(
        product=scan.product,
        options=scan.options,
        axes=scan.axes,
        quorum=scan.quorum,
        folder=str(Path.cwd()),
        inputs=tuple(sorted(inputs.items())),
    )


def write_scan(folder: Path, scan: Scan) -> None:
    """Say in the folder what is computed there."""
    content = {"configuration": scan.configuration, "folder": scan.folder}
    write_document(folder / SCAN, KIND, content)


def _without(folder: Path) -> str:
    """Why there is no scan in a folder, and what to do."""
    inside = sorted(p.parent.name for p in folder.glob(f"*/{SCAN}"))[:MOST_NAMED]
    if inside:
        names = ", ".join(str(folder / name) for name in inside)
        return f"there is no scan; wanted the folder of one, as {names}"
    what = "there is no scan" if folder.is_dir() else "there is no such folder"
    return (
        f"{what}; start one, for example: lanewise units run {folder} gravity "
        "--bodies 1000 --steps 100 --scan seed=1..4"
    )


def read_scan(folder: Path) -> Scan:
    """What is computed in a folder; raises InputError where there is none, or where a file that
    its units read has changed.
    """
    path = folder / SCAN
    if not path.exists():
        raise InputError(f"{folder}: {_without(folder)}")
    saved = read_document(path, KIND)
    try:
        c: dict[str, Any] = saved["configuration"]
        axes = cast("dict[str, list[str]]", c["axes"])
        return Scan(
            product=c["product"],
            options=tuple(c["options"]),
            axes=tuple(Axis(name, tuple(values)) for name, values in axes.items()),
            quorum=c["quorum"],
            folder=saved["folder"],
            inputs=tuple(c["inputs"].items()),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise damaged(path, f"{type(error).__name__}: {error}") from error


def check_inputs(scan: Scan) -> None:
    """Raise InputError where a file that units read is another one than when the scan began."""
    for name, before in scan.inputs:
        if digest_of_file(Path(scan.folder) / name) != before:
            raise InputError(
                f"{name} has changed since this scan began; wanted the file as it was, or another "
                "folder for a new scan"
            )


def _arguments(scan: Scan, values: Sequence[str], positional: str) -> tuple[str, ...]:
    """The options of a unit; `--dt=-1` in one word, as a value may begin with a dash."""
    first, named = [], []
    for axis, value in zip(scan.axes, values, strict=True):
        if axis.name == positional:
            first.append(value)
        else:
            named.append(f"--{axis.name}={value}")
    return (*first, *scan.options, *named)


def _positional(product: str) -> str:
    """The argument without a flag that a product has, or ""."""
    found = [p.name for p in _command(product).params if p.param_type_name == "argument"]
    return found[0] if found else ""


def _command(product: str) -> Any:
    """The command `lanewise PRODUCT run`."""
    group: Any = typer.main.get_command(imported(f"lanewise.sims.{product}.command").app)
    return group.commands["run"]


def _parsed(product: str, arguments: Sequence[str]) -> Mapping[str, Any]:
    """What a product understands of a command line, by the names of its parameters."""
    context = _command(product).make_context(f"lanewise {product} run", list(arguments))
    return context.params


def _refuse_files(product: str, given: Mapping[str, Any]) -> None:
    if given.get("view"):
        raise InputError("--view shows one run, and a scan has many; wanted it left out")
    for p in _command(product).params:
        about_files = getattr(p, "rich_help_panel", None) in PANELS and p.name not in OF_UNITS
        if about_files and given.get(p.name) not in (None, False):
            raise InputError(
                f"{p.opts[0]} is no option of units, whose files are in their own folder; wanted "
                "it left out"
            )


def _refuse_fixed_axes(scan: Scan) -> None:
    """An option of all units that is also an axis would be lost."""
    command = _command(scan.product)
    context = command.make_context(
        f"lanewise {scan.product} run", list(scan.options), resilient_parsing=True
    )
    sources = {p: context.get_parameter_source(p.name) for p in command.params}
    given = [p for p, source in sources.items() if source is not None and source.name == _TYPED]
    for axis in scan.axes:
        if any(f"--{axis.name}" in p.opts or axis.name == p.name for p in given):
            raise InputError(
                f"{axis.name} is an option of all units and an axis of the scan; wanted it in one "
                "of them"
            )


def _check_settings(product: str, unit: ScanUnit, given: Mapping[str, Any]) -> None:
    """Raise InputError for settings that the product would refuse once the unit runs."""
    try:
        imported(f"lanewise.sims.{product}.command").check(GivenOptions(given))
    except InputError as error:
        raise InputError(f"unit {unit.number}: {error}") from error


def _check_device(device: object) -> None:
    if device not in (None, CPU.name, CUDA.name):
        raise InputError(
            f"the device is {device!r}, and a unit takes any GPU that is free; wanted cpu or cuda, "
            "and CUDA_VISIBLE_DEVICES to choose among GPUs"
        )


def _sums(value: object) -> dict[str, str]:
    """The files that a value names, also as script.py:function."""
    if isinstance(value, list | tuple):
        return {n: s for v in cast("list[object]", value) for n, s in _sums(v).items()}
    if not isinstance(value, str | Path):
        return {}
    for name in (str(value), str(value).rpartition(":")[0]):
        if name and Path(name).is_file():
            return {name: digest_of_file(Path(name))}
    return {}
