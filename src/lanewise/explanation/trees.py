"""A pairwise kernel over a tree, explained without arrays: the shape of a tree follows from the
number of its elements, wherever they are.
"""

from __future__ import annotations

from collections.abc import Mapping

from lanewise.explanation.calls import compile_call
from lanewise.explanation.offline import Offline
from lanewise.explanation.samples import sample_arguments, sample_roles
from lanewise.language.target import CPU
from lanewise.layouts import Layout, default_layout
from lanewise.patterns.pairwise.far_field import far_field
from lanewise.patterns.pairwise.kernel import Pairwise
from lanewise.patterns.search.tree.search import Tree


def compile_over_tree(
    kernel: Pairwise,
    tree: Tree,
    count: int,
    device: str,
    *,
    arch: str | None = None,
    layout: Layout | None = None,
    values: Mapping[str, float] | None = None,
) -> tuple[str, tuple[Offline, ...]]:
    """What is proved of its function, and its call of `count` elements at normally distributed
    places on "cpu" or "cuda", which needs no GPU. values: see `sample_values`.

    Raises `CompileError`, with the line, for a function that has no far field.
    """
    record = next(iter(sample_roles(kernel).records.values()))
    records, named = sample_arguments(
        kernel, count, CPU.name, values=values, layout=layout or default_layout(record, device)
    )
    made = compile_call(kernel.using(search=tree), *records, device=device, arch=arch, **named)
    return f"by a {tree.describe()}\n{far_field(kernel)}", (made,)
