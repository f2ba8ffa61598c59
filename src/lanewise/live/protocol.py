"""What server and page agree on: the header of a frame, kinds, flags, closing codes, colour maps.

One table, written into `static/table.js` by `python -m lanewise.live.protocol`. Numbers are little
endian. After the header of a frame come its rows:

points: u16 x, y, z as fractions of the box, u16 value as a fraction of the range. arrows: the same
and u16 x 2, the heading on an octahedron. suffix: rows `first` to `first + count` of the frame
before; `components` is the bytes of a row. slice: `first` by `total` values, x fastest, u8 as
fractions of the range; its box is flat along its axis. volume: u8, `first` by `total` by `count`
values, x fastest. boxes: u16 x 4, the lower corner and the depth as a fraction of the deepest; the
same of the upper corner. statistics: JSON, numbers and texts by name; "field": what colours; and
perhaps "curve": a function as columns, {"x": [low, high], "y": heights, "names": [of x, of y]};
"colours": how many values are "below" a logarithmic scale, or the one in the "middle" of ranks;
"not finite": how many elements or values are left out.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable
from pathlib import Path

from lanewise.plot.canvas import speed_colours
from lanewise.support.interrupts import interrupts_wait

VERSION = 1
PATH = f"/v{VERSION}/feed"
MAGIC = "LWV1"

HEADER = (
    ("kind", "B", 4, 1),
    ("flags", "B", 5, 1),
    ("components", "B", 6, 1),
    ("order", "B", 7, 1),
    ("sequence", "I", 8, 1),
    ("count", "I", 12, 1),
    ("first", "I", 16, 1),
    ("total", "I", 20, 1),
    ("step", "Q", 24, 1),
    ("time", "d", 32, 1),
    ("origin", "f", 40, 3),
    ("extent", "f", 52, 3),
    ("low", "f", 64, 1),
    ("high", "f", 68, 1),
    ("scale", "i", 72, 1),
)
"""(name, code of `struct`, first byte, how many); rows of frames with one `order` are the same
elements. scale: of the values, see `SCALES`.
"""

HEADER_BYTES = 80

SCALES = ("linear", "log", "rank")
"""How values become fractions of the range, by their number in a header."""

KINDS = {
    "points": 0,
    "arrows": 1,
    "slice": 2,
    "volume": 3,
    "suffix": 4,
    "statistics": 5,
    "boxes": 6,
}
STRIDES = {"points": 8, "arrows": 12, "suffix": 0, "boxes": 16}
"""Bytes of a row; a suffix has those of the frame before it."""

FLAGS = {"walls": 1, "past": 2, "clamped": 4, "under": 8, "over": 16}
"""walls: value 0 is solid, and 1 to 255 are the range. past: out of the history. clamped: some
rows lie outside the box and are drawn on its faces. under, over: some values lie outside the range
and have its lowest or its highest colour.
"""

CLOSED = {
    4401: "wrong token: open the whole address that the run printed",
    4429: "the run has as many viewers as it takes",
}
"""Codes of a connection that the server closes for good, and what the page says then."""

GONE = 1001
"""The code with which a run that ends, or a view that is closed, takes leave (RFC 6455, 7.4.1)."""

BACK_OFF = (500, 8000)
"""Milliseconds until a lost connection is tried again: at first, at most."""

MAPS = ("viridis", "magma", "coolwarm", "ember")
STOPS = 25
"""Colours of a map in the page, between which it interpolates."""


def page_table() -> str:
    """The text of `static/table.js`."""
    constants = {
        "PATH": PATH,
        "MAGIC": MAGIC,
        "HEADER": HEADER,
        "HEADER_BYTES": HEADER_BYTES,
        "SCALES": SCALES,
        "KINDS": KINDS,
        "STRIDES": STRIDES,
        "FLAGS": FLAGS,
        "CLOSED": CLOSED,
        "GONE": GONE,
        "BACK_OFF": BACK_OFF,
        "MAPS": {name: b64encode(bytes.fromhex("".join(colours(name)))).decode() for name in MAPS},
    }
    lines = ["// Made by `python -m lanewise.live.protocol`; change lanewise/live/protocol.py."]
    lines += [
        f"export const {n} = {json.dumps(v, separators=(',', ':'))};" for n, v in constants.items()
    ]
    return "\n".join(lines) + "\n"


@interrupts_wait()
def colours(name: str) -> Iterable[str]:
    """STOPS colours of a map as six hexadecimal digits each."""
    import matplotlib
    from matplotlib.colors import to_hex

    chosen = speed_colours() if name == "ember" else matplotlib.colormaps[name]
    return [to_hex(chosen(k / (STOPS - 1)))[1:] for k in range(STOPS)]


def main() -> None:
    """Writes the page's table next to the page."""
    path = Path(__file__).with_name("static") / "table.js"
    path.write_text(page_table(), encoding="utf-8")


if __name__ == "__main__":
    main()
