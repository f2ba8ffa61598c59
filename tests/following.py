"""Follow a page of the documents from top to bottom in one folder, as a reader does, but with small numbers.

Blocks of `sh`, of `console` with a prompt, of `python` and of `py` run in their order. Commands are made short: fewer
steps, bodies and seconds, and the CPU where there is no GPU. Blocks of `python` that begin with the name of a file are
saved under it.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lanewise.runtime.devices import missing_for_cuda
from tests.markdown import Block, blocks, differences, run_blocks

ROOT = Path(__file__).parent.parent
PATIENCE = 300.0  # seconds
MOST = {
    "--steps": 40, "--bodies": 400, "--agents": 120, "--size": 32, "--seconds": 2, "--sfts": 160, "--every": 20,
    "--snapshot-every": 20, "--shot": 1,
}  # fmt: skip
"""Options whose numbers are made smaller."""
COMPLETE = "the search is complete, and nothing is left to resume"
"""What a command that would continue says where there is nothing to do: the page says so."""
NOT_HERE = {
    "make": "a checkout",
    "pip": "installs",
    "python3": "makes an environment",
    ".": "activates an environment",
    "ssh": "another machine",
    "mpiexec": "needs MPI",
    "lanewise ladder": "tests/ladders",
    "lanewise view watched_search.csv.units": "a search that runs meanwhile: tests/live",
}
"""Beginnings of commands that are not run, and why."""


@dataclass(frozen=True)
class Step:
    """A command line, or a block of Python."""

    line: int
    command: str = ""
    block: Block | None = None


def steps_of(text: str) -> Iterator[Step]:
    for block in blocks(text):
        match block.language:
            case "python" | "py":
                yield Step(block.line, block=block)
            case "sh" | "bash":
                for line in block.text.replace("\\\n", " ").splitlines():
                    if line.strip() and not line.strip().startswith("#"):
                        yield Step(block.line, line.split(" # ")[0].strip())
            case "console" if block.text.startswith("$ "):
                for line in block.text.replace("\\\n", " ").splitlines():
                    if line.startswith("$ "):
                        yield Step(block.line, line[2:].strip())
            case _:
                pass


def short(command: str) -> str:
    """The same with small numbers, on the CPU but for what needs no GPU to run."""
    words = shlex.split(command)
    for n, word in enumerate(words[1:], 1):
        before = words[n - 1]
        if before in MOST and re.fullmatch(r"\d+", word):
            words[n] = str(min(int(word), MOST[before]))
        if before == "--device" and word.startswith("cuda") and words[1] != "explain" and not _a_gpu():
            words[n] = "cpu"
        if before == "--workers" and not _a_gpu():
            words[n] = "1"
    words = [w for w in words if w != "--view-wait"]
    runs = words[:1] == ["lanewise"] and "run" in words[2:3] and words[1] in ("lbm", "gravity", "boids")
    if runs and "--help" not in words:
        if "--steps" not in words:
            words += ["--steps", str(MOST["--steps"])]
        if words[1] == "lbm" and "--size" not in words and "--resume" not in words:
            words += ["--size", "16"]
    if "--view" in words and "--view-port" not in words:
        words += ["--view-port", "0"]
    if words[:2] == ["lanewise", "view"] and "--port" not in words:
        words += ["--port", "0"]
    return shlex.join(words)


def _a_gpu() -> bool:
    return not missing_for_cuda()


def is_run(command: str) -> bool:
    return not any(command == begin or command.startswith(f"{begin} ") for begin in NOT_HERE)


def follow(page: Path, folder: Path) -> list[str]:
    """What does not work, by line."""
    (folder / "examples").symlink_to(ROOT / "examples")
    text = page.read_text(encoding="utf-8")
    python = run_blocks(text, folder / "physics.py")
    wrong: list[str] = []
    for step in steps_of(text):
        if step.block is None:
            if is_run(step.command) and (said := ran(short(step.command), folder)):
                wrong.append(f"line {step.line}: {step.command}\n{said}")
        elif step.block.language == "python":
            block, printed = next(python)
            wrong += filter(None, [differences(block, printed)])
            if name := re.match(r"# (\w+\.py)\n", block.text):
                (folder / name[1]).write_text(block.text)
    return wrong


def ran(command: str, folder: Path) -> str:
    """Nothing, or what a command that fails has said. A view is ended once it has an address."""
    bin_ = folder / ".bin"
    if not bin_.exists():
        bin_.mkdir()
        for name, call in (("lanewise", "-m lanewise"), ("python", "")):
            (bin_ / name).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {call} "$@"\n')
            (bin_ / name).chmod(0o755)
    path = f"{bin_}:{os.environ['PATH']}"
    known = {
        "PATH": path,
        "PYTHONPATH": str(ROOT / "src"),
        "LANEWISE_CACHE_DIR": str(folder / ".cache"),
        "COLUMNS": "120",
    }
    begin = time.monotonic()
    with (folder / ".said").open("w+") as said:
        process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"], cwd=folder, env=os.environ | known, stdout=said, stderr=said,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        while process.poll() is None:
            time.sleep(0.05)
            if " view " in f"{command} " and "http://" in (folder / ".said").read_text():
                process.terminate()
                process.wait(60)
                return ""
            if time.monotonic() - begin > PATIENCE:
                process.kill()
                return f"took more than {PATIENCE:g} s"
    last = (folder / ".said").read_text()[-2000:]
    return "" if process.returncode == 0 or COMPLETE in last else last


def lacking(block: Block) -> list[str]:
    """Packages that a block imports and that are not installed."""
    names = re.findall(r"^(?:import|from) (\w+)", block.text, re.MULTILINE)
    return [n for n in dict.fromkeys(names) if importlib.util.find_spec(n) is None]
