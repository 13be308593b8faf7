"""Kernels compiled ahead of time, compared bit by bit with those that numba compiles at their first call.

They take only the types for which they were compiled. A few kernels are compiled here; `make test-containers`
compares all of them, in images.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tamis.errors import UnavailableError
from tamis.expressions.double_order import write_numbers
from tamis.expressions.functions import libm
from tamis.kernels import PrecompiledKernel, check, precompiled
from tamis.operators.time_join.temporal_join import expand
from tamis.row_order import _ascending

DOUBLES = arrays(np.float64, st.integers(0, 20), elements=st.floats(allow_subnormal=True))

# In a process of its own: numba's dispatcher records a combination of types only once.
PROGRAM = """
import sys
import numpy as np
from pathlib import Path
from tamis.expressions.double_order import write_numbers
from tamis.expressions.functions.libm import _exp, _power
from tamis.operators.time_join.temporal_join import expand
from tamis.row_order import _ascending
from tamis.kernel_directory import sign
from tamis.precompile_kernels import precompile

def run():
    one, two = np.ones(1), np.arange(2)
    write_numbers(one, 0, two[:1])
    _exp(one, one)
    _power(one, one, one)
    _ascending(two)
    expand(two, two)

precompile(Path(sys.argv[1]), run)
sign(Path(sys.argv[1]))
"""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None or shutil.which("g++") is None:
        pytest.skip("kernels are compiled ahead of time only where a C compiler is installed")
    directory = tmp_path_factory.mktemp("kernels")
    subprocess.run([sys.executable, "-c", PROGRAM, str(directory)], check=True)
    return directory


@pytest.fixture(scope="module")
def version_of(directory: Path) -> Callable[[Any], PrecompiledKernel]:
    """The version compiled ahead of time of one of numba's kernels."""
    decorator = precompiled(directory)
    return lambda kernel: decorator(kernel.py_func, cache=True)


def same_bits(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    return one.dtype == other.dtype and one.tobytes() == other.tobytes()


@given(values=DOUBLES)
def test_results_are_equal_bit_by_bit(
    values: np.ndarray[Any, Any], version_of: Callable[[Any], PrecompiledKernel]
) -> None:
    numbers, ahead = np.empty(len(values), np.int64), np.empty(len(values), np.int64)
    write_numbers(values, 7, numbers)
    version_of(write_numbers)(values, 7, ahead)
    assert same_bits(numbers, ahead)
    powers, ahead_powers = np.empty(len(values)), np.empty(len(values))
    libm._power(values, values[::-1].copy(), powers)
    version_of(libm._power)(values, values[::-1].copy(), ahead_powers)
    assert same_bits(powers, ahead_powers)


@given(keys=arrays(np.int64, st.integers(0, 50), elements=st.integers(0, 9)))
def test_kernels_that_return_arrays_and_flags(
    keys: np.ndarray[Any, Any], version_of: Callable[[Any], PrecompiledKernel]
) -> None:
    assert version_of(_ascending)(keys) is _ascending(keys)
    expected = expand(keys, keys + 2)
    assert all(map(same_bits, version_of(expand)(keys, keys + 2), expected))


@pytest.mark.parametrize("count", [0, 1, 2])
def test_powers_of_a_column_and_one_number(
    count: int, version_of: Callable[[Any], PrecompiledKernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrays of no or one element, made by broadcasting, are contiguous, but must not be written to."""
    monkeypatch.setattr(libm, "_power", version_of(libm._power))
    assert libm.power(np.full(count, 3.0), 2.0).tolist() == [9.0] * count
    assert libm.power(2.0, np.full(count, 3.0)).tolist() == [8.0] * count


def test_the_table_names_the_types_of_each_kernel(directory: Path) -> None:
    table = orjson.loads((directory / "kernels.json").read_bytes())
    (version,) = table["tamis.expressions.double_order.write_numbers"]
    doubles, numbers = ({"dtype": name, "dimensions": 1} for name in ("float64", "int64"))
    assert version["parameters"] == [doubles, "int64", numbers]


@pytest.mark.parametrize(
    "values",
    [np.zeros(2, np.float32), np.zeros((2, 1)), np.zeros(4)[::2], [0.0, 0.0]],
    ids=["another type", "two dimensions", "not contiguous", "a list"],
)
def test_arguments_of_other_types_never_reach_compiled_code(
    values: Any, version_of: Callable[[Any], PrecompiledKernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.setenv("TAMIS_KERNELS", "/opt/tamis/kernels")
    with pytest.raises(UnavailableError, match=r"double_order\.write_numbers was not compiled") as raised:
        version_of(write_numbers)(values, 0, np.zeros(2, np.int64))
    assert raised.value.where == "/opt/tamis/kernels" and "numba" in str(raised.value.hint)


def test_numba_compiles_for_other_types_where_it_is_installed(
    version_of: Callable[[Any], PrecompiledKernel],
) -> None:
    out = np.zeros(2, np.int64)
    version_of(write_numbers)(np.array([5e-324, 7.0, 0.0])[::2], 0, out)
    assert out.tolist() == [1, 0]


def test_a_kernel_that_numba_compiles_can_call_a_precompiled_one(
    version_of: Callable[[Any], PrecompiledKernel],
) -> None:
    from numba import njit

    ascending = version_of(_ascending)

    @njit
    def descending(values: Any) -> Any:
        return ascending(values[::-1])

    assert descending(np.array([3, 2, 1])) and not descending(np.array([1, 2]))


def test_arguments_may_be_named(version_of: Callable[[Any], PrecompiledKernel]) -> None:
    out = np.zeros(1, np.int64)
    version_of(write_numbers)(np.zeros(1), out=out, not_finite=3)
    assert out.tolist() == [0]


@pytest.mark.parametrize(
    ("value", "scalar"),
    [(1, "int64"), (np.int64(1), "int64"), (True, "bool"), (0.5, "float64"), (np.uint64(1), "uint64")],
)
def test_a_scalar_has_the_type_that_numba_gives_it(value: Any, scalar: str) -> None:
    from numba import typeof

    kind = typeof(value)  # type: ignore[no-untyped-call]
    assert str(kind) in (scalar, "boolean")
    assert [name for name in ("bool", "float64", "int64", "uint64") if check(name)(value)] == [scalar]


def test_a_directory_without_kernels_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="precompile_kernels"):
        precompiled(tmp_path)
