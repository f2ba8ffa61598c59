"""The files of the page: one table with the server, nothing from elsewhere, small."""

from __future__ import annotations

import gzip
import re
from pathlib import PurePosixPath

import matplotlib
import numpy as np

from lanewise.live import protocol
from lanewise.live.page import STATIC, joined
from lanewise.plot.canvas import speed_colours

LARGEST = 80 * 1024
SENT = 34_000  # compressed, as a browser asks for it


def test_page_and_server_have_one_table() -> None:
    written = (STATIC / "table.js").read_text(encoding="utf-8")
    assert written == protocol.page_table(), "python -m lanewise.live.protocol"


def test_the_header_has_no_holes_but_at_its_end() -> None:
    size = {"B": 1, "I": 4, "i": 4, "f": 4, "Q": 8, "d": 8}
    end = len(protocol.MAGIC)
    for _, code, place, count in protocol.HEADER:
        assert place == end
        assert place % size[code] == 0
        end = place + size[code] * count
    assert end <= protocol.HEADER_BYTES
    assert protocol.HEADER_BYTES % 8 == 0


def test_kinds_are_numbered_in_order() -> None:
    assert list(protocol.KINDS.values()) == list(range(len(protocol.KINDS)))


def test_colours_between_the_stops_are_those_of_the_maps() -> None:
    for name in protocol.MAPS:
        stops = np.array([[int(c[i : i + 2], 16) for i in (0, 2, 4)] for c in protocol.colours(name)])
        at = np.linspace(0, 1, len(stops))
        fine = np.linspace(0, 1, 256)
        mine = np.stack([np.interp(fine, at, stops[:, c]) for c in range(3)], 1)
        table = speed_colours() if name == "ember" else matplotlib.colormaps[name]
        assert np.abs(mine - table(fine)[:, :3] * 255).max() < 6


def test_the_page_is_small_and_loads_nothing_from_elsewhere() -> None:
    files = [p for p in STATIC.iterdir() if p.is_file()]
    assert sum(p.stat().st_size for p in files) <= LARGEST
    assert sum(len(gzip.compress(p.read_bytes())) for p in files) <= SENT
    for path in files:
        text = path.read_text(encoding="utf-8")
        addresses = set(re.findall(r"https?://[^\s\"'`]+", text)) - {"http://www.w3.org/2000/svg"}
        assert not addresses, path.name
        assert not re.search(r"\beval\(|new Function|innerHTML|\bstyle=|\son\w+=\"|<script>", text), path.name
        for other in re.findall(r"from \"(\./[\w.]+)\"|(?:src|href)=\"([\w.]+)\"", text):
            assert (STATIC / next(filter(None, other))).is_file()
        assert max(map(len, text.splitlines())) <= 100 or path.name in ("table.js", "icon.svg"), path.name


def test_the_script_has_each_module_once_and_its_map_says_where() -> None:
    """Line by line: what an error in the script names is a line of the module."""
    script, lines = joined()
    rows, named = script.splitlines(), list[str]()
    for section in lines["sections"]:
        (source,), (text,) = section["map"]["sources"], section["map"]["sourcesContent"]
        name = PurePosixPath(source).name
        named.append(name)
        module = (STATIC / name).read_text(encoding="utf-8").splitlines()
        assert text.splitlines() == module
        steps = section["map"]["mappings"].split(";")  # AAAA: at line 0 of the source; AACA: a line further
        assert steps == ["AAAA"] + ["AACA"] * (len(module) - 1)
        begin = section["offset"]["line"]
        for row, line in zip(rows[begin : begin + len(module)], module, strict=True):
            if not line.startswith(("import", "  from")):
                assert row.endswith(line.removeprefix("export ")), (name, line)
        assert rows[begin + len(module)].startswith("return {")
    assert sorted(named) == sorted(p.name for p in STATIC.glob("*.js"))
    assert len(rows) == sum(len((STATIC / name).read_text(encoding="utf-8").splitlines()) + 1 for name in named)
    assert named[-1] == "main.js"
    assert not re.search(r"^(import|export)\b", script, re.MULTILINE)
    assert "</script" not in script, "the page of a notebook has it inside"
