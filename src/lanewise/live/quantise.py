"""Kernels that make rows of frames where the data are: positions, values and headings as u16, two
of which are a word, a u32 of a row.

Words are made of elements as these lie, in SIMD lanes on a CPU, and then brought to where rows are
sent.
"""

from lanewise.language.array_types import Array1, Array2, index
from lanewise.language.values import clamp, f32, i32, log, maximum, minimum, u32, vec3
from lanewise.patterns.threadwise.kernel import threadwise

MOST = 65535.0


@threadwise
def quantise_points(
    i: index,
    x: Array1[f32],
    y: Array1[f32],
    z: Array1[f32],
    value: Array1[f32],
    first: Array1[u32],
    second: Array1[u32],
    origin: vec3,
    per_length: vec3,
    low: f32,
    per_value: f32,
):
    """The first words of a row: x, y, z in the box, and the value in the range.

    per_length, per_value: 65535 over the edges of the box and over the range. What lies outside is
    brought to the faces.
    """
    px = i32(clamp((x[i] - origin.x) * per_length.x + 0.5, 0.0, 65535.0))
    py = i32(clamp((y[i] - origin.y) * per_length.y + 0.5, 0.0, 65535.0))
    pz = i32(clamp((z[i] - origin.z) * per_length.z + 0.5, 0.0, 65535.0))
    pv = i32(clamp((value[i] - low) * per_value + 0.5, 0.0, 65535.0))
    first[i] = u32(px) | (u32(py) << u32(16))
    second[i] = u32(pz) | (u32(pv) << u32(16))


@threadwise
def quantise_headings(i: index, x: Array1[f32], y: Array1[f32], z: Array1[f32], third: Array1[u32]):
    """The last word of a row: a heading of any length on an octahedron that is unfolded to a
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
    third[i] = pu | (pv << u32(16))


@threadwise
def bring_points(
    i: index, place: Array1[i32], first: Array1[u32], second: Array1[u32], rows: Array2[u32]
):
    """Row `place[i]` is of element i; none where that is below 0 or above the rows there are."""
    k = place[i]
    if k >= 0 and k < rows.shape[0]:
        rows[k, 0] = first[i]
        rows[k, 1] = second[i]


@threadwise
def bring_arrows(
    i: index,
    place: Array1[i32],
    first: Array1[u32],
    second: Array1[u32],
    third: Array1[u32],
    rows: Array2[u32],
):
    """The same of three words."""
    k = place[i]
    if k >= 0 and k < rows.shape[0]:
        rows[k, 0] = first[i]
        rows[k, 1] = second[i]
        rows[k, 2] = third[i]


@threadwise
def bound_columns(
    j: index, lane: index, columns: Array2[f32], least: Array2[f32], most: Array2[f32]
):
    """The least and the greatest of every so many numbers of row j of the columns, of which there
    are more than lanes; NaN where one of them is not finite.
    """
    lanes, count = least.shape[1], columns.shape[1]
    low = columns[j, lane]
    high = low
    none = low - low  # NaN of what is not finite
    for turn in range(1, (count - lane + lanes - 1) // lanes):
        v = columns[j, lane + turn * lanes]
        low = minimum(low, v)
        high = maximum(high, v)
        none += v - v
    least[j, lane] = low + none
    most[j, lane] = high + none


@threadwise
def take_logarithms(i: index, value: Array1[f32], least: f32):
    """Natural ones, in place; of numbers below `least`, its own."""
    value[i] = log(maximum(value[i], least))


@threadwise
def find_ranks(i: index, value: Array1[f32], ordered: Array1[f32]):
    """In place, the share of numbers in ascending order that are less, and half of those equal."""
    count = ordered.shape[0]
    v = value[i]
    first = 0
    behind = count
    while first < behind:
        middle = (first + behind) // 2
        if ordered[middle] < v:
            first = middle + 1
        else:
            behind = middle
    last = first
    end = count
    while last < end and ordered[last] == v:
        middle = (last + end) // 2
        if ordered[middle] > v:
            end = middle
        else:
            last = middle + 1
    value[i] = (f32(first) + f32(last)) * 0.5 / f32(count)


@threadwise
def bound_groups(
    g: index,
    lane: index,
    columns: Array2[f32],
    order: Array1[i32],
    begin: Array1[i32],
    least: Array2[f32],
    most: Array2[f32],
):
    """The bounds of every so many finite numbers of groups, in rows 3 g, 3 g + 1 and 3 g + 2: of
    the first three columns at places order[begin[g]] to order[begin[g + 1] - 1]. Where there are
    none the least is above the greatest.
    """
    lanes = least.shape[1]
    first = begin[g] + lane
    for axis in range(3):
        low = 3e38
        high = -3e38
        for turn in range((begin[g + 1] - first + lanes - 1) // lanes):
            v = columns[axis, order[first + turn * lanes]]
            if v - v == 0:
                low = minimum(low, v)
                high = maximum(high, v)
        least[3 * g + axis, lane] = low
        most[3 * g + axis, lane] = high
