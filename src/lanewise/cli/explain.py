"""`lanewise explain` gravity, boids, lbm, waves or path/to/file.py:kernel: what a kernel gets, why,
and what to expect of it.
"""

from __future__ import annotations

import json as json_module
import shutil
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lanewise.cli.given import Shape, read_shapes, read_values, refuse_of_files, with_lists
from lanewise.cli.trees import (
    Accuracy,
    Leaf,
    Method,
    Order,
    Theta,
    Walk,
    asked_method,
    over_method,
)
from lanewise.cli.words import Json, LayoutName, Lists, Name, Near, Precision, Shapes, Values
from lanewise.language.target import CPU, CUDA, is_gpu
from lanewise.runtime.mesh import is_mesh, listed
from lanewise.sims.common.commands import at_least, whole_number
from lanewise.sims.common.completion import DEVICES, completing
from lanewise.sims.common.tree_options import speaking_options
from lanewise.support.attributes import near as near_names
from lanewise.support.errors import InputError

if TYPE_CHECKING:
    from lanewise.explanation.compiled import Offline
    from lanewise.explanation.mesh_steps import MeshStep

BODIES = 16_384
WIDTH = 120  # columns where the number is not given


Source = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        autocompletion=completing(DEVICES),
        help="print the generated source for cpu or cuda instead",
    ),
]
OnDevice = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        autocompletion=completing(DEVICES),
        help="explain for cpu or cuda, which needs no GPU (default cpu; cuda with --arch); of "
        "gravity, boids and lbm also cpu*4 or cuda:0-3, with the copies between parts",
    ),
]
Bodies = Annotated[
    int,
    typer.Option(
        parser=whole_number,
        callback=at_least(1),
        metavar="N",
        help="number of elements, of sites (about), or of templates",
    ),
]
Arch = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="GPU architecture, such as sm_90 (default: the GPU here, or sm_90); several "
        "with commas, or all, stand side by side",
    ),
]
All = Annotated[
    bool,
    typer.Option("--all", metavar="", help="show every optimisation, not only those of use here"),
]


@speaking_options
def explain(
    name: Name,
    source: Source = None,
    device: OnDevice = None,
    bodies: Bodies = BODIES,
    precision: Precision = None,
    layout: LayoutName = None,
    arch: Arch = None,
    values: Values = None,
    shape: Shapes = None,
    lists: Lists = None,
    near: Near = None,
    method: Method = None,
    accuracy: Accuracy = None,
    theta: Theta = None,
    order: Order = None,
    leaf: Leaf = None,
    walk: Walk = None,
    every: All = False,
    json: Json = False,
) -> None:
    """Explain each optimisation of a kernel: applied or not, why, and what it should gain.

    Runs no kernel. The file of a kernel is imported.
    """
    mesh = device if device is not None and is_mesh(device) else None
    chosen = _device(source, _kind_of(mesh, source) if mesh else device, arch)
    if every and (source or json):
        raise InputError(
            f"--all is of the table, which --{'json' if json else 'source'} does not print"
        )
    numbers = read_values(values or [])
    asked = asked_method(
        name, method=method, accuracy=accuracy, theta=theta, order=order, leaf=leaf, walk=walk
    )
    shapes = read_shapes(shape or [])
    each = [arch] if arch is None else _archs(arch, source, every)
    divides = None if mesh is None else _divides(name, mesh, arch, each)
    divided = None
    if divides is not None and mesh is not None:
        from lanewise.cli.products import compiled_on_mesh, divided_over

        sizes = bodies, precision or "f32", layout, numbers
        heading, shown = divides(mesh, chosen, *sizes, **asked)
        kernels = compiled_on_mesh(shown, chosen, arch)
        divided = divided_over(mesh, shown, kernels)
    else:
        several = [
            _kernels(
                name, chosen, bodies, precision, layout, a, numbers, shapes, lists, near, asked
            )
            for a in each
        ]
        if len(several) > 1:
            _print_side_by_side([kernels for _, kernels in several], json)
            return
        ((heading, kernels),) = several
    if source and not json:
        print("\n\n".join(k.executable.source for k in kernels))
    elif json:
        _print_json(heading, kernels, bool(source), divided)
    else:
        lines = [] if divided is None else divided.lines()
        _print_tables("\n".join([*heading.splitlines(), *lines]), kernels, every)
        print(f"The generated source: lanewise explain {name} --source {chosen}")


def _kind_of(mesh: str, source: str | None) -> str:
    """The kind of device of a mesh; raises `InputError` where a source is requested."""
    if source is not None:
        raise InputError(
            f"--source {source} is of one device, and --device {mesh} is a mesh; leave one of "
            "them out"
        )
    return listed(mesh)[0].partition(":")[0]


def _divides(name: str, mesh: str, arch: str | None, each: Sequence[str | None]) -> Any:
    """What divides the step of a product; raises `InputError` for what says nothing of it."""
    from lanewise.cli.target import product_kernels, products_that

    if len(each) > 1:
        raise InputError(f"--arch {arch} are several, and --device {mesh} is a mesh; name one")
    divides = getattr(product_kernels(name), "divided", None)
    if divides is None:
        *others, last = products_that("divided")
        raise InputError(
            f"--device {mesh} is for {', '.join(others)} and {last}, whose steps "
            f"divide themselves; of {name} wanted cpu or cuda, and print(kernel.compile(...)"
            ".explain()) of arrays on a mesh says what its parts bring each other"
        )
    return divides


def _device(source: str | None, device: str | None, arch: str | None) -> str:
    """The kind of device that is requested; raises `InputError` for options that differ in it."""
    for option in (source, device):
        if option not in (None, CPU.name, CUDA.name):
            raise InputError(
                f"unknown device {option!r}{near_names(option, (CPU.name, CUDA.name)) or ';'} "
                "wanted cpu or cuda"
            )
    if source and device and source != device:
        raise InputError(
            f"--source {source} and --device {device} are two devices; give one of them"
        )
    chosen = source or device or (CUDA.name if arch else CPU.name)
    if arch and not is_gpu(chosen):
        raise InputError(
            f"--arch {arch} is an architecture of GPUs, and --{'source' if source else 'device'} "
            f"{chosen} is none"
        )
    return chosen


def _archs(arch: str, source: str | None, every: bool) -> tuple[str, ...]:
    """The architectures that are requested."""
    from lanewise.explanation.architectures import archs_of

    archs = archs_of(arch)
    if len(archs) > 1 and (source or every):
        raise InputError(
            f"--{'source' if source else 'all'} is of one architecture, and --arch {arch} are "
            "several; name one of them"
        )
    return archs or (arch,)


def _print_side_by_side(several: list[tuple[Offline, ...]], json: bool) -> None:
    """A row for every kernel and architecture, those of a kernel together."""
    from lanewise.explanation.architectures import as_lines, row_of

    rows = [
        row_of(k, first) for same in zip(*several, strict=True) for first in same[:1] for k in same
    ]
    if json:
        print(json_module.dumps({"kernels": [r.as_dict() for r in rows]}, allow_nan=False))
        return
    print("\n".join(as_lines(rows)))


def _print_json(
    heading: str, kernels: tuple[Offline, ...], source: bool, divided: MeshStep | None
) -> None:
    facts = [
        k.explain().as_dict() | _transfers(k) | ({"source": k.executable.source} if source else {})
        for k in kernels
    ]
    whole = {"search": heading, "kernels": facts} if heading else facts[0]
    if divided is not None:
        whole = {**whole, "mesh": divided.json()}
    print(json_module.dumps(whole, allow_nan=False))


def _transfers(kernel: Offline) -> dict[str, Any]:
    """What a kernel of a GPU would copy if its arrays lay on the host."""
    from lanewise.explanation.architectures import copies_of

    if not is_gpu(kernel.executable.device):
        return {}
    found, _ = copies_of(kernel)
    return {"transfers": None if found is None else found.as_dict()}


def _copies(kernel: Offline) -> list[str]:
    """The same in a line."""
    from lanewise.explanation.architectures import copies_of

    _, line = copies_of(kernel) if is_gpu(kernel.executable.device) else (None, "")
    return [_filled(line)] if line else []


def _print_tables(heading: str, kernels: tuple[Offline, ...], every: bool) -> None:
    from lanewise.explanation.rendering import as_text

    explanations = [k.explain() for k in kernels]
    texts = [
        "\n\n".join([as_text(e, columns(), every=every), *_copies(k)])
        for k, e in zip(kernels, explanations, strict=True)
    ]
    lines = heading.splitlines()
    above = ["\n".join(_filled(line) for line in lines)] if heading else []
    print(*above, *texts, sep="\n\n" if heading else "\n")
    print()
    if not every and any(r.place != "here" for e in explanations for r in e.rows):
        print("A row for every optimisation: the same command with --all")


def _filled(line: str) -> str:
    """A line in the width of a table; what is indented continues deeper."""
    deeper = line[: len(line) - len(line.lstrip())]
    return textwrap.fill(line, columns(), subsequent_indent=f"{deeper}    " if deeper else "")


def columns() -> int:
    """How wide a table may be: as the terminal (or the variable COLUMNS), else as wide as
    explanations are.
    """
    return min(shutil.get_terminal_size((WIDTH, 0)).columns, WIDTH)


def _kernels(
    name: str, device: str, count: int, precision: str | None, layout: str | None, arch: str | None,
    values: Mapping[str, float], shapes: Mapping[str, Shape], lists: str | None,
    near: float | None, asked: Mapping[str, Any],
) -> tuple[str, tuple[Offline, ...]]:  # fmt: skip
    """The kernels of a product, or of a kernel of a file, with what stands above them."""
    from lanewise.cli.products import compiled
    from lanewise.cli.target import load_kernel, product_kernels

    refuse_of_files(name, shapes, lists, near)
    if product := product_kernels(name):
        heading, shown = product.explained(
            device, count, precision or "f32", layout, values, **asked
        )
        return heading, tuple(compiled(call, device, arch) for call in shown)
    from lanewise.explanation.offline import explained
    from lanewise.layouts import layout_by_name

    if precision is not None:
        raise InputError(
            f"--precision belongs to gravity, boids and lbm; the types of {name} are those of its "
            "file"
        )
    kind = layout_by_name(layout) if layout else None
    kernel = over_method(name, load_kernel(name), asked)
    return explained(
        kernel,
        count,
        device,
        arch=arch,
        layout=kind,
        values=values,
        shapes=with_lists(kernel, lists, shapes),
        near=near,
        recalled=True,
    )
