"""What binds the parts of a call on a mesh: by rows, or by groups of all targets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from lanewise.launch.arguments import Arguments
from lanewise.launch.compiled import Call
from lanewise.launch.support import Uses
from lanewise.patterns.mesh_launch import Brought, GroupRounds
from lanewise.planning.plan import Plan
from lanewise.runtime.mesh import Mesh

BindGroups = Callable[
    [Mesh, tuple[int, ...], Sequence[Arguments], Sequence[Any], Brought, Plan | None, bool],
    GroupRounds,
]
"""What binds the parts of a call that share groups of targets: of the mesh, how many rows parts
have, their arguments with all targets and sources, what they write to, what brings these, a plan,
and whether it runs now.
"""

Compare = Callable[[tuple[Any, ...], Callable[[], None] | None], None]


class DividedEngine(Protocol):
    """What binds the parts of a call, and what it uses of a record parameter of the function.

    groups: where parts share groups of all targets, and not each its rows.
    """

    @property
    def groups(self) -> BindGroups | None: ...
    def bind_part(self, arguments: Arguments, out: Any, plan: Plan | None) -> Call: ...
    def uses(self, name: str) -> Uses: ...
