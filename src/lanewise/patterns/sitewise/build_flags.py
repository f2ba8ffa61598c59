"""What a site learns of itself: where it lies, whether it is special or a wall, and what its flags says."""

from __future__ import annotations

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.patterns.sitewise.build_arguments import ALL, MARKS, SOLIDS, SPECIAL, WALL
from lanewise.patterns.sitewise.builder import SiteBuilder
from lanewise.patterns.sitewise.links import FLAG_WORD, FLAGS, KIND, kind_of, walls_of
from lanewise.types import BOOL, I32, U32


def head(b: SiteBuilder) -> ir.Block:
    """Whether the site is special, and whether it is a wall: by its bits, or else by its flags."""
    body: list[ir.Statement] = []
    if b.placed:
        body += (*b.links.coordinates(), *b.links.distances())
    if b.framed:  # places are chosen by where the site lies: no class of sites has a branch of its own
        return (*body, *((ir.Assign(KIND, ir.Literal(0, I32)),) if b.kinds else ()))
    if not b.a.marked and (b.has_flags or b.a.solids):
        flag_word = ir.Local(ALL, U32)
        body.append(ir.LoadRecord(FLAGS, b.site, (("value", flag_word.name),)))
        body.append(ir.Assign(SPECIAL, ir.Compare("!=", flag_word, ir.Literal(0, U32))))
        if b.a.solids:
            body.append(ir.Assign(WALL, walls_of(b.a.walls, kind_of(flag_word))))
    elif b.a.marked:
        body += _bit(b, MARKS, "mark", SPECIAL) if b.has_flags else ()
        body += _bit(b, SOLIDS, "solid", WALL) if b.a.solids else ()
    if b.kinds:
        body.append(ir.Assign(KIND, ir.Literal(0, I32)))
    return tuple(body)


def _bit(b: SiteBuilder, array: str, flag_word: str, name: str) -> ir.Block:
    """The site's bit of an array with 32 sites a flags."""
    read = ir.Local(own(flag_word), U32)
    place = ir.Cast(build.remainder(b.site, 32), U32)
    test = ir.Binary("&", build.shift_right(read, place), ir.Literal(1, U32), U32)
    return (
        ir.LoadRecord(array, build.divide(b.site, 32), (("value", read.name),)),
        ir.Assign(name, ir.Compare("!=", test, ir.Literal(0, U32))),
    )


def flag_word(b: SiteBuilder) -> ir.Block:
    """What a special site learns first."""
    body: ir.Block = (ir.LoadRecord(FLAGS, b.site, (("value", FLAG_WORD),)),)
    if b.kinds:
        body += (ir.Assign(KIND, kind_of(ir.Local(FLAG_WORD, U32))),)
    return body + (b.links.coordinates() if b.follows and not b.placed else ())


def learn(b: SiteBuilder) -> ir.Block:
    """What a site knows before it loads: its flags, its kind, and where it lies."""
    if b.framed:
        return ()
    flag_word = ir.Assign(FLAG_WORD, ir.Local(ALL, U32))
    kind = (ir.Assign(KIND, kind_of(ir.Local(FLAG_WORD, U32))),) if b.kinds else ()
    asks = b.links.asks_where and not b.placed
    where = (*nowhere(b), ir.If(b.special, b.links.coordinates())) if asks else ()
    return (flag_word, *kind, *where)


def default_flags(b: SiteBuilder) -> ir.Block:
    """Variables that puts need beyond the branch of special sites have a value everywhere."""
    if not (b.a.puts and b.a.phase.put_links):
        return ()
    return (ir.Assign(FLAG_WORD, ir.Literal(0, U32)), *nowhere(b))


def nowhere(b: SiteBuilder) -> ir.Block:
    """Coordinates of a site that does not need them."""
    index = b.site.type
    body: list[ir.Statement] = []
    for s in b.links.coordinates():
        assert isinstance(s, ir.Assign)
        zero = ir.Literal(False, BOOL) if s.value.type == BOOL else ir.Literal(0, index)
        body.append(ir.Assign(s.name, zero))
    return tuple(body)
