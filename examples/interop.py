"""In and out without copies: fields are NumPy arrays, or CuPy arrays on a GPU, and lanewise takes
any array with DLPack.

python examples/interop.py [device]
"""

import sys

import numpy as np

import lanewise as lw

DEVICE = sys.argv[1] if len(sys.argv) > 1 else "cpu"


@lw.record
class Point:
    """A weighted point."""

    position: lw.vec3
    weight: lw.f64


@lw.elementwise
def scale(p: Point, factor: lw.f32):
    p.position *= factor


class Foreign:
    """Stands for a tensor of another library: all that lanewise sees of it is DLPack."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __dlpack__(self, **options: object) -> object:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


def main() -> None:
    numbers = np.arange(12, dtype=np.float32).reshape(4, 3)
    points = Point.array(position=Foreign(numbers), weight=np.ones(4), device=DEVICE)
    print(points)

    position = points.position  # a view of the one allocation, strided as the layout wants it
    print("view: shape", position.shape, "strides", position.strides)
    position[0] = 100  # writes go through
    scale(points, 0.5)  # and so do the kernels' writes
    print("after writing and scaling:", points.position[0], points.position[1])

    if DEVICE == "cpu":
        # any library with from_dlpack takes it, torch.from_dlpack for one
        out = np.from_dlpack(points.position)
        out[1, 0] = -1
        print("written through DLPack:", points[1])
    print("copies on the host:", {name: array.shape for name, array in points.numpy().items()})


if __name__ == "__main__":
    main()
