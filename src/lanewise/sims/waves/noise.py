"""The noise of SFTs: running median over bins, normalised data, one weight an SFT.

The median of |X|^2 over a window of W bins, divided by its bias for exponentially distributed
power, estimates T S_n / 2 (S_n: single-sided power spectral density). Krishnan et al., Phys. Rev. D
70, 082001 (2004); weights: LIGO-T0900149, eqs. 58 to 60.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lanewise.support.checks import checked
from lanewise.support.errors import InputError

Floats = NDArray[np.float64]
WINDOW = 101
PART = 1 << 22  # numbers that are sorted at a time


@checked(InputError)
def median_bias(window: int) -> float:
    """The median over the mean of `window` exponentially distributed numbers: 1 - 1/2 + 1/3 - ...
    +- 1/window, ln 2 for many.

    For even windows it is that of one number fewer, as LAL has it. Raises InputError below 3.
    """
    if window < 3:
        raise InputError(f"the window of the running median is {window} bins; wanted at least 3")
    k = np.arange(1, window + window % 2)
    return float(np.sum((-1.0) ** (k + 1) / k))


def running_median(power: Floats, window: int = WINDOW) -> Floats:
    """T S_n / 2 from |X|^2: (n, bins) to (n, bins).

    The outermost window // 2 bins have the nearest value that there is.

    Raises InputError where the SFTs have fewer bins than the window.
    """
    bias = median_bias(window)
    n, bins = power.shape
    if bins < window:
        raise InputError(
            f"the running median needs {window} bins, and the SFTs have {bins}: load a wider band"
        )
    valid = bins - window + 1
    result = np.empty_like(power)
    middle = result[:, window // 2 : window // 2 + valid]
    rows = max(1, PART // (window * valid))
    columns = max(1, PART // window)
    for i in range(0, n, rows):
        windows = np.lib.stride_tricks.sliding_window_view(power[i : i + rows], window, axis=1)
        for j in range(0, valid, columns):
            middle[i : i + rows, j : j + columns] = (
                np.median(windows[:, j : j + columns], axis=-1) / bias
            )
    result[:, : window // 2] = result[:, window // 2, None]
    result[:, window // 2 + valid :] = result[:, window // 2 + valid - 1, None]
    return result


def noise_floor(
    data: NDArray[np.complex64], duration: float, window: int = WINDOW, sqrt_s: float | None = None
) -> Floats:
    """T S_n / 2 of every bin: by running median, or from an assumed sqrt(S_n) in 1/sqrt(Hz)."""
    if sqrt_s is not None:
        return np.full(data.shape, duration * sqrt_s**2 / 2)
    power = data.real.astype(np.float64) ** 2 + data.imag.astype(np.float64) ** 2
    return running_median(power, window)


def normalised(data: NDArray[np.complex64], floor: Floats) -> NDArray[np.complex64]:
    """X / sqrt(T S_n / 2), complex64: each of its two parts has the variance 1/2.

    The factor is rounded to float32 first, as in LAL.
    """
    return data * (1 / np.sqrt(floor)).astype(np.float32)


def raw_weights(floor: Floats, window: int = WINDOW) -> Floats:
    """1 / mean of T S_n / 2 for each SFT, over the bins whose median is their own."""
    half = window // 2
    return 1 / floor[:, half : floor.shape[1] - half].mean(axis=1)
