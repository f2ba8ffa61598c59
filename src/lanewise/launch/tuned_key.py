"""What a tuned plan belongs to. A plan is used for calls with an equal key, and for no others."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from lanewise._version import __version__
from lanewise.ir import nodes as ir
from lanewise.ir.pattern import Work
from lanewise.ir.printer import print_kernel
from lanewise.plan import Plan
from lanewise.runtime.cache import content_key
from lanewise.runtime.identity import identity


@dataclass(frozen=True, slots=True)
class Key:
    """Everything that decides which plan is best, as far as it can be known before a call.

    kernel: the function's name; function: a hash of its reference kernel, so that an edited function is another one;
    layouts: of its records; identical: whether targets and sources are one array; device, arch, driver, compiler,
    threads: see `runtime.identity.Identity`; version: of lanewise; targets, sources: classes of size (see `size_class`);
    wanted: the fields of the plan that the caller fixes; search: the kind of call of a kernel over a search, whose structure is
    chosen, too (see `search_kinds.kind_of_call`), empty for all others.
    """

    kernel: str
    function: str
    layouts: str
    identical: bool
    device: str
    arch: str
    driver: str
    compiler: str
    threads: int
    version: str
    targets: int
    sources: int
    wanted: str
    search: str = ""

    def as_dict(self) -> dict[str, Any]:
        return {n: v for n, v in asdict(self).items() if n != "search" or v}

    @property
    def file_name(self) -> str:
        """One file a key: the kernel's name for people, a hash of everything for lanewise."""
        return f"{self.kernel}-{content_key(*(f'{k}={v!r}' for k, v in self.as_dict().items()))}.json"

    def differences(self, found: Mapping[str, Any]) -> list[str]:
        """Where another key's content differs: `driver is 570.1, wanted 580.2`."""
        other = {"search": "", **found}
        return [f"{k} is {other.get(k)!r}, wanted {v!r}" for k, v in asdict(self).items() if other.get(k) != v]


def size_class(count: int) -> int:
    """The power of two that a number of elements is nearest to (by ratio): 14 for 11,586 to 23,170 elements."""
    return round(math.log2(count)) if count > 0 else 0


def make_key(
    reference: ir.Kernel,
    layouts: Mapping[str, Any],
    device: str,
    work: Work,
    sources: int,
    wish: Plan,
    identical: bool,
) -> Key:
    """The key of a call, on a device of this machine."""
    machine = identity(device)
    return Key(
        reference.name, content_key(print_kernel(reference)), ", ".join(f"{n}: {x}" for n, x in layouts.items()), identical,
        machine.device, machine.arch, machine.driver, machine.compiler, machine.threads, __version__,
        size_class(work.targets), size_class(sources), str(wish),
    )  # fmt: skip
