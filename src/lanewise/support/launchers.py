"""Whether this process is one of several that mpirun, mpiexec or srun has started.

They say so in the environment, which is all that is read here: no library of MPI is loaded.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # that of `typing`: a command reads this in its first lines
if TYPE_CHECKING:
    from collections.abc import Mapping

ALONE = "LANEWISE_RANKS"  # a variable: "alone" makes each process its own run


class Started:
    """This process among those that were started together.

    by: the program that started them. rank: its number, from 0. size: how many there are, 0 where
    it is not said. family: the libraries of MPI that the program belongs to, "" for any.
    """

    def __init__(self, by: str, rank: int, size: int, family: str = "") -> None:
        self.by, self.rank, self.size, self.family = by, rank, size, family

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Started) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.by, self.rank, self.size))

    @property
    def speaks(self) -> bool:
        """Whether it is the first of those that know of each other, and says what all refuse."""
        return self.rank == (0 if self.size else 1)

    def copies_of(self, what: str) -> str:
        return f"{self.size or 'several'} copies of {what} were started by {self.by}"


_PMIX = "PMIX_RANK"  # of launchers of PMIx, some of which say no more: number 0 may stand alone
OPEN_MPI, MPICH = "Open MPI", "MPICH"  # with MVAPICH, Intel MPI and Microsoft MPI

# who sets which variables: the number of processes, and which of them this is
_VARIABLES = (
    ("mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", OPEN_MPI),
    ("mpirun", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", MPICH),
    # a step of srun: within a job alone, SLURM_NTASKS says what could be started
    ("srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", ""),
    ("mpiexec", "PMI_SIZE", "PMI_RANK", MPICH),
)


def started(environment: Mapping[str, str] = os.environ) -> Started | None:
    """What started several processes, of which this is one; None where it stands alone.

    `LANEWISE_RANKS=alone` lets every process stand alone.
    """
    if environment.get(ALONE) == "alone":
        return None
    for by, size, rank, family in _VARIABLES:
        count, number = environment.get(size, ""), environment.get(rank, "")
        if count.isdecimal() and number.isdecimal() and int(count) > 1:
            return Started(by, int(number), int(count), family)
    number = environment.get(_PMIX, "")
    if number.isdecimal() and int(number) and not any(environment.get(v[1]) for v in _VARIABLES):
        return Started("prterun", int(number), 0)
    return None
