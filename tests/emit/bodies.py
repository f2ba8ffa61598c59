"""Generated text as golden files show it: what was made for a kernel, without what every kernel that uses a function
gets alike.

The definitions of the prelude are named in one line here; their texts are golden files of their own (test_preludes.py).
"""

from __future__ import annotations

import difflib
import re

from lanewise.compiler.pipeline import Program
from lanewise.emit import cuda_prelude
from lanewise.emit.cuda import emit_cuda
from lanewise.emit.llvm import emit_llvm
from lanewise.ir import nodes as ir
from lanewise.planning.plan import Plan

FUNCTION = re.compile(r"^define .*?^}\n", re.MULTILINE | re.DOTALL)
BACK = re.compile(r'^#line (\d+) "(\w+\.cu)"$', re.MULTILINE)


def header_of(kernel: ir.Kernel, plan: Plan) -> str:
    """The kernel's name, and the decisions that are not neutral."""
    return f"lanewise: {kernel.name}\nplan: {plan.short()}"


def cuda_bodies(program: Program) -> str:
    """CUDA C++ of all kernels of a program."""
    return "\n".join(cuda_body(k, header_of(k, program.plan)) for k in program.kernels)


def llvm_bodies(program: Program, *, fast_math: bool = False, known: str = "") -> str:
    """LLVM's language of all kernels of a program. Functions that stand further up, or in `known`, are named in one
    line; of one that differs from another one further up in few lines, but for its kernel's name, these are shown.
    """
    shown, functions = list[str](), dict.fromkeys(FUNCTION.findall(known), "")
    for k in program.kernels:
        text = llvm_body(k, header_of(k, program.plan), fast_math=fast_math)
        for function in FUNCTION.findall(text):
            name = function.partition("@")[2].partition("(")[0]
            if function in functions:
                text = text.replace(
                    function, f"; @{name}, as above\n" if functions[function] else f"; @{name}, as known\n"
                )
            elif likes := [
                few for f, other in functions.items() if other and (few := changes(f, other, function, k.name))
            ]:
                text = text.replace(function, min(likes, key=len))
            functions.setdefault(function, k.name)
        shown.append(text)
    return "\n".join(shown)


def changes(function: str, other: str, changed: str, name: str) -> str:
    """How a function of a kernel of one name became that of another one, where few lines did; else nothing."""
    before, after = function.replace(other, name).splitlines(), changed.splitlines()
    lines = list(difflib.unified_diff(before, after, other, name, lineterm="", n=0))
    return (
        "\n".join(["; but for the kernel's name, the function further up with these changes", *lines, ""])
        if 0 < 8 * len(lines) < len(after)
        else ""
    )


def cuda_body(kernel: ir.Kernel, header: str) -> str:
    """CUDA C++ without the texts of the prelude. `#line` back into the text has to name the line that follows it."""
    text = emit_cuda(kernel, header)
    for match in BACK.finditer(text):
        assert int(match[1]) == text.count("\n", 0, match.start()) + 2, (
            "back to the generated text, at its own next line"
        )
    head = "".join(f"// {line}\n" for line in header.splitlines())
    rest = _after(text, head + "\n" + cuda_prelude.prelude(text))
    used = _used(text, rest, cuda_prelude.DEFINITIONS)
    return f"{head}// prelude: {used}\n\n" + BACK.sub(r'#line @ "\2"', rest)


def llvm_body(kernel: ir.Kernel, header: str, *, fast_math: bool = False) -> str:
    """LLVM's language without the declarations of LLVM's functions and the definitions of those of lanewise."""
    text = emit_llvm(kernel, header, fast_math=fast_math)
    head = "".join(f"; {line}\n" for line in header.splitlines())
    first = re.search(r"^define [^@\n]*@(?!lw_)", text, re.MULTILINE)
    assert first is not None
    prelude = _after(text, head)[: first.start() - len(head)]
    used = ", ".join(re.findall(r"^define [^@\n]*@(\w+)", prelude, re.MULTILINE)) or "nothing"
    return f"{head}; prelude: {used}\n\n{text[first.start() :]}"


def _after(text: str, start: str) -> str:
    assert text.startswith(start), f"the text begins with\n{text[: len(start)]}\nand not with\n{start}"
    return text[len(start) :]


def _used(text: str, rest: str, definitions: dict[str, str]) -> str:
    """The names of the definitions that stand before the rest."""
    before = text[: len(text) - len(rest)]
    return ", ".join(name for name, body in definitions.items() if body in before) or "nothing"
