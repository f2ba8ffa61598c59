"""The campaigns of random programs, one a pattern: on a CPU (and what needs no GPU of one), and on a GPU."""

from __future__ import annotations

from tests.fuzz.campaign import Campaign, Case
from tests.fuzz.patterns import PATTERNS
from tests.fuzz.trial import tried

BY_NAME = {p.name: p for p in PATTERNS}
ON_A_GPU = "-cuda"


def body(case: Case) -> str:
    """A program of the pattern that the campaign is named after."""
    return tried(case, BY_NAME[case.campaign])


def body_on_a_gpu(case: Case) -> str:
    """The same on a GPU, with its default plan and a random one."""
    return tried(case, BY_NAME[case.campaign.removesuffix(ON_A_GPU)], "cuda")


CAMPAIGNS = tuple(Campaign(p.name, body, limit=240.0, renew=150) for p in PATTERNS)
CAMPAIGNS_ON_A_GPU = tuple(Campaign(p.name + ON_A_GPU, body_on_a_gpu, limit=240.0, renew=400) for p in PATTERNS)
