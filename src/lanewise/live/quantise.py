"""Kernels that make rows of frames where the data are: positions, values and headings as u16, two
of which are a u32 of a row.

Rows lie as the elements do; whoever sends them brings them into another order, whole.
"""

from lanewise.language.array_types import Array1, Array2, index
from lanewise.language.values import clamp, f32, u32, vec3
from lanewise.patterns.threadwise.kernel import threadwise

MOST = 65535.0


@threadwise
def quantise_points(
    i: index,
    x: Array1[f32],
    y: Array1[f32],
    z: Array1[f32],
    value: Array1[f32],
    rows: Array2[u32],
    origin: vec3,
    per_length: vec3,
    low: f32,
    per_value: f32,
):
    """The first columns of row i: x, y, z in the box, and the value in the range.

    per_length, per_value: 65535 over the edges of the box and over the range. What lies outside is
    brought to the faces.
    """
    px = u32(clamp((x[i] - origin.x) * per_length.x + 0.5, 0.0, 65535.0))
    py = u32(clamp((y[i] - origin.y) * per_length.y + 0.5, 0.0, 65535.0))
    pz = u32(clamp((z[i] - origin.z) * per_length.z + 0.5, 0.0, 65535.0))
    pv = u32(clamp((value[i] - low) * per_value + 0.5, 0.0, 65535.0))
    rows[i, 0] = px | (py << u32(16))
    rows[i, 1] = pz | (pv << u32(16))


@threadwise
def quantise_headings(
    i: index, x: Array1[f32], y: Array1[f32], z: Array1[f32], rows: Array2[u32]
):  # fmt: skip
    """The last column of row i: a heading of any length on an octahedron that is unfolded to a
    square (Meyer et al. 2010).
    """
    size = abs(x[i]) + abs(y[i]) + abs(z[i])
    u, v = 0.0, 0.0
    if size > 0:
        u = x[i] / size
        v = y[i] / size
        if z[i] < 0:
            folded_u = 1 - abs(v)
            folded_v = 1 - abs(u)
            if u < 0:
                folded_u = -folded_u
            if v < 0:
                folded_v = -folded_v
            u = folded_u
            v = folded_v
    pu = u32(clamp((u * 0.5 + 0.5) * 65535.0 + 0.5, 0.0, 65535.0))
    pv = u32(clamp((v * 0.5 + 0.5) * 65535.0 + 0.5, 0.0, 65535.0))
    rows[i, 2] = pu | (pv << u32(16))
