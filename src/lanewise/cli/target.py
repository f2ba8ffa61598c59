"""What a command is about: a product, or the kernel `name` of the file `path/to/file.py`, written
as `path/to/file.py:name`.
"""

from __future__ import annotations

import importlib.util
import inspect
from pathlib import Path
from types import ModuleType
from typing import Any

from lanewise import sims
from lanewise.frontend.helpers import HelperFunction
from lanewise.launch.arguments import describe
from lanewise.launch.compiled import Call, Inspectable
from lanewise.patterns.elementwise.gradient import ElementwiseGradient
from lanewise.patterns.elementwise.kernel import Elementwise
from lanewise.patterns.kernels import AbstractKernel
from lanewise.patterns.pairwise.gradient import PairwiseGradient
from lanewise.patterns.pairwise.kernel import Pairwise
from lanewise.patterns.segmentwise.kernel import Segmentwise
from lanewise.patterns.sitewise.kernel import Sitewise
from lanewise.patterns.sitewise.observer import Observer
from lanewise.patterns.sitewise.stencil import Stencil
from lanewise.patterns.threadwise.kernel import Threadwise
from lanewise.support.attributes import near
from lanewise.support.errors import InputError
from lanewise.support.scripts import run_file

Kernel = Pairwise | Elementwise | Segmentwise | Threadwise | Sitewise | Stencil
Explained = Kernel | PairwiseGradient | ElementwiseGradient
_EXPLAINED = (
    Pairwise, Elementwise, Segmentwise, Threadwise, Sitewise, Stencil, PairwiseGradient,
    ElementwiseGradient,
)  # fmt: skip
MOST_SPELT = 3  # kernels of a file that are listed with its path
_DECORATORS = (
    "@lw.pairwise, @lw.elementwise, @lw.threadwise, @lw.segmentwise, @lw.sitewise(lattice) or "
    "@lw.stencil(lattice)"
)


def product_kernels(name: str) -> Any:
    """The module `explain` of a product, which has `explained` and perhaps `tuned_call`; None where
    there is none.
    """
    place = f"{sims.__name__}.{name}.explain"
    return (
        importlib.import_module(place)
        if name in sims.PRODUCTS and importlib.util.find_spec(place)
        else None
    )


def products_that(can: str) -> list[str]:
    """The products whose module `explain` has a function of this name."""
    return [name for name in sims.PRODUCTS if hasattr(product_kernels(name), can)]


def load_kernel(text: str) -> Explained:
    """The kernel that `path/to/file.py:name` names; the file is run to get it.

    What the file prints goes to standard error: standard output belongs to the command. Raises
    `InputError` when there is no such file, when it cannot be run, when it has no kernel of this
    name, and for a kernel of which nothing says what its arguments are like.
    """
    path_text, separator, name = text.rpartition(":")
    if not separator or not path_text.endswith(".py"):
        if text.endswith(".py"):
            offered = _kernels_of(run_file(Path(text)))
            raise InputError(f"{text}: which kernel? {_choices(text, offered)}")
        products = products_that("explained")
        raise InputError(
            f"unknown kernel {text!r}{near(text, products) or ';'} wanted "
            f"{', '.join(products)}, or a kernel of a file as in "
            "path/to/file.py:name"
        )
    module = run_file(Path(path_text))
    kernels = _kernels_of(module)
    if name in kernels:
        return kernels[name]
    choices = _choices(path_text, kernels)
    if not hasattr(module, name):
        raise InputError(
            f"{path_text} has no kernel {name!r}{near(name, kernels) or ';'} {choices}"
        )
    raise InputError(f"{path_text}: {name} {_why_not(getattr(module, name), name, choices)}")


def _why_not(found: Any, name: str, choices: str) -> str:
    """Why something that has a name in a file is nothing to explain or to tune; `choices` are
    what is.
    """
    match found:
        case AbstractKernel():
            return (
                "is a kernel of a custom pattern, of which nothing says what its arguments are "
                f"like: {name}.compile(...).explain() takes those of a call"
            )
        case Observer():
            return (
                "is an observer, which looks at sites and has no plan; explain the "
                "kernel whose sites it looks at"
            )
        case HelperFunction():
            return f"is a helper, which is written into the kernels that call it; {choices}"
        case Inspectable() | Call():
            compiled = f"{name}.compiled" if isinstance(found, Call) else name
            return f"is compiled for one call already, and print({compiled}.explain()) explains it"
        case _ if inspect.isfunction(found):
            return f"is a plain function, and a kernel has a decorator: {_DECORATORS}; {choices}"
        case _:
            return f"is no kernel, found {describe(found)}; {choices}"


def _kernels_of(module: ModuleType) -> dict[str, Any]:
    return {n: v for n, v in vars(module).items() if isinstance(v, _EXPLAINED)}


def _choices(path: str, kernels: dict[str, Any]) -> str:
    if not kernels:
        return f"it has no kernels: functions under {_DECORATORS}"
    names = sorted(kernels)
    if len(names) > MOST_SPELT:
        return f"wanted {path}:NAME, with one of {', '.join(names)}"
    return "wanted " + " or ".join(f"{path}:{n}" for n in names)
