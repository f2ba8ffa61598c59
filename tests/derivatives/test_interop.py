"""Kernels as functions of PyTorch tensors and JAX arrays, against the same formula written with those libraries."""

from __future__ import annotations

import re
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.interop.tensors import gradients, inputs_of
from lanewise.support.installation import install
from tests import corpus_kernels as corpus
from tests.corpus import CASES

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]


@lw.pairwise
def coupling(target: corpus.DBody, source: corpus.DBody, strength: lw.f64) -> tuple[lw.f64, lw.i32]:
    """A float and a count."""
    d = source.position - target.position
    return strength * source.mass * lw.exp(-lw.dot(d, d)), lw.i32(d.x > 0.0)


@lw.elementwise
def bent(x: lw.dvec3, angle: lw.f64) -> lw.f64:
    return lw.sin(angle * x.x) + x.y * x.z


def data(n: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)), rng.uniform(0.5, 1.5, n)


# ---------------------------------------------------------------- what libraries have in common


def is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray)


@pytest.mark.parametrize("twins", [True, False])
@pytest.mark.parametrize("needed", list(product([True, False], repeat=2)))
def test_each_tensor_has_the_derivative_by_itself(needed: tuple[bool, bool], twins: bool) -> None:
    """Arrays of NumPy as tensors: one mapping given twice is one array, whose pairs count for both sides."""
    (x, m), (y, k) = data(7, 1), data(5, 2)
    if twins:
        bodies = {"position": x, "mass": m}
        given = (bodies, bodies, 1.3)
        y, k, needs = x, m, list(needed)
    else:
        given = ({"position": x, "mass": m}, {"position": y, "mass": k}, 1.3)
        needs = [needed[0], False, needed[0], needed[1]]
    inputs, tensors = inputs_of(coupling, given, {}, is_array)
    assert len(tensors) == len(needs)
    weights = np.random.default_rng(3).normal(size=len(x))
    found = gradients(inputs, inputs.arguments(tensors, "cpu"), needs, [weights, None])
    d = y[None] - x[:, None]
    pull = 1.3 * np.exp(-(d**2).sum(-1)) * weights[:, None]
    of_targets, of_sources = 2 * ((pull * k)[:, :, None] * d).sum(1), -2 * ((pull * k)[:, :, None] * d).sum(0)
    wanted = [of_targets + of_sources, pull.sum(0)] if twins else [of_targets, None, of_sources, pull.sum(0)]
    for asked, derivative, expected in zip(needs, found, wanted, strict=True):
        assert (derivative is None) == (not asked or expected is None)
        if derivative is not None:
            np.testing.assert_allclose(derivative, expected, rtol=1e-9, atol=1e-12)


# ---------------------------------------------------------------- PyTorch


@pytest.mark.parametrize("device", DEVICES)
def test_torch_pairs(device: str) -> None:
    torch = pytest.importorskip("torch")
    f = lw.torch_function(coupling)
    (x, m), (y, k) = data(7, 1), data(5, 2)
    a, b = ([torch.tensor(v, device=device, requires_grad=True) for v in pair] for pair in ((x, m), (y, k)))
    strength = torch.tensor(1.3, dtype=torch.float64, device=device, requires_grad=True)
    weights = torch.tensor(np.random.default_rng(3).normal(size=7), device=device)

    def formula(p: Any, q: Any, mass: Any, s: Any) -> Any:
        d2 = ((q[None] - p[:, None]) ** 2).sum(-1)
        return (s * mass * torch.exp(-d2)).sum(1)

    values, count = f({"position": a[0], "mass": a[1]}, {"position": b[0], "mass": b[1]}, strength)
    assert values.device.type == device
    assert not count.requires_grad
    inputs = (a[0], b[0], b[1], strength)
    found = torch.autograd.grad((values * weights).sum(), inputs)
    wanted = torch.autograd.grad((formula(*inputs) * weights).sum(), inputs)
    for u, v in zip(found, wanted, strict=True):
        torch.testing.assert_close(u, v, rtol=1e-9, atol=1e-12)

    bodies = {"position": a[0], "mass": a[1]}
    values, _ = f(bodies, bodies, 1.3)
    found = torch.autograd.grad((values * weights).sum(), a)
    wanted = torch.autograd.grad((formula(a[0], a[0], a[1], 1.3) * weights).sum(), a)
    for u, v in zip(found, wanted, strict=True):
        torch.testing.assert_close(u, v, rtol=1e-9, atol=1e-12)


def test_torch_checks_itself() -> None:
    """`torch.autograd.gradcheck`, which takes differences of its own."""
    torch = pytest.importorskip("torch")
    x, m = (torch.tensor(v, requires_grad=True) for v in data(4, 1))
    assert torch.autograd.gradcheck(
        lambda x, m: lw.torch_function(coupling)({"position": x, "mass": m}, {"position": x * 2, "mass": m}, 0.7)[0],
        (x, m),
    )
    angle = torch.tensor(0.4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lw.torch_function(bent), (x, angle))


@pytest.mark.cuda
def test_torch_on_two_devices() -> None:
    torch = pytest.importorskip("torch")
    x, m = (torch.tensor(v) for v in data(4, 1))
    bodies = {"position": x.to("cuda"), "mass": m}
    with pytest.raises(lw.ArgumentError, match="different devices"):
        lw.torch_function(coupling)(bodies, bodies, 0.7)


@pytest.mark.cuda
def test_torch_on_a_stream_of_its_own() -> None:
    torch = pytest.importorskip("torch")
    f = lw.torch_function(coupling)
    with torch.cuda.stream(torch.cuda.Stream()):
        x = torch.randn(2000, 3, dtype=torch.float64, device="cuda")
        for _ in range(200):
            x = torch.sin(x) + 0.1  # work that a stream that does not wait would overtake
        x.requires_grad_(True)
        bodies = {"position": x, "mass": torch.ones(2000, dtype=torch.float64, device="cuda")}
        found, _ = f(bodies, bodies, 0.7)
        (slope,) = torch.autograd.grad(found.sum(), x)
        d2 = ((x[None] - x[:, None]) ** 2).sum(-1)
        wanted = 0.7 * torch.exp(-d2).sum(1)
        torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(slope, torch.autograd.grad(wanted.sum(), x)[0], rtol=1e-7, atol=1e-7)


def test_torch_on_a_device_without_memory() -> None:
    torch = pytest.importorskip("torch")
    bodies = {"position": torch.zeros(4, 3, device="meta"), "mass": torch.zeros(4, device="meta")}
    with pytest.raises(lw.ArgumentError, match="a tensor cannot be shared by DLPack"):
        lw.torch_function(coupling)(bodies, bodies, 0.7)


def test_torch_types_and_refusals() -> None:
    torch = pytest.importorskip("torch")
    f = lw.torch_function(corpus.gravity)
    x, m = (torch.tensor(v, requires_grad=True) for v in data(4, 1))  # float64 tensors, float32 records
    bodies = {"position": x, "mass": m}
    f(bodies, bodies, 0.1).sum().backward()
    assert x.grad.dtype == m.grad.dtype == torch.float64
    with pytest.raises(lw.ArgumentError, match="'source' has no mass, which the kernel reads"):
        f(bodies, {"position": x}, 0.1)
    with pytest.raises(lw.ArgumentError, match="is a mapping from the fields of Body to tensors"):
        f(x, bodies, 0.1)
    with pytest.raises(lw.ArgumentError, match="Body has no field 'weight'"):
        f(bodies, {"weight": m}, 0.1)
    with pytest.raises(lw.ArgumentError, match="has first derivatives only"):
        torch.autograd.grad(f(bodies, bodies, 0.1).sum(), x, create_graph=True)


def test_what_is_no_kernel_of_floats() -> None:
    pytest.importorskip("torch")
    with pytest.raises(lw.ArgumentError, match=r"takes a kernel of @lw\.pairwise or @lw\.elementwise"):
        lw.torch_function(print)
    with pytest.raises(lw.CompileError, match="integers or booleans"):
        lw.torch_function(corpus.count_ranks)
    with pytest.raises(lw.CompileError, match="changes its record in place"):
        lw.torch_function(corpus.kick_drift)


@pytest.mark.parametrize("name", ["torch", "jax"])
def test_without_the_library(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is imported when it is requested, and a sentence says what is missing."""
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(lw.ArgumentError, match=re.escape(install(name))):
        getattr(lw, f"{name}_function")(corpus.gravity)


# ---------------------------------------------------------------- JAX


@pytest.fixture
def jax() -> Any:
    module = pytest.importorskip("jax")
    module.config.update("jax_enable_x64", True)
    return module


@pytest.mark.parametrize("jit", [False, True], ids=["eager", "jit"])
def test_jax(jax: Any, jit: bool) -> None:
    np_ = jax.numpy
    f, g = lw.jax_function(coupling), lw.jax_function(bent)
    (x, m), (y, k) = (tuple(map(np_.asarray, data(n, seed))) for n, seed in ((7, 1), (5, 2)))
    weights = np_.asarray(np.random.default_rng(3).normal(size=7))

    def formula(p: Any, q: Any, mass: Any, s: Any) -> Any:
        d2 = ((q[None] - p[:, None]) ** 2).sum(-1)
        return ((s * mass * np_.exp(-d2)).sum(1) * weights).sum()

    def kernel(p: Any, q: Any, mass: Any, s: Any) -> Any:
        values, _ = f({"position": p, "mass": np_.ones(7)}, {"position": q, "mass": mass}, s)
        return (values * weights).sum()

    def one(p: Any, mass: Any) -> Any:
        bodies = {"position": p, "mass": mass}
        return (f(bodies, bodies, 1.3)[0] * weights).sum()

    wrap = jax.jit if jit else lambda h: h
    arguments = (x, y, k, np_.asarray(1.3))
    found = wrap(jax.grad(kernel, argnums=(0, 1, 2, 3)))(*arguments)
    for u, v in zip(found, jax.grad(formula, argnums=(0, 1, 2, 3))(*arguments), strict=True):
        np.testing.assert_allclose(u, v, rtol=1e-9, atol=1e-12)
    found = wrap(jax.grad(one, argnums=(0, 1)))(x, m)
    wanted = jax.grad(lambda p, mass: formula(p, p, mass, 1.3), argnums=(0, 1))(x, m)
    for u, v in zip(found, wanted, strict=True):
        np.testing.assert_allclose(u, v, rtol=1e-9, atol=1e-12)
    angle = wrap(jax.grad(lambda a: g(x, a).sum()))(np_.asarray(0.4))
    np.testing.assert_allclose(angle, float((x[:, 0] * np_.cos(0.4 * x[:, 0])).sum()), rtol=1e-10)


def test_jax_has_first_derivatives_only(jax: Any) -> None:
    g = lw.jax_function(bent)
    x = jax.numpy.ones((3, 3))
    with pytest.raises(ValueError, match="do not support JVP"):
        jax.grad(jax.grad(lambda a: g(x, a).sum()))(0.4)


def test_jax_precision(jax: Any) -> None:
    f = lw.jax_function(corpus.gravity_f64)
    jax.config.update("jax_enable_x64", False)
    try:
        fields = {n: jax.numpy.asarray(v) for n, v in CASES[0].fill(np.random.default_rng(1), 4).items()}
        with pytest.raises(lw.ArgumentError, match="jax_enable_x64"):
            f(fields, fields, 0.1)
        h = lw.jax_function(corpus.gravity)
        assert h(fields, fields, 0.1).dtype == np.float32
    finally:
        jax.config.update("jax_enable_x64", True)


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_the_document_is_true(library: str) -> None:
    """The blocks of docs/gradients.md that need a library, which run where it is installed."""
    pytest.importorskip(library)

    @lw.pairwise
    def energy(target: corpus.Body, source: corpus.Body, softening2: lw.f32) -> lw.f32:
        d = source.position - target.position
        return -0.5 * target.mass * source.mass * lw.rsqrt(lw.dot(d, d) + softening2)

    text = (Path(__file__).parents[2] / "docs" / "gradients.md").read_text(encoding="utf-8")
    (block,) = (b for b in re.findall(r"```py\n(.*?)```", text, re.DOTALL) if f"import {library}" in b)
    printed: list[Any] = []
    exec(block, {"lw": lw, "energy": energy, "print": printed.append})
    assert tuple(printed[0]) == (100, 3)
