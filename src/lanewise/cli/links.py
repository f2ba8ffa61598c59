"""The links between devices, as `lanewise info --devices` has them."""

from __future__ import annotations

from typing import Any


def gather_links(devices: list[str]) -> list[dict[str, Any]]:
    """From each device to each: what copies go over, and bytes copied a second where that is
    measured.
    """
    return [_link(a, b) for a in devices for b in devices]


def _link(source: str, target: str) -> dict[str, Any]:
    from lanewise.primitives.copying import copy_bandwidth
    from lanewise.runtime.links import copy_rate, link_between

    if source == target:
        both = copy_bandwidth(source)  # reads and writes
        rate = None if both is None else both / 2
    else:
        rate = copy_rate(source, target)
    return {
        "from": source,
        "to": target,
        "link": link_between(source, target),
        "bytes_per_second": rate,
    }


def lines_of_links(links: list[dict[str, Any]]) -> list[str]:
    """A matrix: from the device of a row to that of a column."""
    names = list(dict.fromkeys(link["from"] for link in links))
    cells = [["from", *(f"to {name}" for name in names)]]
    for name in names:
        cells.append([name, *(_cell(link) for link in links if link["from"] == name)])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(f"{c:{w}}" for c, w in zip(row, widths, strict=True)).rstrip() for row in cells
    ]


def _cell(link: dict[str, Any]) -> str:
    rate = link["bytes_per_second"]
    return link["link"] if rate is None else f"{rate / 1e9:,.1f} GB/s, {link['link']}"
