"""Scenes of fields on a box of sites: slices, and volumes that are averaged down."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.live.frame import Frame, FrameHeader, encode
from lanewise.live.protocol import FLAGS
from lanewise.live.scales import SeenRange, ValueSpan, scaled
from lanewise.live.scenes import Asked, FrameOrLater, LaterFrames, tell
from lanewise.runtime.aside import Aside, Snapshot
from lanewise.runtime.memory import array_module, on, to_host
from lanewise.support.checks import shown
from lanewise.support.errors import InputError

VOLUME_BYTES = 4_000_000
STEPS = 254  # of values, which are 1 to 255: 0 is solid
MOST_SCALE = 1e38  # a number of float32

Read = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class DerivedField:
    """A field that is made of arrays that are not written to once they are there.

    read: these, of the state as it is. make: the field of them, at any time.
    """

    read: Callable[[], tuple[Any, ...]]
    make: Callable[..., Any]


class FieldScene:
    """Fields of shape (ny, nx) or (nz, ny, nx) on a device, read when a frame is due.

    solid: sites that hold nothing, of the same shape on the host; None: no such sites.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        device: str,
        fields: Mapping[str, Read | DerivedField],
        about: Mapping[str, Any],
        moment: Callable[[], tuple[int, float]],
        solid: NDArray[np.bool_] | None = None,
    ) -> None:
        self._shape, self._deep = tuple(shape), (1,) * (3 - len(shape)) + tuple(shape)
        self._device, self._fields, self._moment = device, fields, moment
        self._solid = None if solid is None else solid.reshape(self._deep)
        self._factor = _factor(self._deep)
        self._small = (
            None if self._solid is None else _averaged(np, self._solid, self._factor) > 0.5
        )
        flat = len(shape) == 2
        far = [float(n) for n in self._deep[::-1]]
        if flat:  # else its frame is seen nearer than its picture
            far[2] = 0.0
        box = [[0, 0, 0], far]
        self._about = {
            "kinds": ["slice"] if flat else ["slice", "volume"], "fields": list(fields),
            "flat": flat, "domain": box, **about,
        }  # fmt: skip
        self._aside = Aside(device, "a view", "show a copy of a part of it")
        self._required = 0  # bytes of a field, for whose frames there is memory
        self._flat, self._range = flat, SeenRange()
        self._unfit = 0  # values of the field that is shown that are not finite

    @property
    def about(self) -> Mapping[str, Any]:
        return self._about

    @property
    def moment(self) -> tuple[int, float]:
        return self._moment()

    def picked(self, place: int, order: int | None = None) -> dict[str, Any]:
        """Sites are no elements."""
        return {}

    def frames(self, asked: Asked) -> list[FrameOrLater]:
        """A slice, a volume, or both."""
        source, moment = self._fields[asked.field], self.moment
        with on(self._device):
            if isinstance(source, DerivedField):
                arrays = source.read()
                behind, field = self._aside.kept(), lambda: source.make(*arrays)
            else:
                behind, field = self._copied(self._checked(asked.field, source()))

        def later() -> list[Frame]:
            with self._aside.working(behind):
                return self._made(field().reshape(self._deep), moment, asked)

        return [LaterFrames(later, partial(self._aside.drop, behind))]

    def _checked(self, name: str, field: Any) -> Any:
        """A field as its function gives it."""
        if not is_array_of_reals(field) or field.shape != self._shape:
            raise InputError(
                f"the field {name} is {shown(field)}; wanted an array of real numbers of NumPy or "
                f"CuPy with shape {self._shape}"
            )
        return field

    def _copied(self, field: Any) -> tuple[Snapshot, Read]:
        """A copy of a field that may change."""
        field = field.reshape(self._deep)
        if self._required < field.nbytes:
            self._aside.require(field.nbytes, field.nbytes // field.itemsize)
            self._required = field.nbytes

        def copy(there: Any) -> None:
            there.view(field.dtype).reshape(self._deep)[...] = field

        seen, nbytes, dtype = self._aside.copied(field.nbytes, copy), field.nbytes, field.dtype
        return seen, lambda: seen.memory[:nbytes].view(dtype)

    def _made(self, field: Any, moment: tuple[int, float], asked: Asked) -> list[Frame]:
        span = self._span(field, asked)
        made: list[Frame] = []
        if asked.wants("slice"):
            made.append(self._slice(field, span, asked, moment))
        if asked.wants("volume") and not self._flat:
            made.append(self._volume(field, span, moment))
        return [*made, *tell({**span.told, "not finite": self._unfit})]

    def _span(self, field: Any, asked: Asked) -> ValueSpan:
        """Of the values of all sites; where their order or sign matters, without those of walls."""
        module, least, most = array_module(self._device), float(field.min()), float(field.max())
        fine = math.isfinite(least) and math.isfinite(most)
        some = None if fine else module.isfinite(field)
        self._unfit = 0 if some is None else int(some.size - module.count_nonzero(some))
        if self._solid is not None and asked.scale != "linear":
            fluid = module.asarray(~self._solid)
            some = fluid if some is None else some & fluid
        values = field if some is None else field[some]
        if some is not None:
            least, most = math.inf, -math.inf
            if values.size:
                least, most = float(values.min()), float(values.max())
        return self._range.span(module, values, least, most, asked)

    def _slice(self, field: Any, span: ValueSpan, asked: Asked, moment: tuple[int, float]) -> Frame:
        axis = 2 if self._flat else asked.axis  # of x, y, z
        count = self._deep[2 - axis]
        k = min(count - 1, int(asked.place * count))
        cut: list[Any] = [slice(None)] * 3
        cut[2 - axis] = k
        solid = None if self._solid is None else self._solid[tuple(cut)]
        values = _bytes(field[tuple(cut)], span, solid, self._device, fine=not self._unfit)
        origin, extent = [0.0] * 3, [float(n) for n in self._deep[::-1]]
        origin[axis], extent[axis] = 0.0 if self._flat else k + 0.5, 0.0
        height, width = values.shape
        return self._framed("slice", values, span, origin, extent, moment, first=width,
                            total=height, count=width * height)  # fmt: skip

    def _volume(self, field: Any, span: ValueSpan, moment: tuple[int, float]) -> Frame:
        small = _averaged(array_module(self._device), field, self._factor)
        values = _bytes(small, span, self._small, self._device, fine=not self._unfit)
        nz, ny, nx = values.shape
        extent = [float(n * self._factor) for n in (nx, ny, nz)]
        return self._framed("volume", values, span, [0.0] * 3, extent, moment, first=nx,
                            total=ny, count=nz)  # fmt: skip

    def _framed(
        self, kind: str, values: NDArray[np.uint8], span: ValueSpan, origin: list[float],
        extent: list[float], moment: tuple[int, float], **counts: int,
    ) -> Frame:  # fmt: skip
        step, time = moment
        header = FrameHeader(
            kind=kind, flags=FLAGS["walls"] | span.flags, components=1, step=step, time=time,
            low=span.low, high=span.high, scale=span.number,
            origin=(origin[0], origin[1], origin[2]), extent=(extent[0], extent[1], extent[2]),
            **counts,
        )  # fmt: skip
        return encode(header, np.ascontiguousarray(values).reshape(-1).data)


def is_array_of_reals(what: Any) -> bool:
    """Whether it is an array of NumPy or CuPy that a view has values of."""
    kind = getattr(getattr(what, "dtype", None), "kind", "")
    known = type(what).__module__.partition(".")[0] in ("numpy", "cupy")
    return known and bool(kind) and kind in "fiub"


def _factor(deep: tuple[int, ...]) -> int:
    """So many sites of an axis become one of the volume."""
    factor = 1
    while math.prod(max(1, n // factor) for n in deep) > VOLUME_BYTES:
        factor += 1
    return min(factor, *deep) if min(deep) > 1 else 1


def _averaged(module: Any, field: Any, factor: int) -> Any:
    """Means over cubes of `factor` sites; what is left over at the far ends is left out."""
    if factor == 1:
        return field
    nz, ny, nx = (n // factor for n in field.shape)
    cut = field[: nz * factor, : ny * factor, : nx * factor]
    return module.mean(cut.reshape(nz, factor, ny, factor, nx, factor), axis=(1, 3, 5))


def _bytes(
    values: Any, span: ValueSpan, solid: NDArray[np.bool_] | None, device: str, *, fine: bool
) -> NDArray[np.uint8]:
    """1 to 255 for the ends of a span, 0 for solid sites and what is not finite. fine: all are
    finite.
    """
    module, (low, high) = array_module(device), span.ends
    values = scaled(module, values, span)
    scale = STEPS / (high - low) if high > low else 0.0
    if scale > MOST_SCALE:
        values = values.astype(np.float64)
    finite = True if fine else module.isfinite(values)
    # in place: fresh memory for each operation takes longer than they do
    some = values if fine else module.where(finite, values, low)
    counted = module.subtract(some, low, dtype=np.result_type(values.dtype, np.float32))
    counted *= scale
    counted += 1.5
    counted = module.clip(counted, 1, 255, out=counted)
    if not fine:
        counted *= finite
    made: NDArray[np.uint8] = to_host(counted.astype(np.uint8))
    return made if solid is None else np.where(solid, np.uint8(0), made)
