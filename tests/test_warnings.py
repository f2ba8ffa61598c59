"""Every warning of lanewise is a `LanewiseWarning`: one filter is enough for all of them."""

from __future__ import annotations

import ast
import warnings

import pytest

import lanewise as lw
from lanewise.sims import boids, lbm, waves
from tests.storeys import modules


def _name(node: ast.expr | None) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def test_all_warnings_have_the_base() -> None:
    named: dict[str, list[str]] = {}
    raised: dict[str, str] = {}
    for module, path in modules().items():
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "warn" in text or "Warning" in text else ():
            match node:
                case ast.ClassDef(name=name, bases=bases) if name.endswith("Warning"):
                    named[name] = [_name(b) for b in bases]
                case ast.Call(func=ast.Attribute(value=ast.Name(id="warnings"), attr="warn")) if (
                    module == "support.warned"  # which hands on what `warn_user` is given
                ):
                    continue
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id="warnings"), attr="warn") | ast.Name(id="warn_user")
                ):
                    category = node.args[1] if len(node.args) > 1 else None
                    raised[f"{module}:{node.lineno}"] = _name(category)
    assert named.pop("LanewiseWarning") == ["UserWarning"]
    assert set(map(tuple, named.values())) == {("LanewiseWarning",)}, named
    assert set(raised.values()) <= set(named), raised
    assert len(named) >= 7


def test_one_filter_stops_at_each() -> None:
    public = (lw.FileWarning, boids.ResumeWarning, lbm.FlowWarning, waves.SignalLossWarning)
    assert all(issubclass(w, lw.LanewiseWarning) and issubclass(w, UserWarning) for w in public)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", category=lw.LanewiseWarning)
        with pytest.raises(lw.LanewiseWarning, match="tau"):
            lbm.Simulation(shape=(8, 8), viscosity=1e-4)
