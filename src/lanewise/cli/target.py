"""What a command is about: a product, or the kernel `name` of the file `path/to/file.py`, written
as `path/to/file.py:name`.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any, overload

from lanewise import sims
from lanewise.launch.arguments import describe
from lanewise.patterns.elementwise.kernel import Elementwise
from lanewise.patterns.pairwise.kernel import Pairwise
from lanewise.patterns.segmentwise.kernel import Segmentwise
from lanewise.patterns.sitewise.kernel import Sitewise
from lanewise.patterns.sitewise.stencil import Stencil
from lanewise.patterns.threadwise.kernel import Threadwise
from lanewise.support.attributes import near
from lanewise.support.errors import InputError
from lanewise.support.scripts import run_file

_WAYS = "are {0}.compile(...).explain() and {0}.tune(...)"
_OF_A_CALL = (
    (Segmentwise, "segmentwise kernel, whose lists", _WAYS),
    (Threadwise, "threadwise kernel, whose arrays and grid", _WAYS),
    (Stencil, "stencil, whose sites", "is {0}.compile(sites, ...).explain()"),
)
"""Kernels that are explained for the arguments of a call alone: what they are, and where to go."""


def product_kernels(name: str) -> Any:
    """The module `explain` of a product, which has `explained` and perhaps `tuning_job`; None where
    there is none.
    """
    place = f"{sims.__name__}.{name}.explain"
    return (
        importlib.import_module(place)
        if name in sims.PRODUCTS and importlib.util.find_spec(place)
        else None
    )


def _products_that(can: str) -> list[str]:
    """The products whose module `explain` has a function of this name."""
    return [name for name in sims.PRODUCTS if hasattr(product_kernels(name), can)]


@overload
def load_kernel(text: str) -> Pairwise | Elementwise: ...
@overload
def load_kernel(text: str, *, sites: bool) -> Pairwise | Elementwise | Sitewise: ...
def load_kernel(text: str, *, sites: bool = False) -> Pairwise | Elementwise | Sitewise:
    """The kernel that `path/to/file.py:name` names, also one over the `sites` of a lattice; the
    file is run to get it.

    What the file prints goes to standard error: standard output belongs to the command. Raises
    `InputError` when there is no such file, when it cannot be run, and when it has no kernel of
    this name.
    """
    path_text, separator, name = text.rpartition(":")
    if not separator or not path_text.endswith(".py"):
        if text.endswith(".py"):
            offered = _kernels_of(run_file(Path(text)), sites)
            raise InputError(f"{text}: which kernel? {_choices(text, offered)}")
        products = _products_that("explained" if sites else "tuning_job")
        raise InputError(
            f"nothing is known of {text!r}{near(text, products) or ';'} wanted "
            f"{', '.join(products)}, or a kernel of a file as in "
            "path/to/file.py:name"
        )
    module = run_file(Path(path_text))
    kernels = _kernels_of(module, sites)
    if name in kernels:
        return kernels[name]
    if isinstance(getattr(module, name, None), Sitewise):
        raise InputError(
            f"{path_text}: {name} is a sitewise kernel, which is measured on its own sites; in "
            "Python there is "
            f"{name}.tune(sites, ...), and lanewise explain shows what rules chose"
        )
    for kind, what, ways in _OF_A_CALL:
        if isinstance(getattr(module, name, None), kind):
            raise InputError(
                f"{path_text}: {name} is a {what} cannot be made up; in Python there "
                f"{ways.format(name)}"
            )
    if hasattr(module, name):
        raise InputError(
            f"{path_text}: {name} is no kernel, found {describe(getattr(module, name))}; "
            f"{_choices(path_text, kernels)}"
        )
    raise InputError(f"{path_text} has no kernel {name!r}; {_choices(path_text, kernels)}")


def _kernels_of(module: ModuleType, sites: bool) -> dict[str, Any]:
    kinds = (Pairwise, Elementwise, Sitewise) if sites else (Pairwise, Elementwise)
    return {n: v for n, v in vars(module).items() if isinstance(v, kinds)}


def _choices(path: str, kernels: dict[str, Any]) -> str:
    if not kernels:
        return "it has no kernels: functions under @lw.pairwise or @lw.elementwise"
    return "wanted " + " or ".join(f"{path}:{n}" for n in sorted(kernels))
