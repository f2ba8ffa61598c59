"""Where the figures of the documents come from: a table under every page that names results of
`bench/results`, with date, machine and command, and one of all of them in the reference.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench/results"
LINK = re.compile(r"bench/results/([\w/]+\.(?:md|json))")
BEGIN, END = "<!-- measurements: begin -->", "<!-- measurements: end -->"
NO_RESULTS = ("README.md", "summary.md")
"""Lists of results, and a page made of others."""

DATE = re.compile(r"\b20\d\d-\d\d-\d\d\b")
GPU = re.compile(r"NVIDIA H\d+")
CPU = re.compile(r"(?:CPU: |an )(AMD EPYC|Intel\(R\) Xeon\(R\) Processor|Intel Xeon)")
COMMAND = re.compile(r"`((?:LANEWISE_THREADS=\d+ |mpiexec -n \d+ )?(?:python|make|lanewise)[^`]*)`")

NOT_KEPT = "its program is not kept"
"""What the list of results says where no command measures a result again."""


@dataclass(frozen=True)
class Measurement:
    """A file of results. date, machine, command: each is in the file, beside it as JSON, or in the
    list of results. command: or NOT_KEPT.
    """

    file: str
    date: str
    machine: str
    command: str

    @property
    def command_cell(self) -> str:
        """As tables show it."""
        return self.command if self.command == NOT_KEPT else f"`{self.command}`"


def pages() -> dict[str, str]:
    """The page of the reference, by its file name."""
    cited: dict[str, list[str]] = {}
    for path in sorted((ROOT / "docs").glob("*.md")):
        for file in results_of(path.read_text(encoding="utf-8")):
            cited.setdefault(file, []).append(path.name)
    rows = [
        f"{_row(measurement(file), '../../')} {', '.join(f'[{n}](../{n})' for n in names)} |"
        for file, names in sorted(cited.items())
    ]
    text = [
        "# Measurements",
        "",
        "The results that the documents cite: when, on which machine and by which command each was "
        "measured. [All results](../../bench/results/README.md) also name the state of the source.",
        "",
        "| result | date | machine | command | cited in |",
        "|---|---|---|---|---|",
        *rows,
    ]
    return {"measurements.md": "\n".join(text) + "\n"}


def inserted() -> Iterator[tuple[Path, str]]:
    """The pages written by hand that have the place for a table, with their text as it should
    be.
    """
    for path in sorted((ROOT / "docs").glob("*.md")):
        text = path.read_text(encoding="utf-8")
        if BEGIN in text:
            yield path, with_table(text)


def with_table(text: str) -> str:
    """A page with the table of the results that it names."""
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    rows = [_row(measurement(file), "../") for file in results_of(before + after)]
    table = ["| result | date | machine | command |", "|---|---|---|---|", *rows]
    return "\n".join([f"{before}{BEGIN}", *table, f"{END}{after}"])


def results_of(text: str) -> list[str]:
    """The files of results that a page names, outside of its table."""
    outside = re.sub(f"{BEGIN}.*?{END}", "", text, flags=re.DOTALL)
    found = dict.fromkeys(LINK.findall(outside))
    return [file for file in found if Path(file).name not in NO_RESULTS]


def _row(m: Measurement, up: str) -> str:
    name = m.file.rpartition(".")[0]
    place = f"[{name}]({up}bench/results/{m.file})"
    return f"| {place} | {m.date} | {m.machine} | {m.command_cell} |"


@cache
def measurement(file: str) -> Measurement:
    """What is known of a result; raises ValueError where one of the three is nowhere."""
    name, listed = file.rpartition(".")[0], _listed(file)
    path = RESULTS / file
    text = path.read_text(encoding="utf-8")
    machine = _machine_in_json(path.with_suffix(".json"))
    known = {
        "date": str(machine.get("date") or "") or _days(text) or _first(DATE, listed),
        "machine": str(machine.get("name") or "") or _machine(text, listed, machine),
        "command": _command(name, text, listed),
    }
    if lacking := [what for what, value in known.items() if not value]:
        raise ValueError(f"bench/results/{file}: no {' and no '.join(lacking)} is named")
    return Measurement(file, known["date"], known["machine"], known["command"])


def _machine(text: str, listed: str, machine: Mapping[str, Any]) -> str:
    """The GPUs of a result, or its CPU."""
    if gpus := dict.fromkeys(GPU.findall(text) or GPU.findall(listed)[:1]):
        two = re.search(r"^- GPU 1: |\b(?:2 x|two) NVIDIA", text, re.MULTILINE)
        return " and ".join(f"2 {gpu}" if two else gpu for gpu in gpus)
    cpu = str(machine.get("CPU") or "") or _first(CPU, text) or _first(CPU, listed)
    cores = str(machine.get("cores") or "")
    return f"{cpu}, {cores} cores" if cpu and cores else cpu


def _days(text: str) -> str:
    """The first and the last day that a result names."""
    days = sorted({*DATE.findall(text)})
    return " to ".join(dict.fromkeys([*days[:1], *days[-1:]]))


def _machine_in_json(path: Path) -> Mapping[str, Any]:
    if not path.exists():
        return {}
    content: Any = json.loads(path.read_text(encoding="utf-8"))
    return content.get("machine") or content.get("notes") or {}


def _command(name: str, text: str, listed: str) -> str:
    """What measures it: of several commands of a row the one with its name."""
    if NOT_KEPT in listed:
        return NOT_KEPT
    found = COMMAND.findall(listed) or COMMAND.findall(text)
    own = [c for c in found if Path(name).name in c]
    return (own or found or [""])[0]


def _listed(file: str) -> str:
    """The row of the list of results that names a file."""
    folder, name = (RESULTS / file).parent, Path(file).stem
    rows = (folder / "README.md").read_text(encoding="utf-8").splitlines()
    named = [r for r in rows if r.startswith("|") and re.search(rf"\b{name}\b", r.split("|")[1])]
    return named[0] if named else ""


def _first(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found[found.re.groups] if found else ""
