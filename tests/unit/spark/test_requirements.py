"""The names of `tamis.spark`, and what it says about a missing or an old PySpark."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tamis.spark
from tamis.spark.requirements import check_version


def test_the_names_are_these() -> None:
    """Programs of users use them: a name may be added, and none may go or change its meaning."""
    assert tamis.spark.__all__ == ["retain", "temporal_join"]
    for name in tamis.spark.__all__:
        assert getattr(tamis.spark, name).__doc__


@pytest.mark.parametrize("package", ["pyspark", "google.protobuf", "pandas"])
def test_a_missing_package_is_named_with_the_extra(package: str) -> None:
    code = f"import sys; sys.modules[{package!r}] = None; import tamis.spark"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    name = package.rpartition(".")[2]
    assert done.stderr.splitlines()[-1] == (
        f"ModuleNotFoundError: tamis.spark needs the Python package '{name}'; install tamis[spark]"
    )


def test_an_old_version_is_refused() -> None:
    for version in ("4.1.0", "4.2.0.dev1", "5.0.0"):
        check_version(version)
    for version in ("3.5.6", "4.0.1"):
        with pytest.raises(ImportError, match=f"needs PySpark 4.1 or newer, and {version} is installed"):
            check_version(version)
