"""A view in a notebook talks through the kernel's comm."""

from __future__ import annotations

import json
import queue
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import lanewise as lw
from lanewise.live.frame import decode
from lanewise.live.page import joined
from lanewise.live.widget import page_in_one
from tests.live.sparks import sparks

pytest.importorskip("anywidget")
pytest.importorskip("websockets")


def test_the_page_is_one_document() -> None:
    page = page_in_one()
    assert 'src="' not in page
    assert 'href="' not in page
    socket, script = re.findall(r"<script.*?>(.*?)</script>", page, re.DOTALL)
    assert "globalThis.WebSocket" in socket
    assert script == joined()[0]


@pytest.mark.parametrize("height", [0, -5, 1.5, True, "x"])
def test_heights_that_are_none_are_refused(height: Any) -> None:
    with (
        lw.view(sparks(), port=0, quiet=True) as view,
        pytest.raises(lw.LanewiseError, match=r"the height is .*; wanted pixels, an integer from 1 on"),
    ):
        view.widget(height)


def test_frames_come_through_the_comm(monkeypatch: pytest.MonkeyPatch) -> None:
    said: queue.Queue[tuple[dict[str, Any], Any]] = queue.Queue()
    array = sparks()
    with lw.view(array, colour="heat", port=0, quiet=True) as view:
        widget = view.widget(height=300)
        assert widget.height == 300
        monkeypatch.setattr(widget, "send", lambda content, buffers=None: said.put((content, buffers)))

        def hear(**message: Any) -> None:
            widget._handle_custom_msg({"text": json.dumps(message)}, [])

        hear(do="hello", token="")
        hear(do="credit", n=2)
        assert json.loads(said.get(timeout=20)[0]["text"])["is"] == "welcome"
        while not view.viewers:
            pass
        frames = []
        while len(frames) < 3:  # and nobody acknowledges
            view.update()
            try:
                _, buffers = said.get(timeout=0.05)
            except queue.Empty:
                continue
            if buffers:
                header, _ = decode(buffers[0])
                frames += [header] if header.kind == "points" else []
        assert [h.count for h in frames] == [40] * 3
        assert frames[0].sequence < frames[1].sequence < frames[2].sequence
        widget._handle_custom_msg({"other": 1}, [])
        widget._handle_custom_msg({"text": "no json"}, [])


CELLS = (
    """
import numpy as np
import lanewise as lw

field = np.linspace(0, 1, 48, dtype=np.float32).reshape(6, 8)
view = lw.view(field, port=0, quiet=True)
view.widget(height=321)
""",
    """
for step in range(3):
    view.update(step)
view.close()
print(view._feed.ended)
""",
)


def test_a_notebook_shows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cells are executed by a kernel, which says what a page shows and of which state."""
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    kernel = tmp_path / "kernels" / "python3"
    kernel.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    env = {"PYTHONPATH": str(Path(lw.__file__).parents[1])}
    described = {"argv": argv, "display_name": "Python", "language": "python", "env": env}
    (kernel / "kernel.json").write_text(json.dumps(described))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in CELLS])
    client.NotebookClient(book, timeout=120, kernel_name="python3").execute()
    (shown,) = book.cells[0].outputs
    model = shown.data["application/vnd.jupyter.widget-view+json"]["model_id"]
    states = book.metadata.widgets["application/vnd.jupyter.widget-state+json"]["state"]
    state = states[model]["state"]
    assert state["height"] == 321
    assert state["page"] == page_in_one()
    assert "export default" in state["_esm"]
    assert book.cells[1].outputs[0].text == "True\n"
