"""How long does a newcomer wait for the first result of a command, and for what?

`python -m bench.start_up [--device cuda]` writes bench/results/start_up_{cpu,cuda}.{md,json}. Each
command runs in fresh processes, in
turns: cold, with an empty cache of compiled kernels, and warm, with what the cold start left there.
Steps are few, so that computing costs a few tenths of a second. Each run's numbers are checked, and
a warm start must give those of the cold one to the bit.

The parts of a start exclude each other. What a module imports while the frontend runs counts as
import; what a worker process compiles counts as waiting, and only as far as the command waits for
it. With `--cores 1` there are no workers: that shows the parts of the compiler.
"""

from __future__ import annotations

import argparse
import atexit
import importlib
import json
import math
import os
import runpy
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

COMMANDS = {
    "gravity": "gravity run --ic plummer --bodies 16384 --steps 1 --softening 0.02",
    "cavity": "lbm run cavity --steps 50",
    "karman": "lbm run karman --steps 50",
    "boids": "boids run --steps 2",
    "sphere": "lbm run sphere --steps 5",
}
ROUNDS = 3
TIMED = (
    "seconds",
    "pairs_per_second",
    "steps_per_second",
    "agents_per_second",
    "mlups",
    "bandwidth_fraction",
)

# What is timed, by module and function; of several that are active the innermost counts.
PLACES = {
    "lanewise.frontend.function": {"lower_function": "frontend"},
    "lanewise.compiler.pipeline": {"build_program": "passes"},
    "lanewise.launch.kept_programs": {"entry_name": "programs", "_read": "programs"},
    "lanewise.launch.executable": {"generated_text": "emission"},
    "lanewise.runtime.nvrtc": {"compile_cubin": "NVRTC"},
    "lanewise.runtime.cuda": {"CudaKernel.__init__": "loading", "use": "CUDA starts"},
    "lanewise.runtime.llvm": {"_linked": "loading", "machine_code": "LLVM"},
    "lanewise.runtime.written.kernel": {"llvm_text": "emission"},
    "lanewise.runtime.compile_workers": {"_fork": "workers", "taken": "waiting for workers"},
    "lanewise.runtime.cpu": {"run_range": "computing", "run_slabs": "computing"},
}


class Stopwatch:
    """Seconds by part; only the part that was entered last runs."""

    def __init__(self, begun: float) -> None:
        self.seconds: dict[str, float] = {}
        self.active = ["the rest"]
        self.last = begun

    def turn(self) -> None:
        now = time.time()
        part = self.active[-1]
        self.seconds[part] = self.seconds.get(part, 0.0) + now - self.last
        self.last = now

    def around(self, function: Callable[..., Any], part: str) -> Callable[..., Any]:
        def timed(*arguments: Any, **named: Any) -> Any:
            self.turn()
            self.active.append(part)
            try:
                return function(*arguments, **named)
            finally:
                self.turn()
                self.active.pop()

        return timed


def probe(result: Path, begun: float, command: list[str]) -> None:
    """Run a command in this process, and write the seconds of its parts."""
    if cores := int(os.environ.get("BENCH_CORES", "0")):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    watch = Stopwatch(begun)
    system: Any = importlib._bootstrap  # pyright: ignore
    load = watch.around(system._find_and_load, "import")

    def loaded(name: str, *others: Any) -> Any:
        found = load(name, *others)
        for path, part in PLACES.get(name, {}).items():
            *owners, function = path.split(".")
            place: Any = sys.modules[name]
            for owner in owners:
                place = getattr(place, owner, None)
            if (
                place is not None
                and hasattr(place, function)
                and not hasattr(getattr(place, function), "__timed__")
            ):
                timed = watch.around(getattr(place, function), part)
                timed.__timed__ = True  # type: ignore[attr-defined]
                setattr(place, function, timed)
        return found

    watch.seconds["import"] = time.time() - begun  # Python itself
    watch.last = time.time()
    system._find_and_load = loaded

    def write() -> None:
        watch.turn()
        result.write_text(json.dumps(watch.seconds), encoding="utf-8")

    atexit.register(write)
    sys.argv = ["lanewise", *command]
    runpy.run_module("lanewise", run_name="__main__")


def start(
    command: list[str], cache: Path, cores: int
) -> tuple[float, dict[str, float], dict[str, Any]]:
    """Wall seconds of a fresh process, their parts, and what the command found."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "parts.json"
        environment = {n: v for n, v in os.environ.items() if n != "PYTHONDONTWRITEBYTECODE"}
        environment |= {"LANEWISE_CACHE_DIR": str(cache), "LANEWISE_TUNED": "off"}
        begun = time.time()
        line = [
            sys.executable,
            "-m",
            "bench.start_up",
            "--probe",
            str(result),
            repr(begun),
            *command,
            "--json",
        ]
        if cores:
            environment["BENCH_CORES"] = str(cores)
        done = subprocess.run(line, capture_output=True, text=True, check=False, env=environment)
        wall = time.time() - begun
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
        parts = json.loads(result.read_text(encoding="utf-8"))
    parts["import"] = parts.get("import", 0.0)
    parts["end of the process"] = max(0.0, wall - sum(parts.values()))
    return wall, parts, json.loads(done.stdout.splitlines()[-1])


def numbers(found: Any) -> list[float]:
    """All numbers of a command's summary but the times."""
    match found:
        case dict():
            kept = {n: v for n, v in found.items() if n not in TIMED and "per_second" not in n}
            return [x for v in kept.values() for x in numbers(v)]
        case list():
            return [x for v in found for x in numbers(v)]
        case bool() | str() | None:
            return []
        case _:
            return [float(found)]


def check(name: str, found: dict[str, Any], before: dict[str, Any] | None) -> None:
    """That a run ended with finite numbers, made its steps, kept what has to be kept, and repeats
    an earlier one.
    """
    values = numbers(found)
    if not all(map(math.isfinite, values)):
        raise ValueError(f"{name}: not all numbers are finite: {found}")
    if str(found["steps"]) not in COMMANDS[name].split():
        raise ValueError(f"{name}: {found['steps']} steps were made")
    for kept, most in (("energy_drift", 1e-6), ("mass_drift", 1e-5)):
        if abs(found.get(kept, 0.0)) > most:
            raise ValueError(f"{name}: {kept} is {found[kept]}")
    if before is not None and values != numbers(before):
        raise ValueError(f"{name}: a second start gives other numbers: {found}, before {before}")


def main() -> None:
    if sys.argv[1:2] == ["--probe"]:
        probe(Path(sys.argv[2]), float(sys.argv[3]), sys.argv[4:])
        return
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    options.add_argument(
        "--only", nargs="+", default=list(COMMANDS), choices=list(COMMANDS), metavar="NAME"
    )
    options.add_argument("--rounds", type=int, default=ROUNDS)
    options.add_argument("--cores", type=int, default=0, help="of the machine (default all)")
    options.add_argument("--json", action="store_true", help="print JSON")
    options.add_argument("--out", type=Path, help="instead of bench/results/start_up_DEVICE.md")
    chosen = options.parse_args()
    if chosen.out and chosen.out.suffix != ".md":
        options.error(
            f"--out {chosen.out}: wanted the name of the text, which ends in .md; the numbers lie "
            "beside it"
        )
    measured: dict[tuple[str, str], list[tuple[float, dict[str, float]]]] = {}
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen.only:  # what Python compiles once after an installation is there
            subprocess.run(
                [sys.executable, "-m", "lanewise", *COMMANDS[name].split(), "--help"],
                capture_output=True,
                check=True,
            )
        start(COMMANDS["gravity"].split(), Path(folder) / "first", 0)
        for turn in range(chosen.rounds):
            for name in chosen.only[:: -1 if turn % 2 else 1]:
                for state in ("cold", "warm"):
                    command = [
                        *COMMANDS[name].split(),
                        *(["--device", "cuda"] if chosen.device == "cuda" else []),
                    ]
                    wall, parts, summary = start(
                        command, Path(folder) / f"{name}{turn}", chosen.cores
                    )
                    check(name, summary, found.get(name))
                    found[name] = summary
                    measured.setdefault((name, state), []).append((wall, parts))
    report(measured, chosen)


def report(
    measured: dict[tuple[str, str], list[tuple[float, dict[str, float]]]],
    chosen: argparse.Namespace,
) -> None:
    """Write and show medians of the walls, with the parts of the run in the middle."""
    from rich.console import Console

    from bench.harness import describe_machine

    rows = [
        (*key, sorted(runs, key=lambda r: r[0])[(len(runs) - 1) // 2])
        for key, runs in measured.items()
    ]
    names = list(
        dict.fromkeys(p for *_, (_, parts) in rows for p, s in parts.items() if s >= 0.005)
    )
    names = [
        "import",
        *(n for n in names if n not in ("import", "the rest", "end of the process")),
        "the rest",
        "end of the process",
    ]
    cells = [
        [n, s, f"{w:.2f}", *(f"{parts.get(p, 0.0):.2f}" for p in names)]
        for n, s, (w, parts) in rows
    ]
    machine = describe_machine() | ({"cores used": str(chosen.cores)} if chosen.cores else {})
    head = ["command", "start", "wall", *names]
    text = [
        f"# First results ({chosen.device})",
        "",
        f"Seconds from the start of a fresh process to its end; of {chosen.rounds} starts each, in "
        "turns, the one in the middle.",
        "",
        f"| {' | '.join(head)} |",
        f"|---|---|{'---:|' * (len(head) - 2)}",
        *(f"| {' | '.join(row)} |" for row in cells),
        "",
        *(f"- `{n}`: `lanewise {COMMANDS[n]}`" for n in chosen.only),
        "",
        *(f"- {n}: {v}" for n, v in machine.items()),
        "",
    ]
    path: Path = chosen.out or Path(f"bench/results/start_up_{chosen.device}.md")
    path.write_text("\n".join(text), encoding="utf-8")
    data = {
        "seconds": {f"{n} {s}": [w for w, _ in runs] for (n, s), runs in measured.items()},
        "parts": {f"{n} {s}": parts for n, s, (_, parts) in rows},
        "commands": COMMANDS, "machine": machine,
    }  # fmt: skip
    path.with_suffix(".json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    if chosen.json:
        print(json.dumps(data))
        return
    for state in ("cold", "warm"):
        Console().print(
            turned(
                head, [row for row in cells if row[1] == state], f"{text[0].lstrip('# ')}, {state}"
            )
        )


def turned(head: list[str], cells: list[list[str]], title: str) -> Table:
    """Starts of one kind as they are printed, in 80 columns: a row for each part that takes time, a
    column for each command.
    """
    from rich import box
    from rich.table import Table

    table = Table("seconds", title=title, box=box.SIMPLE)
    for row in cells:
        table.add_column(row[0], justify="right")
    for k, part in enumerate(head[2:], start=2):
        if any(float(row[k]) for row in cells):
            table.add_row(part, *(row[k] for row in cells))
    return table


if __name__ == "__main__":
    main()
