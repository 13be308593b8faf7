"""Mean, deviation, normal form and similarity distance of sequences (goldin-1997, section 7.2)."""

from __future__ import annotations

from math import fsum, isfinite, sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.errors import InputError

Floats = npt.NDArray[np.float64]

# Greater magnitudes have squares whose sums may not be finite, smaller differences have squares of 0.
GREATEST, LEAST_DEVIATION = 1e150, 1e-150


class Moments(NamedTuple):
    """A sequence as mean plus centred values.

    `mean + mean_low` is the mean with twice the digits; `centred` are the values less their mean, of shape
    (n,); `deviation` is the square root of the mean of their squares.
    """

    mean: float
    mean_low: float
    deviation: float
    centred: Floats


def sequence(name: str, values: npt.ArrayLike) -> Floats:
    """The values as an array of shape (n,).

    Raises `InputError` unless there are at least two, all of them finite and of magnitude at most 1e150.
    """
    try:
        found = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"the values are not numbers: {error}", where=name) from None
    if found.ndim != 1 or len(found) < 2:
        raise InputError(
            f"a sequence of at least two numbers is needed, not an array of shape {found.shape}", where=name
        )
    wrong = np.flatnonzero(~(np.abs(found) <= GREATEST))
    if len(wrong):
        raise InputError(
            f"value {wrong[0]} is {found[wrong[0]]}",
            where=name,
            hint=f"finite numbers of magnitude up to {GREATEST:g} are needed",
        )
    return found


def moments(name: str, values: npt.ArrayLike) -> Moments:
    """Mean, deviation and centred values of a sequence. Raises `InputError` for a constant sequence too: it
    has no normal form.
    """
    found = sequence(name, values)
    n = len(found)
    listed = found.tolist()
    mean = fsum(listed) / n
    mean_low = fsum([*listed, *[-mean] * n]) / n
    centred: Floats = (found - mean) - mean_low
    deviation = sqrt(fsum((centred * centred).tolist()) / n)
    if not isfinite(deviation) or deviation < LEAST_DEVIATION or (found == found[0]).all():
        raise InputError("the values are all equal, so that they have no normal form", where=name)
    return Moments(mean, mean_low, deviation, centred)


def normal_form(x: npt.ArrayLike) -> Floats:
    """The sequence moved and scaled to mean 0 and deviation 1 (definition 29), of shape (n,).

    Sequences have the same normal form if and only if one is a times the other plus b, with a > 0. Raises
    `InputError` for a sequence of fewer than two values, of equal values, or of values that aren't finite.

    >>> normal_form([1.0, 2.0, 1.0, 2.0]), normal_form([10.0, 30.0, 10.0, 30.0])
    (array([-1.,  1., -1.,  1.]), array([-1.,  1., -1.,  1.]))
    """
    found = moments("x", x)
    normal: Floats = found.centred / found.deviation
    return normal


def distance(x: npt.ArrayLike, y: npt.ArrayLike) -> float:
    """The similarity distance of two sequences (definition 30): the square root of the mean of the squared
    differences of their normal forms. It is between 0 and 2.

    Raises `InputError` as `normal_form` does, and for sequences of different lengths.

    >>> distance([1, 2, 1, 2], [10, 30, 10, 30]), distance([1, 2], [2, 1])
    (0.0, 2.0)
    """
    one, other = moments("x", x), moments("y", y)
    if len(one.centred) != len(other.centred):
        raise InputError(
            f"sequences of the same length are needed, not of {len(one.centred)} and {len(other.centred)}"
        )
    differences = one.centred / one.deviation - other.centred / other.deviation
    return sqrt(fsum(differences * differences) / len(differences))
