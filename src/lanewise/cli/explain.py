"""`lanewise explain gravity`: the plan, the layout and the generated source of a kernel."""

from __future__ import annotations

from typing import Annotated

import typer

from lanewise.errors import InputError

DEFAULT_ARCH = "sm_90"
DEFAULT_MULTIPROCESSORS = 132


def explain(
    name: Annotated[str, typer.Argument(help="a product: gravity")],
    source: Annotated[str | None, typer.Option(help="print the generated source for cpu or cuda")] = None,
    device: Annotated[str, typer.Option(help="explain for cpu or cuda (no GPU is needed)")] = "cpu",
    bodies: Annotated[int, typer.Option(min=1, help="number of bodies")] = 16384,
    precision: Annotated[str, typer.Option(help="f32, f64 or mixed")] = "f32",
    layout: Annotated[str | None, typer.Option(help="soa, aos, aoas, soaoas or aosoa")] = None,
    arch: Annotated[str, typer.Option(help="GPU architecture to compile for")] = DEFAULT_ARCH,
) -> None:
    """Say which plan and layout a kernel gets and why; with --source print the code that runs."""
    from lanewise.sims.gravity.explain import explain_gravity

    if name != "gravity":
        raise InputError(f"nothing is known of {name!r}; wanted gravity")
    for option in (source, device):
        if option not in (None, "cpu", "cuda"):
            raise InputError(f"unknown device {option!r}; wanted cpu or cuda")
    report, text = explain_gravity(source or device, bodies, precision, layout, arch, DEFAULT_MULTIPROCESSORS)
    print(text if source else report)
