"""What is refused about fields, stencils and coupled lattices, and with which words."""

from __future__ import annotations

import re

import numpy as np
import pytest

import lanewise as lw
from tests.sites.fields import density, two_phases
from tests.written import module

WRITTEN = {
    "an assignment to a neighbour": (
        """
        @lw.stencil(lw.D2Q5)
        def kernel(t: lw.Field[lw.f32]) -> lw.f32:
            t[1] = 2.0
            return t[0]
        """,
        """kernels.py:3:5: the field 't' can only be read
    t[1] = 2.0
    ^^^^^^^^^^
  found: an assignment to t at a neighbour
  wanted: the value of this site as the result of the function that writes the field
  hint: sites are updated at the same time: what a site wrote into its neighbour, another would read or not""",
    ),
    "a field of vectors": (
        """
        @lw.stencil(lw.D2Q5)
        def kernel(t: lw.Field[lw.vec2]) -> lw.f32:
            return t[0]
        """,
        """kernels.py:2:12: a field has one float per site
    def kernel(t: lw.Field[lw.vec2]) -> lw.f32:
               ^^^^^^^^^^^^^^^^^^^^
  found: t: lw.Field[lw.vec2]
  wanted: lw.Field[lw.f32] or lw.Field[lw.f64]
  hint: the components of a vector are separate fields""",
    ),
    "a direction that the lattice does not have": (
        """
        @lw.stencil(lw.D2Q5)
        def kernel(t: lw.Field[lw.f32]) -> lw.f32:
            return t[7]
        """,
        """kernels.py:3:14: index 7 is outside the neighbours of D2Q5
    return t[7]
             ^
  found: 7
  wanted: 0 to 4""",
    ),
    "no field first": (
        """
        @lw.stencil(lw.D2Q5)
        def kernel(rate: lw.f32, t: lw.Field[lw.f32]) -> lw.f32:
            return t[0]
        """,
        """kernels.py:2:12: kernel does not take a field of its sites first
    def kernel(rate: lw.f32, t: lw.Field[lw.f32]) -> lw.f32:
               ^^^^^^^^^^^^
  found: rate: lw.f32
  wanted: u: lw.Field[lw.f32] (or lw.Field[lw.f64])""",
    ),
    "two precisions": (
        """
        @lw.stencil(lw.D2Q5)
        def kernel(t: lw.Field[lw.f32], k: lw.Field[lw.f64]) -> lw.f32:
            return t[0]
        """,
        """kernels.py:2:12: the fields of a stencil have one precision
    def kernel(t: lw.Field[lw.f32], k: lw.Field[lw.f64]) -> lw.f32:
               ^^^^^^^^^^^^^^^^^^^
  found: t: f32, k: f64
  wanted: lw.Field[lw.f32] for all, or lw.Field[lw.f64]""",
    ),
    "another result": (
        """
        @lw.stencil(lw.D2Q5)
        def kernel(t: lw.Field[lw.f32]) -> lw.f64:
            return t[0]
        """,
        """kernels.py:2:36: kernel returns the next value of each field that it changes
    def kernel(t: lw.Field[lw.f32]) -> lw.f64:
                                       ^^^^^^
  found: -> f64, of the fields t
  wanted: -> lw.f32""",
    ),
}


@pytest.mark.parametrize("case", WRITTEN)
def test_functions_that_are_no_stencils(case):
    source, text = WRITTEN[case]
    kernel = module(source).kernel
    with pytest.raises(lw.CompileError) as error:
        kernel.run(kernel.sites((4, 4), device="python"), 1)
    assert str(error.value) == text


def test_a_field_belongs_to_a_site():
    source = """
    @lw.elementwise
    def kernel(t: lw.Field[lw.f32]) -> lw.f32:
        return t[0]
    """
    with pytest.raises(lw.CompileError, match="a field belongs to a site of a lattice"):
        module(source).kernel(np.zeros(3, np.float32))
    with pytest.raises(TypeError, match=r"^lw\.Field is an annotation"):
        lw.Field()


@lw.stencil(lw.D2Q5)
def heat(t: lw.Field[lw.f32], k: lw.Field[lw.f32]) -> lw.f32:
    return t[0] + k[1]


def refuse(text: str):
    return pytest.raises(lw.ArgumentError, match=re.escape(text))


def test_values_of_a_stencil():
    sites = heat.sites((4, 4), device="python")
    with refuse("heat needs k; its parameters are k"):
        heat.run(sites, 1)
    with refuse(
        "heat: 'k' is read at neighbours: wanted an array of shape (4, 4) with one f32 per site, or what an observer sees"
    ):
        heat.run(sites, 1, k=0.5)
    with refuse("heat has no field 'k'; its fields are t"):
        heat.set_fields(sites, k=np.zeros((4, 4)))
    with refuse("the field 't' is a number or an array of shape (4, 4), found"):
        heat.set_fields(sites, t=np.zeros((3, 4)))
    with refuse("heat has no field 'u'; its fields are t"):
        heat.field(sites, "u")
    with refuse("@lw.stencil takes a lattice, for example @lw.stencil(lw.D2Q5); found 3"):
        lw.stencil(3)
    with refuse("lw.couple takes steppers, for example flow.stepper(sites, omega=1.6); found nothing"):
        lw.couple()


def test_walls_have_values_of_fields_that_are_read():
    @lw.stencil(lw.D2Q5)
    def cool(t: lw.Field[lw.f32]) -> lw.f32:
        return t[1]

    cool.wall(1, "hot", u="heating")
    sites = cool.sites((4, 4), edges={"x": "hot"}, device="python")
    with refuse("kind 1 ('hot') has a value of 'u', which cool does not read at neighbours; its fields are t"):
        cool.run(sites, 1, heating=1.0)
    with refuse("kind 2 ('cold'): t is the name of a value of the call, found 3.0"):
        cool.wall(2, "cold", t=3.0)


def test_fields_of_a_flow():
    sites = two_phases.sites((4, 4), device="python")
    with refuse("two_phases: the field 'psi' is written by an observer before every step; no call brings it"):
        two_phases.run(sites, 1, attraction=-5.0, psi=np.zeros((4, 4)))
    with refuse("two_phases: the field 'psi' is written by potential already"):
        two_phases.field("psi")
    with refuse("two_phases.field takes the name of a parameter, for example \"psi\"; found 'a b'"):
        two_phases.field("a b")

    @lw.sitewise(lw.D2Q9)
    def flow(f: lw.populations, psi: lw.Field[lw.f64]):
        f[0] = f[0] + lw.f32(psi[0])

    @flow.field("psi")
    def wrong(f: lw.populations) -> lw.f32:
        return f[0]

    with refuse("wrong writes the field 'psi': wanted one f64 of populations and values, found f32"):
        flow.run(flow.sites((4, 4), device="python"), 1)


def test_what_is_observed_elsewhere():
    @lw.sitewise(lw.D2Q5)
    def carry(g: lw.populations, u: lw.f32):
        g[0] = g[0] + u

    fluid, other = two_phases.sites((4, 4), device="python"), two_phases.sites((4, 5), device="python")
    spot = carry.sites((4, 4), device="python")
    with refuse("carry: 'u' is observed of <5 x 4 sites of D2Q9"):
        carry.stepper(spot, u=density.of(other))
    with refuse("carry: density is observed of other sites, <4 x 4 sites of D2Q9"):
        carry.run(spot, 1, u=density.of(fluid))
    reader = carry.stepper(spot, u=density.of(fluid))
    with refuse("lw.couple: carry reads what density observes of <4 x 4 sites of D2Q9"):
        lw.couple(reader)
    with refuse("lw.couple: carry updates sites that another stepper updates: wanted sites for each"):
        lw.couple(reader, two_phases.stepper(fluid, attraction=-5.0), carry.stepper(spot, u=1.0))
    with refuse("couple(carry, two_phases): -1 steps requested; wanted 0 or more"):
        lw.couple(reader, two_phases.stepper(fluid, attraction=-5.0)).run(-1)

    @two_phases.observer
    def both(f: lw.populations) -> tuple[lw.f32, lw.f32]:
        return f[0], f[1]

    with refuse("both returns 2 values; observed is one: wanted an observer for each"):
        both.of(fluid)
