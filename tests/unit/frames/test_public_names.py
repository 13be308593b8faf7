"""The names of `import tamis`, and what importing it loads."""

from __future__ import annotations

import subprocess
import sys
from importlib.resources import files

import pytest

import tamis

NAMES = [
    "Explanations",
    "InputError",
    "NotAcceptedError",
    "SqlErrors",
    "TamisError",
    "TamisWarning",
    "Verification",
    "explain",
    "omit",
    "plot_omission",
    "plot_retained",
    "run",
    "verify",
]


def test_the_names_are_these() -> None:
    """Programs of users use them: a name may be added, and none may go or change its meaning."""
    assert tamis.__all__ == NAMES
    assert set(NAMES) <= set(dir(tamis))
    for name in NAMES:
        assert getattr(tamis, name).__doc__
    with pytest.raises(AttributeError, match="module 'tamis' has no attribute 'verifi'"):
        tamis.verifi  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'plot'; it has plot_omission and plot_retained"):
        tamis.plot  # noqa: B018


def test_the_package_says_that_it_is_typed() -> None:
    assert files("tamis").joinpath("py.typed").is_file()


def test_importing_tamis_loads_nothing_else() -> None:
    """`tamis --help` and every service import the package."""
    code = (
        "import sys, tamis;"
        "print(*sorted(m for m in sys.modules if m.startswith(('tamis.', 'numpy', 'pyarrow'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


def test_functions_over_arrow_import_no_library_of_frames() -> None:
    """pandas and Polars are no dependencies: the functions work where they can't be imported."""
    code = '''
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in ("pandas", "polars", "matplotlib"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
import pyarrow as pa, tamis
frame = pa.table({"ts": pa.array([0, 1, 2], pa.timestamp("s")), "v": [2.0, 1.0, 3.0]})
sql = """CREATE STREAM s (ts TIMESTAMP, v DOUBLE, WATERMARK FOR ts AS ts);
  CREATE ALERT high AS SELECT v FROM s WHERE v > 1"""
print(tamis.run(sql, {"s": frame})["v"].to_pylist())
print(tamis.omit(frame, "5s", value="v", sides="above")["v"].to_pylist())
print(tamis.verify(sql, {"s": frame}).same, tamis.explain(sql).accepted)
'''
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[2.0, 3.0]\n[2.0, 3.0]\nTrue True\n"


def test_a_missing_package_is_named_with_the_extra() -> None:
    code = "import sys; sys.modules['sqlglot'] = None; import tamis; tamis.run"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: tamis.run needs the Python package 'sqlglot'; install tamis[tools]"
    )
