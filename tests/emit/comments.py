"""What generated text for a CPU says for people."""

from __future__ import annotations


def comments(text: str) -> list[str]:
    """The lines of comments within functions, without their marks: a program of its own, in Python's words."""
    return [line[4:] for line in text.splitlines() if line.startswith("  ; ")]


def entry(text: str) -> str:
    """The kernel itself, with what people see in place of its interface to Python."""
    return text[text.index("define internal i32 @") :]
