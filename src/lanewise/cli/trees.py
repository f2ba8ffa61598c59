"""Forces by all pairs or by a tree: the options of commands that take them, and the kernel of a
file over what they ask for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from lanewise.sims import PRODUCTS
from lanewise.sims.common.completion import completing
from lanewise.support.attributes import unknown
from lanewise.support.errors import ArgumentError, InputError

METHODS, WALKS = ("direct", "tree"), ("walk", "dual")

Method = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        autocompletion=completing("lanewise.sims.gravity.trees.METHODS"),
        help="for gravity, and for a kernel of a file: direct or tree (default direct)",
    ),
]
Accuracy = Annotated[
    float | None, typer.Option(metavar="X", help="for a tree: the requested error")
]
Theta = Annotated[
    float | None, typer.Option(metavar="X", help="for a tree: its opening angle (0.6)")
]
Order = Annotated[int | None, typer.Option(metavar="N", help="for a tree: order of expansions (4)")]
Leaf = Annotated[int | None, typer.Option(metavar="N", help="for a tree: bodies per leaf (32)")]
Walk = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        autocompletion=completing("lanewise.sims.gravity.trees.WALKS"),
        help="for a tree: walk or dual, where groups also meet groups (walk)",
    ),
]


def asked_method(name: str, **options: Any) -> dict[str, Any]:
    """The options that were given; raises `InputError` for those of a product without trees."""
    asked = {n: value for n, value in options.items() if value is not None}
    if asked and name in PRODUCTS and name != "gravity":
        raise InputError(f"--{next(iter(asked))} belongs to gravity and to kernels of files")
    return asked


def over_method(name: str, kernel: Any, asked: Mapping[str, Any]) -> Any:
    """A kernel of a file over what is requested: a tree, all pairs, or as it stands there."""
    from lanewise.patterns.pairwise.kernel import Pairwise
    from lanewise.patterns.search.all_pairs import AllPairs
    from lanewise.patterns.search.tree.search import Tree

    numbers = {n: value for n, value in asked.items() if n not in ("method", "walk")}
    method, walk = asked.get("method"), asked.get("walk")
    if method not in (None, *METHODS):
        raise InputError(unknown("method", method, METHODS))
    if walk not in (None, *WALKS):
        raise InputError(unknown("walk", walk, WALKS))
    if method is not None and not isinstance(kernel, Pairwise):
        raise InputError(f"{name} is no pairwise kernel: it has no sources to sum up by a tree")
    if method == "tree":
        try:
            return kernel.using(search=Tree(**numbers, method=walk))
        except ArgumentError as error:
            raise InputError(str(error)) from error
    for option in asked:
        if option != "method":
            raise InputError(f"--{option} needs --method tree")
    over_tree = isinstance(kernel, Pairwise) and isinstance(kernel.search, Tree)
    return kernel.using(AllPairs()) if method == "direct" and over_tree else kernel
