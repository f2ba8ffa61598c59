"""Fields in JAX, PyTorch and CuPy, and their arrays in lanewise: what shares memory, and what says that it does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.runtime.memory import address
from tests.corpus_kernels import Body

LAYOUTS = [lw.SoA(), lw.AoS(), lw.AoAS(), lw.SoAoAS(), lw.AoSoA(4)]
DEVICES = [pytest.param("cuda", marks=pytest.mark.cuda), "cpu"]


class Spot(lw.Record):
    at: lw.vec2


def bodies(layout: lw.Layout, device: str) -> Any:
    return Body.array(position=np.arange(15.0).reshape(5, 3), mass=np.arange(5.0), layout=layout, device=device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_torch_sees_fields_in_every_layout_but_blocks(layout: lw.Layout, device: str) -> None:
    torch = pytest.importorskip("torch")
    array = bodies(layout, device)
    for name in ("position", "mass"):
        if isinstance(layout, lw.AoSoA):
            with pytest.raises(BufferError, match=rf"not shared by DLPack.*: \.{name} is a copy"):
                torch.from_dlpack(getattr(array, name))
            tensor = torch.from_dlpack(array.contiguous(name))
        else:
            tensor = torch.from_dlpack(getattr(array, name))
            tensor += 1
        assert tensor.tolist() == getattr(array, name).tolist()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_jax_sees_fields_without_strides(layout: lw.Layout, device: str) -> None:
    jax = pytest.importorskip("jax")
    array = bodies(layout, device)
    for name in ("position", "mass"):
        field = getattr(array, name)
        if field.flags.c_contiguous and not isinstance(layout, lw.AoSoA):
            shared = jax.dlpack.from_dlpack(field)
            assert shared.unsafe_buffer_pointer() == address(field)
        elif not isinstance(layout, lw.AoSoA):
            with pytest.raises(Exception, match="striding"):
                jax.dlpack.from_dlpack(field)
        assert jax.dlpack.from_dlpack(array.contiguous(name)).tolist() == field.tolist()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("library", ["torch", "jax"])
def test_their_arrays_as_fields(library: str, device: str) -> None:
    values = np.arange(15, dtype="f4").reshape(5, 3)
    if library == "torch":
        torch = pytest.importorskip("torch")
        given: Any = torch.tensor(values, device=device)
        bare = torch.tensor(values, device=device, requires_grad=True)
        with pytest.raises(lw.ArgumentError, match=r"Body.velocity: Tensor cannot be read as an array"):
            Body.array(velocity=bare, device=device)
    else:
        jax = pytest.importorskip("jax")
        devices = jax.devices("gpu" if device == "cuda" else "cpu")
        given = jax.device_put(values, devices[0])
    array = Body.array(position=given, device=device)
    array.velocity = given
    assert array.velocity.tolist() == array.position.tolist() == values.tolist()
    assert Body.array(position=given, device="cpu").position.tolist() == values.tolist()


@pytest.mark.parametrize("device", DEVICES)
def test_an_array_over_a_tensor(device: str) -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.zeros((6, 2), device=device)
    spots = Spot.array(at=tensor, device=device, copy=False)
    spots.at = (3, 4)
    assert tensor.tolist() == [[3, 4]] * 6
    tensor[2, 1] = 9
    assert spots[2].at.y == 9
    with pytest.raises(lw.ArgumentError, match="'at' is a vec2: wanted"):
        Spot.array(at=tensor.double(), device=device, copy=False)


def test_jax_arrays_cannot_be_written_to() -> None:
    jax = pytest.importorskip("jax")
    with pytest.raises(lw.ArgumentError, match="the array is read-only"):
        Spot.array(at=jax.numpy.zeros((6, 2)), copy=False)


@pytest.mark.cuda
def test_files_and_structured_arrays_of_a_gpu(tmp_path: Any) -> None:
    array = bodies(lw.AoSoA(4), "cuda")
    lw.save(tmp_path / "a.h5", array)
    back = lw.load(tmp_path / "a.h5")
    assert back.position.tolist() == array.position.tolist()
    assert array.to_structured()["mass"].tolist() == [0, 1, 2, 3, 4]
