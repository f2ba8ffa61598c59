"""Environment variables."""

from __future__ import annotations

import re
from pathlib import Path

import lanewise

# what each one does: the text has no other home, and a test compares the names with the code's
VARIABLES = {
    "LANEWISE_CACHE_DIR": (
        "a folder",
        "Where machine code and tuned plans are kept; by default `$XDG_CACHE_HOME/lanewise`, or "
        "`~/.cache/lanewise` where `XDG_CACHE_HOME` is not set. See "
        "[tuning](../tuning.md).",
    ),
    "LANEWISE_CHECKS": (
        "`1`",
        "Turns `checks=True` on for all calls of the process: every index is tested before an "
        "array is read or written. See [threadwise](../threadwise.md).",
    ),
    "LANEWISE_NCCL": (
        "`1`",
        "Lets rows go by NCCL between processes that have a GPU each. See "
        "[several devices](../mesh.md).",
    ),
    "LANEWISE_RANKS": (
        "`alone`",
        "Makes each process that `mpiexec` or `srun` starts a separate run. See "
        "[several devices](../mesh.md).",
    ),
    "LANEWISE_THREADS": (
        "a number",
        "How many threads a kernel uses on a CPU; by default one per core that the process may "
        "use. Results have the same bits for every number of threads.",
    ),
    "LANEWISE_TRACE": (
        "`1`",
        "Python programs show the whole traceback of an error, with the lines inside lanewise. "
        "Wrong input to a command stays one message.",
    ),
    "LANEWISE_TUNED": (
        "`off`",
        "Ignores the store of tuned plans. See [tuning](../tuning.md).",
    ),
}


def used() -> set[str]:
    """The variables that the code names."""
    source = Path(lanewise.__file__).parent
    return {
        name
        for path in source.rglob("*.py")
        for name in re.findall(r"\bLANEWISE_[A-Z_]+\b", path.read_text(encoding="utf-8"))
    }


def pages() -> dict[str, str]:
    """The page of the variables."""
    lines = [
        "# Environment variables",
        "",
        "Variables that lanewise reads when it starts.",
        "",
        "| variable | value | effect |",
        "| --- | --- | --- |",
    ]
    lines += [f"| `{name}` | {value} | {effect} |" for name, (value, effect) in VARIABLES.items()]
    lines += [
        "",
        "`CUDA_VISIBLE_DEVICES=1` hides all GPUs but the second one, which is then `cuda:0`.",
    ]
    return {"environment.md": "\n".join(lines) + "\n"}
