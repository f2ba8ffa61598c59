"""Clients of Dask distributed, on whose workers units of a search or of a scan are computed."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from lanewise.support.errors import InputError
from lanewise.support.installation import install

DEATHS = 10  # workers that a unit may take with it before it counts as the cause
GPU = "GPU"  # the resource that a worker of a cluster announces: dask worker --resources GPU=1


def check_installed() -> None:
    """Raise InputError where the package is missing; where it is there, Dask has its settings
    from now on.
    """
    if find_spec("distributed") is None:
        raise InputError(f"workers need the package distributed: {install('cluster')}")
    import_module("distributed")


@contextmanager
def quiet() -> Generator[None]:
    """No log of workers that die: that is expected, and their units are taken over."""
    log = logging.getLogger("distributed")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)


def client_of(cluster: Any) -> Any:
    """A client of a cluster, or of the scheduler at an address."""
    from distributed import Client

    try:
        return Client(cluster, timeout=10)
    except (OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(
            f"--scheduler {cluster}: no Dask scheduler answers there: {reason}"
        ) from error


@contextmanager
def connected_to(scheduler: str) -> Generator[Any]:
    """A client of the scheduler at an address, such as tcp://host:8786."""
    check_installed()
    from dask import config

    failures = config.set({"distributed.scheduler.allowed-failures": DEATHS})
    with failures, quiet(), client_of(scheduler) as client:
        yield client
