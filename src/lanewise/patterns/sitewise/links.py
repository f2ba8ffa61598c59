"""Links between sites: where a direction leads, which wall cuts it, and what a moving wall adds.

Everything here is for special sites, which know their flags (`patterns/sitewise/flags.py`) and
compute their coordinates. Bulk sites take `offset` and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.language.lattices.base import Lattice
from lanewise.language.types import BOOL, I32, I64, U32, Scalar
from lanewise.patterns.sitewise.flags import KIND_MASK, KIND_SHIFT
from lanewise.patterns.sitewise.kinds import AXES, REST, Edges, Wall

FLAGS, FLAG_WORD, KIND = own("flags"), own("flag_word"), own("kind")
EXTENTS = tuple(own(f"n{a}") for a in AXES)
PLANE = own("plane")  # sites of a layer: nx * ny
MAGIC = tuple(own(f"magic.{a}") for a in AXES)  # what stands for a division by an extent
SHIFT = tuple(own(f"shift.{a}") for a in AXES)
# blocks of sites in a row along x, and in a layer
ROW, LAYER = own("row.blocks"), own("layer.blocks")


@dataclass(frozen=True, slots=True)
class Links:
    """The links of the sites of a box.

    `site` is the index of the site in the kernel, `index` its type.
    """

    lattice: Lattice
    edges: Edges
    walls: tuple[Wall, ...]
    solids: bool  # the mask has walls as well
    site: ir.Local
    real: Scalar
    placed: bool = False  # every site computes where it lies: faces that wrap need no test
    row_block: int = 0  # rows along x are whole blocks of that many sites
    framed: bool = False  # all walls are faces of the box, and every site computes where it lies
    moving_sites: bool = True  # walls that move may be sites of the mask

    @property
    def index(self) -> Scalar:
        return self.site.type

    @property
    def can_be_cut(self) -> bool:
        return self.solids or bool(self.edges.walls)

    @property
    def moving(self) -> tuple[Wall, ...]:
        return tuple(w for w in self.walls if w.velocity is not None)

    @property
    def asks_where(self) -> bool:
        """Whether links depend on where a site lies: faces that wrap or mirror, walls that move."""
        bends = any(not isinstance(f, int) for pair in self.edges.faces for f in pair)
        return bends or bool(self.moving) or any(w.fields for w in self.walls)

    def extent(self, axis: int) -> ir.Local:
        return ir.Local(EXTENTS[axis], self.index)

    def stride(self, axis: int) -> ir.Expression:
        """The distance of neighbours along an axis."""
        return (ir.Literal(1, self.index), self.extent(0), ir.Local(PLANE, self.index))[axis]

    def offset(self, q: int, sign: int) -> ir.Expression:
        """The bulk neighbour along (1) or against (-1) direction q."""
        place: ir.Expression = self.site
        for axis, component in enumerate(self.lattice.velocities[q]):
            place = _moved(place, sign * component, self.stride(axis))
        return place

    def order(self, q: int, sign: int) -> int:
        """Whether that neighbour comes before (-1) or after (1) the site in a box at least two
        sites wide; 0 for the site itself.
        """
        steps = (sign * c for c in reversed(self.lattice.velocities[q]))
        return next((s for s in steps if s), 0)

    def coordinates(self) -> ir.Block:
        """x, y, z of the site, and at which faces it lies."""
        rest: ir.Expression = self.site
        body: list[ir.Statement] = []
        last = self.lattice.dimension - 1
        for axis in range(last + 1):
            name = own(AXES[axis])
            further = rest_of(axis, self.index)
            if self.placed and axis < last:
                body.append(ir.Assign(further.name, self.quotient(rest, axis)))
                value = build.subtract(rest, build.multiply(further, self.extent(axis)))
            else:
                value = rest if axis == last else build.remainder(rest, self.extent(axis))
            body.append(ir.Assign(name, value))
            if axis < last:
                if not self.placed:
                    body.append(ir.Assign(further.name, build.divide(rest, self.extent(axis))))
                rest = further
            here = ir.Local(name, self.index)
            body.append(ir.Assign(at_face(axis, -1).name, build.equal(here, 0)))
            body.append(
                ir.Assign(
                    at_face(axis, 1).name, build.equal(here, build.subtract(self.extent(axis), 1))
                )
            )
        return tuple(body)

    def quotient(self, value: ir.Expression, axis: int) -> ir.Expression:
        """`value // extent` for values below 2**31, as a product and a shift.

        T. Granlund, P. L. Montgomery, Division by invariant integers using multiplication, PLDI
        1994.
        """
        wide = ir.Cast(ir.Cast(value, U32), I64)
        product = build.multiply(wide, ir.Cast(ir.Local(MAGIC[axis], U32), I64))
        return ir.Cast(
            build.shift_right(product, ir.Cast(ir.Local(SHIFT[axis], U32), I64)), self.index
        )

    def distances(self) -> ir.Block:
        """How far it is to the neighbours along each axis, around faces that wrap; nowhere at
        others.
        """
        body: list[ir.Statement] = []
        for axis in range(self.lattice.dimension):
            stride, extent = self.unit(axis), self.extent(axis)
            for step in (-1, 1):
                wraps = self.edges.face(axis, step) == "periodic"
                around = (
                    build.multiply(build.subtract(extent, 1), stride)
                    if wraps
                    else ir.Literal(0, self.index)
                )
                if step < 0:
                    further = build.subtract(ir.Literal(0, self.index), stride)
                else:
                    further, around = stride, build.subtract(0, around) if wraps else around
                value = ir.Select(at_face(axis, step), around, further, self.index)
                body.append(ir.Assign(self.distance(axis, step).name, value))
        return tuple(body)

    def unit(self, axis: int) -> ir.Expression:
        """The distance of neighbours along an axis in the unit of `distance`: sites, or whole
        blocks of them.
        """
        if axis and self.row_block:
            return ir.Local((ROW, LAYER)[axis - 1], self.index)
        return self.stride(axis)

    def distance(self, axis: int, step: int) -> ir.Local:
        return ir.Local(own(f"{'back' if step < 0 else 'ahead'}.{AXES[axis]}"), self.index)

    def neighbour(self, q: int, sign: int) -> ir.Expression:
        """The site along (1) or against (-1) direction q, when every site computes where it
        lies.
        """
        moves = [self.distance(a, sign * c) for a, c in enumerate(self.lattice.velocities[q]) if c]
        near: ir.Expression = self.site
        far: ir.Expression = ir.Literal(0, self.index)
        for axis, move in zip(
            (a for a, c in enumerate(self.lattice.velocities[q]) if c), moves, strict=True
        ):
            if axis and self.row_block:
                far = build.add(far, move)
            else:
                near = build.add(near, move)
        return (
            build.add(near, build.multiply(far, self.row_block))
            if far != ir.Literal(0, self.index)
            else near
        )

    def at_wall(self, q: int) -> ir.Expression:
        """Whether the link that arrives along direction q comes through a wall at a face."""
        condition: ir.Expression = build.FALSE
        for axis, component in enumerate(self.lattice.velocities[q]):
            if component and isinstance(self.edges.face(axis, -component), int):
                at = at_face(axis, -component)
                condition = at if condition == build.FALSE else ir.Logical("or", condition, at)
        return condition

    def at_moving_face(self) -> ir.Expression | None:
        """Whether the site lies at a face that moves; None where sites of the mask may also
        move.
        """
        if self.solids and self.moving_sites:
            return None
        moving = {w.number for w in self.moving}
        condition: ir.Expression = build.FALSE
        faces = (
            (a, s)
            for a in range(self.lattice.dimension)
            for s in (-1, 1)
            if self.edges.face(a, s) in moving
        )
        for axis, step in faces:
            at = at_face(axis, step)
            condition = at if condition == build.FALSE else ir.Logical("or", condition, at)
        return condition

    def is_cut(self, q: int) -> ir.Expression:
        """Whether a wall cuts the link that arrives along direction q."""
        if self.framed:
            return self.at_wall(q)
        return _bit(ir.Local(FLAG_WORD, U32), q - 1)

    def bends(self, q: int, sign: int) -> ir.Expression | None:
        """Whether the link along or against q wraps or is mirrored at a face; None where no face
        does that.

        Where every site computes where it lies, links that wrap are like others.
        """
        condition: ir.Expression | None = None
        for axis, component in enumerate(self.lattice.velocities[q]):
            step = sign * component
            face = self.edges.face(axis, step) if step else 0
            if face == "slip" or (face == "periodic" and not self.placed):
                at = at_face(axis, step)
                condition = at if condition is None else ir.Logical("or", condition, at)
        return condition

    def towards(
        self, q: int, sign: int, leaf: int, give: Callable[[ir.Expression, int], ir.Block]
    ) -> ir.Block:
        """`give(place, leaf)` for the end of an uncut link along or against q: wrapped at periodic
        faces, mirrored at slip faces.
        """
        return self.follow(tuple(sign * c for c in self.lattice.velocities[q]), leaf, give)

    def follow(
        self,
        steps: tuple[int, ...],
        leaf: int,
        give: Callable[[ir.Expression, int], ir.Block],
        axis: int = 0,
        place: ir.Expression | None = None,
    ) -> ir.Block:
        """`give(place, leaf)` for the site that lies so many steps away along each axis, from
        `axis` and `place` on.
        """
        place = self.site if place is None else place
        if axis == self.lattice.dimension:
            return give(place, leaf)
        step = steps[axis]
        if not step:
            return self.follow(steps, leaf, give, axis + 1, place)
        stride, face, crossing = self.stride(axis), self.edges.face(axis, step), at_face(axis, step)
        moved = _moved(place, step, stride)
        if face == "slip":
            mirrored = self.lattice.mirror(leaf, frozenset({axis}))
            then = self.follow(steps, mirrored, give, axis + 1, place)
            return (ir.If(crossing, then, self.follow(steps, leaf, give, axis + 1, moved)),)
        if face == "periodic":
            around = build.multiply(
                build.multiply(self.extent(axis), stride), ir.Literal(-step, self.index)
            )
            moved = build.add(
                moved, ir.Select(crossing, around, ir.Literal(0, self.index), self.index)
            )
        return self.follow(steps, leaf, give, axis + 1, moved)

    def face_met(self, steps: tuple[int, ...]) -> ir.Expression:
        """The kind of the wall at the faces that these steps cross (i32): 0 for none, `REST` for
        different ones.
        """
        met: ir.Expression = ir.Literal(0, I32)
        for axis, step in enumerate(steps):
            face = self.edges.face(axis, step) if step else "periodic"
            if isinstance(face, int):
                own_kind, rest = ir.Literal(face, I32), ir.Literal(REST, I32)
                alike = ir.Logical("or", build.equal(met, 0), build.equal(met, face))
                nearer = (
                    own_kind if met == ir.Literal(0, I32) else ir.Select(alike, own_kind, rest, I32)
                )
                met = ir.Select(at_face(axis, step), nearer, met, I32)
        return met

    def wall_met(self, q: int, name: str, *, sites: bool = False) -> ir.Block:
        """Assign the kind of the wall that cuts the link arriving along q to `name` (i32).

        Of walls in the mask the kind is looked up where some of them move, and with `sites`.
        """
        met = self.face_met(tuple(-c for c in self.lattice.velocities[q]))
        result = ir.Local(name, I32)
        body: tuple[ir.Statement, ...] = (ir.Assign(name, met),)
        if self.solids and (self.moving_sites or sites):
            flag_word = ir.Local(f"{name}.flag_word", U32)
            look = self.towards(
                q,
                -1,
                q,
                lambda place, _: (
                    ir.LoadRecord(FLAGS, place, (("value", flag_word.name),)),
                    ir.Assign(name, kind_of(flag_word)),
                ),
            )
            body += (ir.If(build.equal(result, 0), look),)
        return body

    def added(self, q: int, met: ir.Local) -> ir.Expression | None:
        """6 w (e . u) of the moving wall that was met; None where no wall moves along q."""
        total: ir.Expression | None = None
        faces = {self.edges.face(a, -c) for a, c in enumerate(self.lattice.velocities[q]) if c}
        for wall in self.moving:
            if wall.number not in faces and not (self.solids and self.moving_sites):
                continue
            along = self.speed(q, wall)
            if along is None:
                continue
            factor = ir.Literal(6.0 * float(self.lattice.weights[q]), self.real)
            term = ir.Binary("*", factor, along, self.real)
            one = ir.Select(
                build.equal(met, wall.number), term, ir.Literal(0.0, self.real), self.real
            )
            total = one if total is None else ir.Binary("+", total, one, self.real)
        return total

    def speed(self, q: int, wall: Wall) -> ir.Expression | None:
        """The product e . u of direction q and the velocity of a wall, by sums and differences."""
        total: ir.Expression | None = None
        for axis, component in enumerate(self.lattice.velocities[q]):
            if component:
                u = ir.Local(f"{wall.velocity}.{AXES[axis]}", self.real)
                if total is None:
                    total = u if component > 0 else ir.Unary("-", u, self.real)
                else:
                    total = ir.Binary("+" if component > 0 else "-", total, u, self.real)
        return total


def box_counts(shape: tuple[int, ...], row_block: int) -> dict[str, int]:
    """The values of all numbers about a box that kernels may ask for."""
    extents = tuple(reversed(shape))
    counts = {**dict(zip(EXTENTS, extents, strict=False)), PLANE: extents[0] * (*extents, 1)[1]}
    for axis, extent in enumerate(extents):
        bits = (extent - 1).bit_length()
        counts |= {MAGIC[axis]: -(-(1 << (31 + bits)) // extent), SHIFT[axis]: 31 + bits}
    if row_block:
        counts |= {ROW: extents[0] // row_block, LAYER: extents[0] // row_block * (*extents, 1)[1]}
    return counts


def kind_of(flag_word: ir.Expression) -> ir.Expression:
    """The kind in a flags, an i32."""
    shifted = ir.Binary(">>", flag_word, ir.Literal(KIND_SHIFT, U32), U32)
    return ir.Cast(ir.Binary("&", shifted, ir.Literal(KIND_MASK, U32), U32), I32)


def walls_of(walls: tuple[Wall, ...], kind: ir.Expression) -> ir.Expression:
    """Whether a kind is one of these walls."""
    result: ir.Expression = build.equal(kind, walls[0].number)
    for wall in walls[1:]:
        result = ir.Logical("or", result, build.equal(kind, wall.number))
    return result


def _bit(flag_word: ir.Expression, position: int) -> ir.Expression:
    shifted = ir.Binary(">>", flag_word, ir.Literal(position, U32), U32) if position else flag_word
    return ir.Compare("!=", ir.Binary("&", shifted, ir.Literal(1, U32), U32), ir.Literal(0, U32))


def rest_of(axis: int, index: Scalar = I32) -> ir.Local:
    """What is left of a site's number without its coordinates up to this axis: after x the number
    of its row.
    """
    return ir.Local(own(f"rest.{AXES[axis]}"), index)


def at_face(axis: int, step: int) -> ir.Local:
    """Whether the site lies at the face that a step of -1 or 1 crosses."""
    return ir.Local(own(f"{'first' if step < 0 else 'last'}.{AXES[axis]}"), BOOL)


def _moved(place: ir.Expression, step: int, stride: ir.Expression) -> ir.Expression:
    if not step:
        return place
    return build.add(place, stride) if step > 0 else build.subtract(place, stride)
