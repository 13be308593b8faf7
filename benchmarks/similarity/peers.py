"""Numbers of matches by computing all distances: STUMPY's `mass` per pattern, and one product of matrices.

Both are for unlimited scale and shift. A window matches if its correlation with the pattern is at least
sqrt(1 - epsilon²), with epsilon as a share of the pattern's deviation.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import stumpy

from benchmarks.similarity.workloads import Floats

# Windows in one product: small enough that products with 10,000 patterns stay in the cache of a core.
BLOCK = 256


def by_mass(series: Floats, patterns: Floats, epsilon: float) -> int:
    """STUMPY's MASS (Mueen's algorithm by FFT), which returns the distances of one pattern to all windows."""
    n = patterns.shape[1]
    reach = np.sqrt(2 * n * (1 - np.sqrt(1 - epsilon**2)))
    return sum(int(np.count_nonzero(stumpy.mass(values, series) <= reach)) for values in patterns)


def by_product(series: Floats, patterns: Floats, epsilon: float, kind: npt.DTypeLike = np.float64) -> int:
    """Products of all normal forms of windows with all normal forms of patterns, by BLAS."""
    n = patterns.shape[1]
    least = n * np.sqrt(1 - epsilon**2)
    normal = np.ascontiguousarray(_normal(patterns).astype(kind).T)
    windows = np.lib.stride_tricks.sliding_window_view(series, n)
    return sum(
        int(np.count_nonzero(_normal(windows[at : at + BLOCK]).astype(kind) @ normal >= least))
        for at in range(0, len(windows), BLOCK)
    )


def _normal(rows: Floats) -> Floats:
    normal: Floats = rows - rows.mean(axis=1, keepdims=True)
    normal /= normal.std(axis=1, keepdims=True)
    return normal
