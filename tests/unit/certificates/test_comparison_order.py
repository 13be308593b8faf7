"""The values that edges compare so that proofs about exact numbers hold, and EXPLAIN's notes on rounding."""

from __future__ import annotations

import pytest
from tests.unit.certificates.catalogs import NEAR, verdict_of

from tamis.expressions.sql_text import to_sql
from tamis.plan.omission import Omission
from tamis.planning.explain import explain
from tamis.planning.explanations.text import text as shown
from tamis.planning.join_verdict import judge
from tamis.query.parse import catalog_of

WIDE = "CHECK ({0} BETWEEN -1e18 AND 1e18)"
SMALL = "CHECK ({0} BETWEEN -100 AND 100)"
POSITIVE = "CHECK ({0} BETWEEN 1 AND 100)"
DEW = "243.04 * ln(a.x / 100) / (17.625 - ln(a.x / 100) - a.y / 50)"


def streams(a: str, b: str = SMALL) -> str:
    of_a = ", ".join(f"{name} DOUBLE NOT NULL {a.format(name)}" for name in "xyz")
    return f"""CREATE STREAM a (k INT KEY, ts TIMESTAMP, {of_a},
      WATERMARK FOR ts AS ts - INTERVAL '1' SECOND);
    CREATE STREAM b (k INT KEY, ts TIMESTAMP, x DOUBLE NOT NULL {b.format("x")},
      WATERMARK FOR ts AS ts - INTERVAL '1' SECOND);"""


def omission(condition: str, domain: str = WIDE) -> Omission:
    sql = streams(domain) + f"CREATE ALERT q AS SELECT a.k FROM a JOIN b ON {NEAR} WHERE {condition};"
    catalog = catalog_of(sql)
    return judge(catalog.alerts["q"], catalog).omissions[0]


@pytest.mark.parametrize(
    ("condition", "domain", "value", "how"),
    [
        ("a.x > b.x", WIDE, "a.x", "as it is"),
        ("GREATEST(a.x, a.y) > b.x", WIDE, "greatest(a.x, a.y)", "as it is"),
        ("1.8 * a.x + 32 > b.x", WIDE, "a.x", "as it is"),
        ("ln(a.x / 100) + b.x > 3", POSITIVE, "ln(a.x / 100)", "margin"),
        ("exp(a.x / 7) * b.x > 3", POSITIVE, "a.x", "as it is"),
        ("exp(a.x / 70) * b.x > 3", POSITIVE, "exp(a.x / 70)", "margin"),
        (f"{DEW} - b.x > 0.5", POSITIVE, DEW, "margin"),
        ("a.x * a.y > b.x", WIDE, "a.x * a.y", "margin"),
        ("a.x - a.y + b.x > 12", WIDE, "a.x - a.y", "margin"),
        ("a.x + b.x - a.y > 12", WIDE, "a.x - a.y", "exact"),
        ("a.x * a.y - a.z > b.x", WIDE, "a.x * a.y - a.z", "exact"),
        ("a.x + a.y * 0.1 + b.x - a.z / 3 > 12", SMALL, None, "exact"),
    ],
)
def test_what_is_compared(condition: str, domain: str, value: str | None, how: str) -> None:
    found = omission(condition, domain)
    assert found.value is not None, found.reason
    assert value is None or to_sql(found.value) == value
    assert {"as it is": (False, False), "margin": (False, True), "exact": (True, False)}[how] == (
        found.exact,
        found.margin is not None,
    )


def test_a_value_that_rounding_may_move_far_is_not_compared() -> None:
    found = omission("a.x / a.y - a.z > b.x", "CHECK ({0} BETWEEN 1 AND 1e18)")
    assert found.value is None
    assert found.reason.startswith(
        "no omission: a.x / a.y - a.z may be rounded by as much as 4.4e+02 over the declared domains; "
        "declare CHECKs that bound its columns"
    )
    assert omission("a.x / a.y - a.z > b.x", POSITIVE).margin is not None
    apart = omission("a.x / a.y + b.x - ln(a.z) > 3", POSITIVE)
    assert apart.reason == (
        "no omission: a.x / a.y - ln(a.z) stands in several terms, which are rounded separately; "
        "write them side by side"
    )


def test_explain_says_what_rounding_may_do_and_what_avoids_it() -> None:
    found = omission("a.x + b.x - a.y > 12")
    assert found.reason == (
        "a tuple between two higher ones within 10 s is omitted. Rounding may change a.x + b.x - a.y by up "
        "to 1.1e+02 over the declared domains, which is not small against the threshold 12. Declare "
        "narrower CHECKs for a.x, a.y, or write a.x - a.y + b.x"
    )
    for condition, domain in (
        ("a.x + b.x - a.y > 12", SMALL),
        ("a.x - a.y + b.x > 12", SMALL),
        ("a.x - b.x > 12", WIDE),
        ("a.x > b.x", WIDE),
        (f"{DEW} - b.x > 0.5", POSITIVE),
    ):
        assert "Rounding" not in omission(condition, domain).reason


def test_explain_prints_it() -> None:
    sql = streams(WIDE) + f"CREATE ALERT q AS SELECT a.k FROM a JOIN b ON {NEAR} WHERE a.x + b.x - a.y > 12;"
    found = explain(catalog_of(sql), "q")
    text = " ".join(shown(found, verbose=True).split())
    assert text.count("Rounding may change a.x + b.x - a.y by up to 1.1e+02") == 1  # not once a stream
    assert text.count("Declare narrower CHECKs") == 1
    assert "Rounding may change" in found.document()["streams"][0]["omission"]["reason"]


def test_unbounded_columns_of_the_test_catalogue() -> None:
    a, _ = verdict_of("a.x + b.x - a.y > 3").omissions
    assert a.exact and "Rounding may change" in a.reason
