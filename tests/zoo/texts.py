"""How the text of a kernel over arrays is put together."""

from __future__ import annotations

from collections.abc import Iterable


def kernel_text(indices: Iterable[str], arrays: dict[str, str], body: list[str]) -> str:
    """The program of a kernel. arrays: their types as the text spells them, without `lw.`."""
    typed = [f"{i}: lw.index" for i in indices] + [f"{n}: lw.{kind}" for n, kind in arrays.items()]
    return "\n".join(["@lw.threadwise", f"def kernel({', '.join(typed)}):", *(f"    {line}" for line in body), ""])


def floats(**ranks: int) -> dict[str, str]:
    """Arrays of float32 with so many dimensions."""
    return {n: f"Array{rank}[lw.f32]" for n, rank in ranks.items()}
