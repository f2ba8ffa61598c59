"""What searches refuse, word by word."""

from dataclasses import replace

import numpy as np
import pytest

import lanewise as lw
from lanewise.patterns.search.builders.geometry import MOST_CELLS, Geometry
from lanewise.patterns.search.points import points_of
from lanewise.patterns.search.static_grid import check_constant
from lanewise.support.errors import ArgumentError, CompileError, DeviceError
from tests.search.numbered import KINDS, numbered

MEET = KINDS["f4", 3][1]


def refused(error, call):
    with pytest.raises(error) as caught:
        call()
    return str(caught.value)


def points(count=4):
    return np.random.default_rng(0).random((count, 3)).astype("f4")


@pytest.mark.parametrize("radius", [0, -1.0, float("nan"), float("inf"), "far", True])
def test_a_radius_is_a_positive_number(radius):
    assert (
        refused(ArgumentError, lambda: lw.AllPairs(radius=radius))
        == f"AllPairs(radius={radius!r}): wanted a positive number"
    )


@pytest.mark.parametrize("k", [0, -3, 33, 2.0, True])
def test_k_is_a_number_that_kernels_are_made_for(k):
    assert refused(ArgumentError, lambda: lw.StaticGrid(k=k)) == (
        f"StaticGrid(k={k!r}): wanted an integer from 1 to 32, the longest list that is kept in registers"
    )


def test_more_neighbours_than_sources():
    records = numbered(points(4))
    for search, name in ((lw.AllPairs(k=5), "all pairs"), (lw.StaticGrid(k=5), "static grid")):
        text = refused(ArgumentError, lambda s=search: MEET.using(s)(records, records))
        assert text == f"{name}: the 5 nearest: there are only 4 sources"


def test_a_square_that_the_precision_does_not_hold():
    records = numbered(points())
    text = refused(ArgumentError, lambda: MEET.using(lw.AllPairs(radius=1e-30))(records, records))
    assert text == "radius=1e-30: its square 1e-60 is beyond the numbers of f32"
    text = refused(ArgumentError, lambda: MEET.using(lw.StaticGrid(radius=1e30))(records, records))
    assert text == "radius=1e+30: its square 1e+60 is beyond the numbers of f32"


@pytest.mark.parametrize("search", [lw.AllPairs(radius=1.0), lw.StaticGrid(radius=1.0)])
@pytest.mark.parametrize(("value", "shown"), [(np.nan, "nan"), (np.inf, "inf")])
def test_positions_that_are_no_numbers(search, value, shown):
    x = points()
    x[2] = (1, value, 3)
    good, bad = numbered(points()), numbered(x)
    wrong = f"the position of element 2 is (1, {shown}, 3); a search needs finite numbers"
    assert refused(ArgumentError, lambda: MEET.using(search)(good, bad)) == f"meet_vec3: 'source': {wrong}"
    assert refused(ArgumentError, lambda: MEET.using(search)(bad, good)) == f"meet_vec3: 'target': {wrong}"


def test_an_element_outside_a_bounded_world():
    x = points()
    x[3] = (0.5, 1.25, 0.5)
    search = lw.StaticGrid(radius=0.1, world=lw.Bounded((0, 0, 0), (1, 1, 1)))
    records = numbered(x)
    assert refused(ArgumentError, lambda: MEET.using(search)(records, records)) == (
        "meet_vec3: 'source': element 3 at (0.5, 1.25, 0.5) lies outside the bounded world from (0.0, 0.0, 0.0) to (1.0, 1.0, 1.0); "
        "choose a larger one, or lw.Open()"
    )


def test_a_radius_beyond_half_the_world():
    world = lw.Periodic((4.0, 2.0, 6.0))
    assert refused(ArgumentError, lambda: lw.Neighbors(radius=1.5, world=world)) == (
        "Neighbors(radius=1.5): in a periodic world a radius is at most half the smallest size, 1"
    )


def test_worlds():
    assert (
        refused(ArgumentError, lambda: lw.Periodic((1.0, 0.0)))
        == "Periodic: every size must be positive, found (1.0, 0.0)"
    )
    assert refused(ArgumentError, lambda: lw.Periodic((1.0,))) == "Periodic: size takes 2 or 3 numbers, found 1"
    assert (
        refused(ArgumentError, lambda: lw.Periodic(3.0)) == "Periodic: size takes one number for each axis, found 3.0"
    )
    assert refused(ArgumentError, lambda: lw.Bounded((0, 0), (1, 0))) == (
        "Bounded: low must be below high on every axis, found (0.0, 0.0) and (1.0, 0.0)"
    )
    assert (
        refused(ArgumentError, lambda: lw.Bounded((0, 0), (1, np.nan)))
        == "Bounded: high takes finite numbers, found (1.0, nan)"
    )
    assert refused(ArgumentError, lambda: lw.AllPairs(radius=1.0, world="open")) == (
        "AllPairs(world='open'): wanted lw.Open(), lw.Periodic(size) or lw.Bounded(low, high)"
    )
    records = numbered(points())
    flat = lw.AllPairs(radius=0.5, world=lw.Periodic((1.0, 1.0)))
    assert refused(ArgumentError, lambda: MEET.using(flat)(records, records)) == (
        "all pairs: all within 0.5, periodic world of 1 x 1: the world has 2 axes, and the positions have 3"
    )


def test_cells_that_do_not_fit():
    records = numbered(points())
    text = refused(ArgumentError, lambda: MEET.using(lw.StaticGrid(radius=0.1, cells=2000))(records, records))
    assert text == (
        "StaticGrid(cells=2000): 2000 x 2000 x 2000 are 8,000,000,000 cells, and their numbers have 32 bits; "
        f"wanted at most {MOST_CELLS:,}"
    )
    text = refused(ArgumentError, lambda: MEET.using(lw.StaticGrid(radius=0.1, cells=(2, 2)))(records, records))
    assert text == "StaticGrid(cells=(2, 2)): the positions have 3 axes, wanted as many numbers"


def test_cells_that_do_not_fit_the_memory(monkeypatch):
    monkeypatch.setattr("lanewise.patterns.search.static_grid.available_memory", lambda device: 1_000_000)
    records = numbered(points())
    text = refused(DeviceError, lambda: MEET.using(lw.StaticGrid(radius=0.1, cells=100))(records, records))
    assert (
        text
        == "StaticGrid(cells=100): 100 x 100 x 100 cells need 8,000,000 bytes on 'cpu', and 1,000,000 are available"
    )


def test_constant_memory():
    records = numbered(points())
    assert refused(
        ArgumentError, lambda: MEET.using(lw.StaticGrid(radius=0.5, index="constant"))(records, records)
    ) == ("StaticGrid(index='constant'): only a GPU has constant memory, and the sources are on 'cpu'")
    sources = replace(points_of(records, "position"), device="cuda")
    grid = lw.StaticGrid(radius=0.5, index="constant", cells=32)
    geometry = Geometry((0.0,) * 3, (1.0,) * 3, (32, 32, 32), False)
    assert refused(ArgumentError, lambda: check_constant(grid, geometry, sources)) == (
        "StaticGrid(index='constant'): 32,768 cells take 131,076 bytes, and constant memory has 65,536; "
        "choose fewer cells, or index='global'"
    )


def test_options_of_a_grid():
    assert (
        refused(ArgumentError, lambda: lw.StaticGrid())
        == "StaticGrid(): wanted a radius, or k nearest sources, or both"
    )
    assert refused(ArgumentError, lambda: lw.StaticGrid(radius=1.0, cells=0)) == (
        "StaticGrid(cells=0): wanted an integer from 1 on, or one for each axis"
    )
    assert (
        refused(ArgumentError, lambda: lw.StaticGrid(radius=1.0, build="gpu"))
        == "StaticGrid(build='gpu'): wanted 'device' or 'host'"
    )
    assert refused(ArgumentError, lambda: lw.StaticGrid(radius=1.0, index="shared")) == (
        "StaticGrid(index='shared'): wanted 'global' or 'constant'"
    )
    assert refused(ArgumentError, lambda: lw.StaticGrid(k=2, world=lw.Periodic((1.0, 1.0)))) == (
        "StaticGrid(k=...): in a periodic world a grid needs a radius; lw.AllPairs(k=...) does without"
    )
    assert refused(ArgumentError, lambda: lw.Neighbors(k=2)) == (
        "Neighbors(radius=None, k=2): wanted a radius; lw.Nearest(k=...) takes the nearest"
    )
    assert refused(ArgumentError, lambda: lw.Nearest(radius=1.0)) == (
        "Nearest(): wanted k, the number of nearest sources; lw.Neighbors(radius=...) takes all of them"
    )


@lw.record
class Placeless:
    place: lw.vec3
    mass: lw.f32


@lw.record
class Whole:
    position: lw.ivec3


@lw.pairwise(search=lw.Neighbors(radius=1.0))
def placeless(target: Placeless, source: Placeless) -> lw.f32:
    return source.mass


@lw.pairwise(search=lw.Neighbors(radius=1.0))
def whole(target: Whole, source: Whole) -> lw.i32:
    return 1


def test_a_record_without_positions():
    records = Placeless.zeros(3)
    first, *rest = refused(CompileError, lambda: placeless(records, records)).splitlines()
    assert first.endswith(": Placeless has no field 'position', which says where an element is")
    assert rest == [
        "    def placeless(target: Placeless, source: Placeless) -> lw.f32:",
        "                  ^^^^^^^^^^^^^^^^^",
        "  found: Placeless(place: vec3, mass: f32)",
        "  wanted: position: lw.vec3, or lw.vec2, lw.dvec2, lw.dvec3",
        "  hint: position='place' of the search names another field",
    ]
    assert placeless.using(lw.Neighbors(radius=1.0, position="place"))(records, records).tolist() == [0, 0, 0]


def test_positions_of_whole_numbers():
    records = Whole.zeros(3)
    first, *rest = refused(CompileError, lambda: whole(records, records)).splitlines()
    assert first.endswith(": a search needs positions of two or three floats, and Whole.position is an ivec3")
    assert rest[2:] == ["  found: position: ivec3", "  wanted: lw.vec2, lw.vec3, lw.dvec2 or lw.dvec3"]


def test_plans_about_all_pairs():
    records = numbered(points())
    kernel = MEET.using(lw.StaticGrid(radius=0.5))
    text = refused(lw.PlanError, lambda: kernel.compile(records, records, plan=lw.Plan(tile=64)))
    assert text == "tiling cannot be applied to meet_vec3: it has no loop over sources"
    text = refused(lw.PlanError, lambda: kernel.compile(records, records, plan=lw.Plan(reciprocity="ordered")))
    assert text.startswith("reciprocity cannot be applied to meet_vec3: ")
    text = refused(ArgumentError, lambda: kernel.tuning_job(records, records))
    assert (
        text
        == "meet_vec3 runs over static grid: all within 0.5: plans are measured together with structures, by meet_vec3.tune()"
    )


@pytest.mark.parametrize(
    "search", [lw.AllPairs(radius=0.5), lw.StaticGrid(radius=0.5, k=3), lw.StaticGrid(k=3)], ids=str
)
def test_kernels_over_searches_explain_themselves(search):
    records = numbered(points(40))
    text = MEET.using(search).compile(records, records).explain().text(all=True)
    assert text.startswith("meet_vec3 (search, 40 target, 40 source) on cpu")
    assert "it has no loop over sources" in text


@pytest.mark.parametrize(
    ("over", "world", "text"),
    [
        (3, lw.Open(), "StaticGrid(over=3): wanted the lowest and the highest coordinate of every axis, as ((-1, 1), (0, 5))"),
        (((0, 1), (2, 1)), lw.Open(), "StaticGrid(over=((0.0, 1.0), (2.0, 1.0))): wanted finite ranges, each from low to high"),
        (((0, np.inf),) * 2, lw.Open(), "StaticGrid(over=((0.0, inf), (0.0, inf))): wanted finite ranges, each from low to high"),
        (
            ((0, 1),) * 2, lw.Periodic((4.0, 4.0)),
            "StaticGrid(over=...): cells lie over the periodic world of 4 x 4; leave it out, or choose lw.Open()",
        ),
    ],
)  # fmt: skip
def test_ranges_of_cells(over, world, text):
    assert refused(ArgumentError, lambda: lw.StaticGrid(radius=1.0, over=over, world=world)) == text
