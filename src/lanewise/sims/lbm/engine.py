"""What a simulation needs of whatever advances its populations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from numpy.typing import NDArray

from lanewise.profiling.profile import Profile
from lanewise.sims.lbm.settings import Settings

if TYPE_CHECKING:
    from lanewise.patterns.sitewise.tuning import SiteJob


class Engine(Protocol):
    """Populations of a box of sites, stored as deviations f - w, and the kernels that advance them.

    Populations are those that arrive next. Arrays of fields lie on the device, x fastest, one row a site; sites of walls hold zeros.
    """

    @property
    def layout(self) -> str:
        """The name of the layout in which the populations are stored."""
        ...

    @property
    def bytes_per_site(self) -> float:
        """What a step reads and writes of memory for a fluid site."""
        ...

    @property
    def interpolated_links(self) -> int:
        """How many links walls cut elsewhere than half-way."""
        ...

    def prepare(self) -> None:
        """Compile what steps need, so that the first one costs no more than the others."""
        ...

    def prepare_looks(self, steps: int, names: Sequence[str]) -> None:
        """Compile what the moments after `steps` more steps need, one at least, and the force on the walls of these names, if any."""
        ...

    def run(self, steps: int, counted: Callable[[int], None]) -> None:
        """Take steps and wait for them; `counted(n)` is called when n more are done. Ctrl-C ends it after whole steps."""
        ...

    def tuning_job(self) -> SiteJob:
        """What `lanewise tune` measures: a step."""
        ...

    def check_whole(self) -> None:
        """Raise `StateError` after steps that were stopped in the middle."""
        ...

    def change(self, settings: Settings) -> None:
        """Go on by other settings of the collision, the force or outflows, with the same populations."""
        ...

    @property
    def profile(self) -> Profile | None:
        """What is told where the time of steps goes."""
        ...

    @profile.setter
    def profile(self, value: Profile | None) -> None: ...

    @property
    def version(self) -> int:
        """How often the populations were replaced."""
        ...

    def moments(self) -> tuple[Any, Any]:
        """The density less 1, (count,), and the velocity, (count, D)."""
        ...

    def force(self, names: Sequence[str]) -> NDArray[Any]:
        """What the walls of these names took of the momentum in this step: float64 of shape (D,)."""
        ...

    def arriving(self) -> NDArray[Any]:
        """The populations, (Q, *shape), on the host."""
        ...

    def set_arriving(self, populations: NDArray[Any]) -> None:
        """Replace them."""
        ...

    def save(self) -> Mapping[str, Any]:
        """Arrays on the host, and numbers, that `restore` continues from, to the bit."""
        ...

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Continue from what an engine of the same settings and geometry has saved."""
        ...
