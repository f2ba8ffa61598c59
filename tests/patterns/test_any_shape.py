"""Arrays of values of any shape, which elementwise kernels without records take and give: against NumPy, and every way of a call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.interop import tensors
from lanewise.interop.jax import _axes as axes_for_jax  # pyright: ignore[reportPrivateUsage]
from lanewise.launch.repeatable import Repeatable
from lanewise.runtime.memory import array_module, to_host
from lanewise.support.errors import ArgumentError
from tests import corpus_kernels as corpus

Body: Any = corpus.Body
DEVICES = ["python", "cpu", pytest.param("cuda", marks=pytest.mark.cuda)]
SHAPES = [(4, 6), (2, 3, 4), (24,), (24, 1), (1, 24), (1,), (1, 1, 1), (0, 5), (5, 0), (3, 0, 2)]


@lw.elementwise
def axpy(a: lw.f32, x: lw.f32, y: lw.f32) -> lw.f32:
    return a * x + y


@lw.elementwise
def tinted(grey: lw.f32, colour: lw.vec3, weight: lw.f64, keep: lw.bool) -> tuple[lw.vec3, lw.f64]:
    """Scalars and vectors, two types of results."""
    return (grey * colour if keep else colour), weight * colour.y - grey


@lw.elementwise
def looked_up(place: lw.i32, table: lw.Array1[lw.f32]) -> lw.f32:
    return table[place]


@lw.elementwise
def numbered(x: lw.f32) -> lw.i32:
    return lw.index_of(x)


@lw.elementwise
def deposit(place: lw.i32, value: lw.f32, sums: lw.Array1[lw.f32]) -> lw.f32:
    lw.scatter_add(sums, place, value)
    return 2.0 * value


@lw.elementwise
def push(body: corpus.Body, force: lw.vec3, dt: lw.f32):
    body.velocity += force * dt


@lw.elementwise
def wave(x: lw.f64, v: lw.dvec3, k: lw.f64) -> lw.f64:
    return lw.sin(k * x) + lw.dot(v, v) * x


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    with lw.device(request.param):
        yield str(request.param)


def there(array: Any, device: str) -> Any:
    """The array on the device, as the library of the device has it."""
    return array_module("cuda").asarray(array) if device == "cuda" else array


def image(shape: tuple[int, ...], seed: int = 0, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(seed).random(shape).astype(dtype)


def equal(found: Any, wanted: Any) -> None:
    host = to_host(found)
    assert host.shape == wanted.shape
    np.testing.assert_allclose(host, wanted, rtol=1e-5, atol=1e-6)


# ---------------------------------------------------------------- against NumPy


@pytest.mark.parametrize("device", DEVICES)
@settings(deadline=None)
@given(
    shape=st.lists(st.integers(0, 5), min_size=1, max_size=4).map(tuple),
    order=st.sampled_from(["as it is", "columns", "every second", "backwards", "read-only"]),
    in_place=st.booleans(),
    seed=st.integers(0, 3),
)
def test_results_are_those_of_numpy(device: str, shape: tuple[int, ...], order: str, in_place: bool, seed: int) -> None:
    """Every shape, in every order in memory, new results and those of the caller, the first time and again."""
    grey, colour = ORDERS[order](image(shape, seed)), ORDERS[order](image((*shape, 3), seed + 1))
    weight, keep = ORDERS[order](image(shape, seed + 2, np.float64)), image(shape, seed + 3) < 0.5
    wanted = np.where(keep[..., None], grey[..., None] * colour, colour), weight * colour[..., 1] - grey
    with lw.device(device):
        arguments = [there(a, device) for a in (grey, colour, weight, keep)]
        for _ in range(3):
            out = tuple(there(np.full(w.shape, np.nan, w.dtype), device) for w in wanted) if in_place else None
            found = tinted(*arguments, out=out)
            if out is not None:
                assert all(f is o for f, o in zip(found, out, strict=True))
            for f, w in zip(found, wanted, strict=True):
                equal(f, w)
        count = int(np.prod(shape))
        sums, (low, _), (_, high) = (
            tinted.sum(*arguments),
            *((tinted.min(*arguments), tinted.max(*arguments)) if count else ((0, 0),) * 2),
        )
        np.testing.assert_allclose(sums[0], wanted[0].reshape(count, 3).sum(axis=0), rtol=1e-5, atol=1e-6)
        assert sums[1] == pytest.approx(wanted[1].sum(), rel=1e-5, abs=1e-6)
        if count:
            np.testing.assert_allclose(low, wanted[0].reshape(count, 3).min(axis=0), rtol=1e-6)
            assert high == pytest.approx(wanted[1].max(), rel=1e-6)


def _read_only(array: Any) -> Any:
    array.flags.writeable = False
    return array


ORDERS: dict[str, Callable[[Any], Any]] = {
    "as it is": lambda a: a, "columns": np.asfortranarray, "every second": lambda a: np.repeat(a, 2, axis=0)[::2],
    "backwards": lambda a: a[..., ::-1], "read-only": _read_only,
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_result_has_the_shape_of_the_arrays(shape: tuple[int, ...], device: str) -> None:
    x, y = image(shape), image(shape, 1)
    for a in (2.0, 3):
        equal(axpy(a, there(x, device), there(y, device)), a * x + y)
        equal(axpy(a, 0.5, there(y, device)), np.float32(a * 0.5) + y)
    equal(axpy(2.0, x.tolist() if x.size else x, y), 2 * x + y)


def test_in_place(device: str) -> None:
    """The result in the memory of an argument, or of a part of a larger array."""
    x, y = there(image((5, 7)), device), there(image((5, 7), 1), device)
    wanted = to_host(2 * x + y)
    for _ in range(2):
        given = y.copy()
        assert axpy(2.0, x, given, out=given) is given
        equal(given, wanted)
    several = there(np.zeros((3, 5, 7), np.float32), device)
    for n in (1, 1, 2):
        axpy(2.0, x, y, out=several[n])
    equal(several, np.stack([0 * wanted, wanted, wanted]))


def test_out_of_another_shape_is_refused(device: str) -> None:
    """Also where it has as many elements, and where it is no C-ordered memory, which would have to be copied."""
    x = there(image((4, 6)), device)
    for _ in range(2):  # the first call, and one like it
        for out, found in (
            (there(np.zeros(24, "f4"), device), "(24,)"), (there(np.zeros((6, 4), "f4"), device), "(6, 4)"),
            (there(np.zeros((6, 4), "f4"), device).T, "(4, 6), which is not contiguous"),
            (there(np.zeros((4, 12), "f4"), device)[:, ::2], "(4, 6), which is not contiguous"),
            (there(np.zeros((4, 6, 1), "f4"), device), "(4, 6, 1)"),
        ):  # fmt: skip
            with pytest.raises(ArgumentError) as error:
                axpy(2.0, x, x, out=out)
            assert str(error.value) == (
                f"axpy: out must be a contiguous array of float32 with shape (4, 6) on {device!r}, found an array of float32 with shape {found}"
            )
        axpy(2.0, x, x)


@lw.elementwise
def both(x: lw.f32) -> tuple[lw.f32, lw.f32]:
    return x + 1, x + 2


def test_out_in_memory_of_other_elements_is_refused(device: str) -> None:
    """Their values would be overwritten before they are read."""
    whole, ones = there(image((9, 6)), device), there(np.ones((8, 6), np.float32), device)
    long = whole.reshape(-1)
    for _ in range(2):
        for call in (
            lambda: axpy(2.0, whole[:-1], ones, out=whole[1:]), lambda: axpy.bind(2.0, whole[1:], ones, out=whole[:-1]),
            lambda: axpy(2.0, long[:-1], 1.0, out=long[1:]),
        ):  # fmt: skip
            with pytest.raises(ArgumentError) as error:
                call()
            assert str(error.value) == (
                "axpy: out shares memory with 'x', and an element's result is not where its value is: it would overwrite values of other "
                "elements; give it its own memory"
            )
        with pytest.raises(ArgumentError, match=r"^both: two arrays of out share memory; give each its own memory$"):
            both(ones, out=(whole[:-1], whole[1:]))
        equal(axpy(2.0, whole[:-1], ones), to_host(2 * whole[:-1] + 1))
        both(ones)
    equal(both(ones, out=(whole[:-1].copy(), ones))[1], np.full((8, 6), 3.0))
    square = there(image((6, 6)), device)
    wanted = to_host(2 * square.T + square)
    equal(axpy(2.0, square.T, square, out=square), wanted)  # the transpose is copied before


def test_shapes_that_differ_are_refused(device: str) -> None:
    x, colour = image((4, 6)), image((4, 6, 3))
    last = "; nothing is broadcast: bring all of them to one shape"
    for call, text in (
        (lambda: axpy(1.0, x, image((6, 4))), "axpy: the arrays differ in shape: x has (4, 6), y has (6, 4)" + last),
        (lambda: axpy(1.0, x, image((24,))), "axpy: the arrays differ in shape: x has (4, 6), y has (24,)" + last),
        (lambda: axpy(1.0, x, image((1, 6))), "axpy: the arrays differ in shape: x has (4, 6), y has (1, 6)" + last),
        (lambda: axpy(x, x, image((4,))), "axpy: the arrays differ in shape: a has (4, 6), x has (4, 6), y has (4,)" + last),
        (lambda: axpy(1.0, image((0, 5)), image((5, 0))), "axpy: the arrays differ in shape: x has (0, 5), y has (5, 0)" + last),
        (lambda: axpy(1.0, image((3,)), image((4,))), "axpy: the arrays differ in length: x has 3, y has 4"),
        (
            lambda: tinted(x, image((4, 3)), 1.0, True),
            "tinted: the arrays differ in shape: grey has (4, 6), colour has (4, 3), which is (4,) of vec3" + last,
        ),
        (lambda: tinted(x, colour[..., :2], 1.0, True), "tinted: 'colour' is a vec3: wanted shape (..., 3), found (4, 6, 2)"),
        (lambda: tinted(x, x, 1.0, True), "tinted: 'colour' is a vec3: wanted shape (n, 3), found (4, 6)"),
        (lambda: axpy.sum(1.0, x, image((6, 4))), "axpy: the arrays differ in shape: x has (4, 6), y has (6, 4)" + last),
    ):  # fmt: skip
        with pytest.raises(ArgumentError) as error:
            call()
        assert str(error.value) == text


def test_beside_records_arrays_have_one_axis(device: str) -> None:
    bodies = Body.zeros(6, device=device)
    for force, dt, text in (
        (image((2, 3, 3)), 1.0, "push: 'force' has one vec3 for each record, and records have one axis: found an array of float32 with shape "
         "(2, 3, 3); reshape it to (6, 3)"),
        ((1, 2, 3), image((2, 3)), "push: 'dt' has one f32 for each record, and records have one axis: found an array of float32 with shape "
         "(2, 3); reshape it to (6,)"),
    ):  # fmt: skip
        with pytest.raises(ArgumentError) as error:
            push(bodies, force, dt)
        assert str(error.value) == text
    push(bodies, image((2, 3, 3)).reshape(6, 3), 1.0)
    equal(bodies.velocity, image((6, 3)))


# ---------------------------------------------------------------- calls like an earlier one


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_a_call_with_another_shape_of_that_size_gives_that_shape(device: str) -> None:
    kernel = lw.elementwise(tinted.python)
    with lw.device(device):
        for shape in (*SHAPES, *reversed(SHAPES)):
            grey, colour = there(image(shape), device), there(image((*shape, 3), 1), device)
            for _ in range(2):
                first, second = kernel(grey, colour, 2.0, True)
                equal(first, image(shape)[..., None] * image((*shape, 3), 1))
                assert second.shape == shape
        with pytest.raises(ArgumentError, match="differ in shape"):
            kernel(there(image((4, 6)), device), there(image((2, 12, 3)), device), 2.0, True)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_calls_are_known_again(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = lw.elementwise(axpy.python)
    x, y = there(image((4, 6)), device), there(image((4, 6), 1), device)
    with lw.device(device):
        kernel(2.0, x, y)
        kernel.sum(2.0, x, y)
        monkeypatch.setattr(Repeatable, "of", _never)
        other = x.reshape(6, 4), y.reshape(6, 4)
        more = there(image((5, 7)), device), there(image((5, 7), 1), device)
        for a, b in ((x, y), (y, x), (x + 1, y), other, more, other):
            equal(kernel(3.0, a, b), to_host(3 * a + b))
            assert kernel.sum(3.0, a, b) == pytest.approx(float((3 * a + b).sum()), rel=1e-6)
        for a, b in ((x.reshape(-1), y.reshape(-1)), (x[:, :3], y[:, :3]), (x.T, y.T)):
            with pytest.raises(AssertionError, match="not known again"):
                kernel(3.0, a, b)
        with pytest.raises(ArgumentError, match="the arrays differ in shape"):
            kernel(3.0, x, other[1])


def _never(*arguments: Any, **named: Any) -> None:
    raise AssertionError("not known again")


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_contiguous_arrays_are_not_copied(device: str) -> None:
    """A bound call sees what is written to them."""
    x, y = there(image((4, 6)), device), there(image((4, 6), 1), device)
    with lw.device(device):
        call = axpy.bind(2.0, x, y)
        x[...] = 7.0
        equal(call(), to_host(2 * x + y))


# ---------------------------------------------------------------- indices, tables and scatters


def test_indices_count_the_elements_row_after_row(device: str) -> None:
    for shape in SHAPES:
        found = to_host(numbered(there(image(shape), device)))
        assert found.tolist() == np.arange(int(np.prod(shape))).reshape(shape).tolist()


def test_checks_name_the_element_by_its_whole_index(device: str) -> None:
    table = there(np.arange(5, dtype=np.float32), device)
    places = np.array([[[0, 1, 2], [3, 4, 0]], [[1, 2, 3], [1, 9, 7]]], np.int32)
    equal(looked_up(there(places % 5, device), table, checks=True), (places % 5).astype("f4"))
    for kernel, more in ((looked_up, ()), (looked_up.sum, ())):
        with pytest.raises(lw.VerificationError) as error:
            kernel(there(places, device), *more, table, checks=True)
        assert "found: the index is 9 in the element (1, 1, 1), and 'table' has the shape (5,)" in str(error.value)
    with pytest.raises(lw.VerificationError, match=r"the index is 9 in the element 10, and"):
        looked_up(there(places.reshape(-1), device), table, checks=True)


def test_scatters_of_images(device: str) -> None:
    places, values = np.random.default_rng(0).integers(0, 7, (9, 11)).astype("i4"), image((9, 11))
    wanted = np.bincount(places.ravel(), values.ravel(), 7).astype("f4")
    for _ in range(2):
        sums = there(np.zeros(7, np.float32), device)
        equal(deposit(there(places, device), there(values, device), sums), 2 * values)
        equal(sums, wanted)
    with pytest.raises(lw.VerificationError, match=r"in the element \(0, 1\)"):
        deposit(np.array([[1, 7]], "i4"), 1.0, there(np.zeros(7, np.float32), device), checks=True)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_scatters_of_many_go_over_buckets(device: str) -> None:
    @lw.elementwise
    def add(place: lw.i32, value: lw.f32, sums: lw.Array1[lw.f32]):
        lw.scatter_add(sums, place, value)

    shape = (300, 400)
    places, values = np.random.default_rng(0).integers(0, 50_000, shape).astype("i4"), image(shape)
    sums = there(np.zeros(50_000, np.float32), device)
    with lw.device(device):
        add(there(places, device), there(values, device), sums)
    np.testing.assert_allclose(to_host(sums), np.bincount(places.ravel(), values.ravel(), 50_000), rtol=1e-5)


# ---------------------------------------------------------------- bound, compiled, tuned, explained


def test_bound_and_compiled_calls(device: str) -> None:
    x, y = there(image((4, 6)), device), there(image((4, 6), 1), device)
    wanted = to_host(2 * x + y)
    call = axpy.bind(2.0, x, y)
    assert call.results[0].shape == (4, 6)
    equal(call(), wanted)
    out = there(np.zeros((4, 6), np.float32), device)
    assert axpy.bind(2.0, x, y, out=out)() is out
    equal(out, wanted)
    compiled = axpy.compile(2.0, x, y)
    equal(compiled(2.0, x, y), wanted)
    equal(compiled(2.0, x.reshape(2, 12), y.reshape(2, 12)), wanted.reshape(2, 12))
    equal(axpy(2.0, x, y, plan=lw.Plan(fma=False)), wanted)
    with pytest.raises(ArgumentError, match="differ in shape"):
        axpy.bind(2.0, x, y.reshape(-1))


def test_one_kernel_serves_all_shapes(device: str) -> None:
    kernel = lw.elementwise(axpy.python)
    for shape in ((24,), (4, 6), (2, 3, 4)):
        kernel(2.0, there(image(shape), device), there(image(shape), device))
    assert len(kernel._calls.compiled) == 1  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_tuned_and_explained(device: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANEWISE_CACHE_DIR", str(tmp_path))
    kernel = lw.elementwise(axpy.python)
    x, y = there(image((40, 60)), device), there(image((40, 60), 1), device)
    with lw.device(device):
        tuning = kernel.tune(2.0, x, y, seconds=1)
        equal(kernel(2.0, x, y), to_host(2 * x + y))
        assert kernel.compile(2.0, x, y).plan == tuning.plan
        explanation = kernel.compile(2.0, x, y).explain(2.0, x, y, measure=True, measure_resources=False)
        assert "2,400 elements" in str(explanation)


# ---------------------------------------------------------------- gradients and other libraries


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_gradients(device: str) -> None:
    x, v, weights = image((3, 4), 0, "f8"), image((3, 4, 3), 1, "f8"), image((3, 4), 2, "f8")
    squares = (v * v).sum(axis=-1)
    by_x, by_v = (0.7 * np.cos(0.7 * x) + squares), 2 * v * x[..., None]
    by_k = x * np.cos(0.7 * x)
    slope = wave.gradient(("x", "v", "k"))
    given = [there(x, device), there(v, device), 0.7]
    with lw.device(device):
        for cotangent, w in ((None, np.ones((3, 4))), (there(weights, device), weights), (2.0, np.full((3, 4), 2.0))):
            for _ in range(2):
                of_x, of_v, of_k = slope(*given) if cotangent is None else slope(*given, cotangent=cotangent)
                equal(of_x, w * by_x)
                equal(of_v, w[..., None] * by_v)
                assert of_k == pytest.approx(float((w * by_k).sum()))
        assert wave.gradient("k")(0.5, (1.0, 2.0, 3.0), given[0]).shape == (3, 4)
        assert wave.gradient("x").compile(*given).reference.name == "wave_gradient"
        with pytest.raises(
            ArgumentError,
            match=r"x has \(3, 4\), v has \(3, 4, 3\), which is \(3, 4\) of dvec3, cotangent has \(12,\);",
        ):
            slope(*given, cotangent=there(weights.reshape(-1), device))


def test_tensors_of_other_libraries() -> None:
    """What `lw.torch_function` and `lw.jax_function` do around such a call, with arrays of NumPy as the tensors."""
    x, v, weights = image((3, 4), 0, "f8"), image((3, 4, 3), 1, "f8"), image((3, 4), 2, "f8")
    inputs, found = tensors.inputs_of(wave, (x, v, 0.7), {}, lambda a: isinstance(a, np.ndarray))
    assert axes_for_jax(inputs, tuple(found)) == (3, 4)
    arguments = inputs.arguments(found, "cpu")
    assert wave(**arguments).shape == (3, 4)
    by_x, by_v = tensors.gradients(inputs, arguments, [True, True], [weights])
    equal(by_x, weights * (0.7 * np.cos(0.7 * x) + (v * v).sum(axis=-1)))
    equal(by_v, 2 * v * (weights * x)[..., None])
    inputs, found = tensors.inputs_of(
        wave, (x.tolist(), (1.0, 2.0, 3.0), np.array(0.7)), {}, lambda a: isinstance(a, np.ndarray)
    )
    assert axes_for_jax(inputs, tuple(found)) == (3, 4)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_torch(device: str) -> None:
    torch = pytest.importorskip("torch")
    f = lw.torch_function(wave)
    x, v = (torch.tensor(image(s, 0, "f8"), device=device, requires_grad=True) for s in ((3, 4), (3, 4, 3)))
    weights = torch.tensor(image((4, 3), 2, "f8"), device=device).T  # columns
    wanted = torch.sin(0.7 * x) + (v * v).sum(-1) * x
    torch.testing.assert_close(f(x, v, 0.7), wanted)
    for p, q in zip(
        torch.autograd.grad((f(x, v, 0.7) * weights).sum(), (x, v)),
        torch.autograd.grad((wanted * weights).sum(), (x, v)),
        strict=True,
    ):
        torch.testing.assert_close(p, q)


@pytest.mark.parametrize("jit", [False, True], ids=["eager", "jit"])
def test_jax(jit: bool) -> None:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    np_, f = jax.numpy, lw.jax_function(wave)
    wrap: Callable[[Any], Any] = jax.jit if jit else lambda g: g

    def own(x: Any, v: Any) -> Any:
        return (f(x, v, 0.7) * weights).sum()

    def formula(x: Any, v: Any) -> Any:
        return ((np_.sin(0.7 * x) + (v * v).sum(-1) * x) * weights).sum()

    x, v, weights = (np_.asarray(image(s, n, "f8")) for n, s in enumerate(((3, 4), (3, 4, 3), (3, 4))))
    found, wanted = wrap(jax.grad(own, argnums=(0, 1)))(x, v), jax.grad(formula, argnums=(0, 1))(x, v)
    for p, q in zip(found, wanted, strict=True):
        np.testing.assert_allclose(p, q, rtol=1e-9)


# ---------------------------------------------------------------- totals of stored values


@pytest.mark.parametrize("total", [lw.sum, lw.min, lw.max])
def test_totals_of_stored_arrays_have_no_more_than_vectors(total: Callable[[Any], Any]) -> None:
    with pytest.raises(ArgumentError) as error:
        total(image((2, 3, 4)))
    assert str(error.value) == (
        "a reduction takes numbers of shape (n,) or vectors of shape (n, components), found the shape (2, 3, 4): reshape it; "
        "kernel.sum, .min and .max reduce the results of arrays of any shape"
    )
    assert np.shape(total(image((2, 3, 4)).reshape(-1))) == ()
    assert total(image((2, 3))).shape == (3,)
