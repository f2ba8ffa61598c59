"""A plan of the zoo that computes something else than the default one is seen, and no other is."""

import numpy as np
import pytest

from bench.zoo_case import differing

VALUES = (1.0, 2.0, np.nan, np.inf)


@pytest.mark.parametrize("unwritten", [-7777.0, np.nan])
@pytest.mark.parametrize(
    ("found", "wrong"),
    [
        (VALUES, False),
        ((1.0, 2.0, np.nan, 3.0), True),
        ((1.0, 2.0, 0.0, np.inf), True),
        ((np.nan, 2.0, np.nan, np.inf), True),
        ((1.0, 2.1, np.nan, np.inf), True),
        ((1.0, 2.0, np.nan, -np.inf), True),
    ],
)
def test_what_differs_is_seen(unwritten: float, found: tuple[float, ...], *, wrong: bool) -> None:
    results = np.zeros((4, 2), np.float32)  # of which no plan writes the second column

    def default() -> None:
        results[:, 0] = VALUES

    def other() -> None:
        results[:, 0] = found

    with np.errstate(invalid="ignore"):
        said = differing(np, {"default": default, "other": other}, results, unwritten)
    assert said == ("other differs from the default plan" if wrong else "")
    assert np.array_equal(results[:, 0], np.array(VALUES, np.float32), equal_nan=True)


@pytest.mark.parametrize("kind", [np.bool_, np.int32, np.uint32])
@pytest.mark.parametrize("wrong", [False, True])
def test_whole_numbers_have_no_roundings(kind: type, *, wrong: bool) -> None:
    results = np.zeros(3, kind)
    wanted = np.array([0, 1, 10_000_000]).astype(kind)

    def default() -> None:
        results[:] = wanted

    def other() -> None:
        results[:] = wanted
        if wrong:
            results[2] = wanted[2] == 0 if kind is np.bool_ else wanted[2] - 1

    assert (differing(np, {"default": default, "other": other}, results, 1234567.0) != "") == wrong
