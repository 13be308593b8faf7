"""Python functions: declared in SQL, found in TAMIS_FUNCTIONS, called for retained tuples."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from tests.fixtures import installed
from tests.unit.certificates.catalogs import NEAR, TWO

from tamis.cli import main
from tamis.declarations.definitions import FunctionDef
from tamis.errors import InputError
from tamis.expressions import python_functions
from tamis.expressions.evaluate import evaluate
from tamis.expressions.json_form import from_json, to_json
from tamis.expressions.nodes import Column, Literal, Type
from tamis.expressions.python_functions import FunctionError
from tamis.expressions.sql_text import to_sql
from tamis.expressions.vectors import Vector
from tamis.planning.explain import explain
from tamis.planning.explanations.explanation import SourceExplanation
from tamis.query.parse import catalog_of, parse

FUNCTIONS = """
CREATE FUNCTION wear(x DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS 'wear' MONOTONE INCREASING;
CREATE FUNCTION cool(load DOUBLE, wind DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS 'cooling'
  MONOTONE INCREASING IN (load) MONOTONE DECREASING IN (wind);
CREATE FUNCTION either(x DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS 'wear' MONOTONE;
CREATE FUNCTION bowl(x DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS 'bowl' QUASICONVEX;
CREATE FUNCTION dark(x DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS 'dark';
"""
X = Column("a", "x", Type.DOUBLE)


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(python_functions.SETTING, "tests.fixtures.installed")
    python_functions.clear_caches()
    installed.seen.clear()
    yield
    python_functions.clear_caches()


def explained(condition: str) -> tuple[SourceExplanation, ...]:
    sql = f"CREATE ALERT q AS SELECT a.k FROM a JOIN b ON {NEAR} WHERE {condition}"
    return explain(catalog_of(TWO, FUNCTIONS, sql), "q").streams


TRUSTED = "trusted, by what is declared of "


@pytest.mark.parametrize(
    ("condition", "a", "b"),
    [
        # Omission works on what the function is called with, and the function waits for what is left.
        ("wear(a.x) + b.x > 3", ("x", "above", True), ("x", "above", False)),
        ("wear(a.x - a.y) > b.x", ("x - y", "above", True), ("x", "below", False)),
        ("-wear(2 * a.x) > b.x", ("x", "below", True), ("x", "below", False)),
        ("cool(a.x, b.x) > 5", ("x", "above", True), ("x", "below", True)),
        ("either(a.x) * b.x > 5", ("x", "both", True), ("x", "both", False)),
        ("bowl(a.x) > b.x", ("x", "both", True), ("x", "below", False)),
        ("wear(a.x) > 3 AND a.x + b.x > 5", ("x", "above", True), ("x", "above", False)),
        ("cool(a.x, 0 - a.x) > b.x", ("x", "above", True), ("x", "below", False)),
        # Else the edge calls it, for every tuple.
        ("cool(a.x, a.y) > b.x", ("cooling(x, y)", "above", False), ("x", "below", False)),
        ("bowl(a.x) < b.x", ("bowl(x)", "below", False), ("x", "above", False)),
        ("dark(a.x) > b.x", ("dark(x)", "above", False), ("x", "below", False)),
    ],
)
def test_omission_by_what_is_declared(
    condition: str, a: tuple[str, str, bool], b: tuple[str, str, bool]
) -> None:
    for source, (value, sides, trusted) in zip(explained(condition), (a, b), strict=True):
        assert (source.value, source.sides) == (value, sides), source
        assert str(source.certificate).startswith(TRUSTED) is trusted


def test_a_predicate_that_spares_no_calls_is_a_filter() -> None:
    late, _ = explained("wear(a.x) > 3 AND a.x + b.x > 5")
    assert late.predicate is None
    early, _ = explained("wear(a.x) > 3 AND b.x - a.x > 5")
    assert early.predicate == "wear(x) > 3" and early.sides == "below"


def test_only_name_and_shape_travel() -> None:
    (function,) = (
        s for s in parse(FUNCTIONS, catalog_of()) if isinstance(s, FunctionDef) and s.name == "cool"
    )
    form = to_json(function.body)
    assert form[:4] == ["python", "DOUBLE", ["literal", "VARCHAR", "cooling"], ["literal", "VARCHAR", "+-"]]
    assert from_json(json.loads(json.dumps(form))) == function.body
    assert to_sql(function.body) == "cooling(load, wind)"
    form[3][2] = "+"
    with pytest.raises(InputError, match="a letter of"):
        from_json(form)


def test_null_and_what_is_not_finite() -> None:
    call = python_functions.opaque("holes", "?", (X,))
    column = Vector(np.array([1.0, -1.0, 0.0, 1.0]), np.array([False, False, False, True]))
    assert evaluate(call, {("a", "x"): column}, 4).to_list() == [0.0, None, None, None]
    constant = python_functions.opaque("holes", "?", (Literal(1.0, Type.DOUBLE),))
    assert evaluate(constant, {}, 2).to_list() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere", "'nowhere' isn't installed here; set TAMIS_FUNCTIONS"),
        ("_found", "isn't installed here"),
        ("system", "isn't installed here"),
        ("wrong", r"an array of shape \(1,\) for 2 rows"),
        ("broken", "ValueError: no table for this machine"),
    ],
)
def test_what_is_missing_or_breaks_the_contract(name: str, message: str) -> None:
    column = Vector(np.array([1.0, 2.0]), None)
    with pytest.raises(FunctionError, match=message):
        evaluate(python_functions.opaque(name, "?", (X,)), {("a", "x"): column}, 2)


def test_a_module_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(python_functions.SETTING, "no_such_module_at_all")
    python_functions.clear_caches()
    with pytest.raises(FunctionError, match="can't be imported"):
        python_functions.installed("wear")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(x DOUBLE) RETURNS INT LANGUAGE PYTHON AS 'f'", "must return DOUBLE"),
        ("(x DOUBLE) RETURNS DOUBLE LANGUAGE JAVA AS 'f'", "expected PYTHON, found 'JAVA'"),
        (
            "(x DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS f",
            "expected the name of the function in single quotes",
        ),
        (
            "(x DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS 'os.system'",
            "isn't a valid name of a Python function",
        ),
        ("(x VARCHAR) RETURNS DOUBLE LANGUAGE PYTHON AS 'f'", "Python functions take only numbers"),
        ("() RETURNS DOUBLE LANGUAGE PYTHON AS 'f'", "needs at least one parameter"),
        (
            "(x DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS 'f' CONVEX",
            "expected MONOTONE or QUASICONVEX, found 'CONVEX'",
        ),
        ("(x DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS 'f' MONOTONE IN (y)", "there is no parameter 'y'"),
        ("(x DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS 'f' MONOTONE QUASICONVEX", "two shapes are declared"),
    ],
)
def test_mistakes(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse(f"CREATE FUNCTION g{text}", catalog_of())


def test_no_check_calls_python() -> None:
    text = "CREATE STREAM s (k INT KEY, ts TIMESTAMP, x DOUBLE CHECK (wear(x) > 3))"
    with pytest.raises(InputError, match="a CHECK can't call a Python function"):
        parse(text, catalog_of(FUNCTIONS))


def recordings(folder: Path) -> list[str]:
    rng = random.Random(5)
    options = []
    for name in "ab":
        rows = [f"1,{t * 50_000},{rng.randint(0, 4000) / 100}" for t in range(1_000)]
        (folder / f"{name}.csv").write_text("k,ts,x\n" + "\n".join(rows) + "\n")
        options += ["--input", f"{name}={folder / name}.csv"]
    return options


STREAMS = """
CREATE STREAM a (k INT KEY, ts TIMESTAMP, x DOUBLE CHECK (x BETWEEN 0 AND 40),
  WATERMARK FOR ts AS ts - INTERVAL '1' SECOND);
CREATE STREAM b (k INT KEY, ts TIMESTAMP, x DOUBLE CHECK (x BETWEEN 0 AND 40),
  WATERMARK FOR ts AS ts - INTERVAL '1' SECOND);
"""


def test_it_is_called_for_what_omission_leaves_and_verify_agrees(tmp_path: Path) -> None:
    sql = tmp_path / "alerts.sql"
    condition = "wear(a.x) + b.x > 81"
    alert = "CREATE ALERT q WITH (allow_unbounded = true) AS SELECT a.k, wear(a.x) AS w, b.x FROM a JOIN b"
    sql.write_text(f"{STREAMS}{FUNCTIONS}{alert} ON {NEAR} WHERE {condition};")
    inputs = recordings(tmp_path)
    ran = CliRunner().invoke(main, ["run", str(sql), *inputs, "-o", str(tmp_path / "out.csv")])
    assert ran.exit_code == 0, ran.output
    called = len(installed.seen)
    verified = CliRunner().invoke(main, ["verify", str(sql), *inputs, "--json"])
    assert verified.exit_code == 0, verified.output
    (verdict,) = json.loads(verified.stdout)
    assert verdict["missed"] == verdict["extra"] == 0 and verdict["alarms"] > 0
    # Both streams' retained tuples are counted together; of one of them the function is called.
    assert 0 < called <= verdict["retained"] < verdict["tuples"] / 4
    assert len(set(installed.seen[:called])) == called, "no value twice"


def test_run_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = tmp_path / "alerts.sql"
    absent = "CREATE FUNCTION absent(x DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS 'absent' MONOTONE;"
    alert = "CREATE ALERT q WITH (allow_unbounded = true) AS SELECT a.k FROM a JOIN b"
    sql.write_text(f"{STREAMS}{absent}{alert} ON {NEAR} WHERE absent(a.x) > b.x;")
    ran = CliRunner().invoke(main, ["run", str(sql), *recordings(tmp_path)])
    assert ran.exit_code == 2
    assert "the function 'absent' isn't installed here; set TAMIS_FUNCTIONS" in ran.output


def test_a_single_stream_in_windows_calls_it_for_each_window_s_highest(tmp_path: Path) -> None:
    """cai-2021, section 3.5: with one stream there is nothing to join, and yet calls to spare."""
    sql = tmp_path / "alerts.sql"
    source = "TUMBLE(a, ts, INTERVAL '5' SECOND)"
    alert = f"CREATE ALERT q WITH (allow_unbounded = true) AS SELECT k, x FROM {source} WHERE wear(x) > 40"
    sql.write_text(f"{STREAMS}{FUNCTIONS}{alert};")
    inputs = recordings(tmp_path)[:2]
    ran = CliRunner().invoke(main, ["run", str(sql), *inputs, "-o", str(tmp_path / "out.csv")])
    assert ran.exit_code == 0, ran.output
    assert len(installed.seen) <= 11, "50 s of readings"
    verified = CliRunner().invoke(main, ["verify", str(sql), *inputs, "--json"])
    assert verified.exit_code == 0, verified.output
    (verdict,) = json.loads(verified.stdout)
    assert verdict["missed"] == verdict["extra"] == 0 and verdict["alarms"] > 0
    assert verdict["reference_alarms"] > verdict["alarms"]
