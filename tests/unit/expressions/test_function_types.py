"""Functions of text and time in the JSON form: their types, and arguments that must be constants."""

from __future__ import annotations

from typing import Any

import pytest

from tamis.errors import InputError
from tamis.expressions.json_form import from_json, to_json

X = ["column", "a", "x", "DOUBLE"]
S = ["column", "a", "s", "VARCHAR"]
T = ["column", "a", "t", "TIMESTAMP"]


def text(value: str) -> list[str]:
    return ["literal", "VARCHAR", value]


def whole(value: int) -> list[Any]:
    return ["literal", "INT", value]


@pytest.mark.parametrize(
    "form",
    [
        ["round", "DOUBLE", X, whole(-22)],
        ["like", "BOOLEAN", S, text("a%")],
        ["like", "BOOLEAN", S, text("a!%"), text("!")],
        ["like", "BOOLEAN", S, text("a!!"), text("!")],
        ["date_part", "BIGINT", text("hour"), T],
        ["date_trunc", "TIMESTAMP", text("week"), T],
        ["substring", "VARCHAR", S, whole(2)],
        ["epoch", "DOUBLE", ["-", "INTERVAL", T, T]],
        ["coalesce", "DOUBLE", X, whole(0)],
    ],
    ids=lambda form: form[0],
)
def test_it_is_read_and_written(form: list[Any]) -> None:
    assert to_json(from_json(form)) == form


@pytest.mark.parametrize(
    ("form", "why"),
    [
        (["round", "DOUBLE", X, whole(23)], "constant number of digits"),
        (["round", "DOUBLE", X, ["column", "a", "n", "INT"]], "constant number of digits"),
        (["round", "INT", whole(5)], "does not take"),
        (["like", "BOOLEAN", S, S], "constant pattern"),
        (["like", "BOOLEAN", S, text("a!"), text("!")], "can't end with"),
        (["like", "BOOLEAN", S, text("a"), text("!!")], "one character"),
        (["like", "BOOLEAN", S, text("a"), text("é")], "one character"),
        (["date_part", "BIGINT", text("eon"), T], "constant field"),
        (["date_part", "BIGINT", S, T], "constant field"),
        (["date_trunc", "TIMESTAMP", text("dow"), T], "constant unit"),
        (["lower", "VARCHAR", X], "does not take"),
        (["substring", "VARCHAR", S, whole(1), whole(2), whole(3)], "does not take"),
        (["epoch", "BIGINT", T], "the result of epoch is DOUBLE"),
        (["coalesce", "DOUBLE", X], "does not take"),
        (["to_bigint", "BIGINT", whole(1)], "does not take"),
    ],
)
def test_a_wrong_form_is_refused(form: list[Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        from_json(form)
