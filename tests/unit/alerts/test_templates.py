"""Templates of notifications: mistakes are found before an alarm, and no template takes long."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tamis.messaging.column_names import ColumnNames
from tamis_alerts.core.notifications import Notification
from tamis_alerts.template_limits import RenderError
from tamis_alerts.templates import MOST_TEXT, check, render

EPISODE: dict[str, Any] = {
    "alert": "hot", "key": ["k1", 3], "episode": "e1", "event": "opened", "start": 0, "end": 5_000_000,
    "alarms": 3, "row": {"temp": 41.56, "name": "a<b", "ts": 1_500_000, "none": None},
    "severity": "page", "labels": {"team": "ops"},
}  # fmt: skip
NAMES = ColumnNames(("station", "level"), row_times=("ts",))
EVENT = Notification(EPISODE, NAMES, "https://tamis.example/#/alerts/hot")


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ('{{ alert }} {{ key|join(", ") }} {{ severity }} {{ labels.team }}', "hot k1, 3 page ops"),
        ('{{ "%.1f" % row.temp }} {{ "%5.1f"|format(row.temp) }} {{ row.temp|round(1) }}', "41.6  41.6 41.6"),
        ("{{ event }} {{ episode }} {{ id }} {{ alarms }} {{ seconds }}", "opened e1 e1:opened 3 5.0"),
        ("{{ start }} {{ row.ts|iso }}", "1970-01-01T00:00:00+00:00 1970-01-01T00:00:01.500000+00:00"),
        (
            "{% for n, v in row.items() if v is not none %}{{ n }}={{ v }};{% endfor %}",
            "temp=41.56;name=a<b;ts=1500000;",
        ),
        (
            '{{ labels.site|default("-") }} {{ row.name|upper }} {{ row.name[:1] }} {{ key[1] + 1 }}',
            "- A<B a 4",
        ),
        (
            '{% if event == "closed" %}over{% else %}{{ row|tojson }}{% endif %}',
            '{"name": "a\\u003cb", "none": null, "temp": 41.56, "ts": 1500000}',
        ),
        ("{% for i in range(3) %}{{ i * 2 }}{% endfor %}", "024"),
        ("{{ columns.station }} {{ columns['level'] + 1 }} {{ columns|length }}", "k1 4 2"),
        ("{{ link }}", "https://tamis.example/#/alerts/hot"),
        ("no values", "no values"),
        (
            "{{ key|reverse|join('-') }} {{ [3, 1, 3]|unique|sort|join }} {{ row|items|first|first }}",
            "3-k1 13 temp",
        ),
        ('{{ {"a": 1}|tojson(indent=1) }}', '{\n "a": 1\n}'),
        ('{{ alert ~ "/" ~ key[1] ~ severity|upper }} {{ "a-b"|replace("-", "") }}', "hot/3PAGE ab"),
        (
            "{% for v in key %}{{ loop.index }}/{{ loop.length }}{{ ',' if not loop.last }}{% endfor %}",
            "1/2,2/2",
        ),
    ],
)
def test_a_template_has_the_facts_of_an_event(source: str, text: str) -> None:
    assert render(check(source), EVENT) == text


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("\n\n{{ alrt }}", "line 3: there is no 'alrt'; there are: alarms, alert, "),
        ('{% if severity == "rare" %}{{ typo }}{% endif %}', "line 1: there is no 'typo'"),
        ("a\n{{ alert", "line 2: "),
        ("{% endfor %}", "line 1: "),
        ("{{ alert|nofilter }}", "line 1: .*there is no filter|line 1: No filter"),
        ("{{ alert|wordwrap(10) }}", "line 1: there is no filter 'wordwrap'"),
        ("{{ 2 ** 3 }}", "line 1: pow is not available"),
        ("{% set x = 1 %}", "line 1: assign is not available"),
        ('{% include "/etc/passwd" %}', "line 1: include is not available"),
        ("{% macro m() %}{% endmacro %}", "line 1: macro is not available"),
        ("{{ alert.__class__ }}", "unsafe"),
        ("{{ alert.center(1000000000) }}", "line 1: only range"),
        ("{% for i in range(1000000000) %}{% endfor %}", "at most 1,000 numbers"),
        ('{{ "a" * 1000000000 }}', "only numbers up to"),
        ("{{ 9000000000000000 * 9 }}", "only numbers up to"),
        ('{{ "%1000000000d" % 1 }}', "no number of more than two digits"),
        ('{{ "%*d"|format(1000000000, 1) }}', "no `\\*`"),
        (
            "{% for a in range(1000) %}{% for b in range(1000) %}x{% endfor %}{% endfor %}",
            "more than 100,000",
        ),
        (
            "{% for a in key %}{% for b in key %}{% for c in key %}{% endfor %}{% endfor %}{% endfor %}",
            "line 1: more than 2 loops",
        ),
        ("{% for a in [[]] recursive %}{{ loop(a) }}{% endfor %}", "line 1: .*recursive"),
        ("{{ row.name|truncate(2) }}", "expected length"),
        ("{{ " + "(" * 3_000 + "1" + ")" * 3_000 + " }}", "one within another"),
        ("{{ range(1000)|join('" + "x" * 5_000 + "') }}", "more than 100,000"),
        (
            "{{ range(1000)|join('" + "x" * 90 + "')|replace('x', '" + "y" * 9_000 + "') }}",
            "more than 100,000",
        ),
        ("{{ range(1000)|join(d='" + "x" * 90 + "')|replace('', '" + "y" * 9_000 + "') }}", "more than 100"),
        ("{{ [[1]]|tojson(indent=1000000000) }}", "at most 8 spaces"),
        ("{{ [[1]]|tojson(1000000000) }}", "at most 8 spaces"),
        ("{{ ([range(1000)|join('" + "x" * 90 + "')]) * 5 }}", "only numbers up to"),
        (
            "{% for t in [range(1000)|join('" + "x" * 90 + "')] %}{{ [" + "t," * 5_000 + "] }}{% endfor %}",
            "more than 100,000",
        ),
        (
            "{% for t in [range(1000)|join('"
            + "x" * 90
            + "')] %}{{ ["
            + "t," * 5_000
            + "]|upper }}{% endfor %}",
            "more than 100,000",
        ),
        (
            "{% for t in [range(1000)|join('" + "x" * 90 + "')] %}{{ t" + " ~ t" * 2_000 + " }}{% endfor %}",
            "more than 100 texts",
        ),
        (
            "{% for t in [range(1000)|join('" + "x" * 90 + "')] %}{{ t" + " + t" * 50 + " }}{% endfor %}",
            "more than 100,000",
        ),
        (
            "{% for t in [range(1000)|join('"
            + "x" * 90
            + "')] %}{{ '"
            + "%s" * 500
            + "'|format("
            + "t," * 500
            + ") }}{% endfor %}",
            "more than 100,000",
        ),
        (
            "{% for t in [range(1000)|join('" + "x" * 90 + "')] %}{{ [t,t]|join }}{% endfor %}",
            "more than 100,000",
        ),
        (
            "{% for t in [range(1000)|join('" + "x" * 90 + "')] %}"
            "{% for a in t %}{% if t|upper|lower == '' %}x{% endif %}{% endfor %}{% endfor %}",
            "takes longer than 1 s",
        ),
        (
            "{% for a in [range(1000)|join('" + "x" * 90 + "')][0] %}"
            "{% for b in [range(1000)|join('" + "x" * 90 + "')][0] %}{% endfor %}{% endfor %}",
            "takes longer than 1 s",
        ),
        (r"{{ '\ud83d\ude00' }}", "surrogates not allowed"),
    ],
)
def test_a_mistake_is_found_when_the_template_is_read(source: str, words: str) -> None:
    began = time.process_time()
    with pytest.raises(ValueError, match=words):
        check(source)
    assert time.process_time() - began < 5


def test_what_a_row_lacks_is_told_without_values() -> None:
    source = check("{{ row.temp }} {{ row.missing }}")
    with pytest.raises(RenderError, match="no attribute 'missing'"):
        render(source, EVENT)
    with pytest.raises(RenderError) as raised:
        render(check("{{ row.temp|iso }}"), Notification({**EPISODE, "row": {"temp": "secret"}}))
    assert "secret" not in str(raised.value)


def test_whatever_a_template_raises_for_an_event_is_an_error_of_the_template() -> None:
    source = check("{% if severity == 'page' and event == 'open' %}{{ row.name|truncate(2) }}{% endif %}")
    with pytest.raises(RenderError, match=r"^AssertionError$"):
        render(source, Notification({**EPISODE, "event": "open"}))
    with pytest.raises(RenderError) as raised:
        render(check("{{ labels[row.name] }}"), Notification({**EPISODE, "row": {"name": "a-secret"}}))
    assert "secret" not in str(raised.value)


def test_long_texts_are_cut_and_html_is_escaped() -> None:
    row = {"text": "x" * 1_000_000, "markup": "<script>"}
    source, long = check("{{ row.text }}"), Notification({**EPISODE, "row": row})
    assert len(render(source, long)) == MOST_TEXT + 1
    markup = check("<b>{{ row.markup }}</b>", html=True)
    assert render(markup, long, html=True) == "<b>&lt;script&gt;</b>"
    assert render(markup, long) == "<b><script></b>"
    assert render(markup, long, escape=lambda text: text[::-1]) == "<b>>tpircs<</b>"


def test_a_rendering_ends_at_its_limit_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tamis_alerts.template_limits.MOST_SECONDS", 0.0)
    source = "{% for a in row.text %}{% for b in row.text %}{{ a }}{% endfor %}{% endfor %}"
    with pytest.raises(RenderError, match="takes longer"):
        render(source, Notification({**EPISODE, "row": {"text": "x" * 2_000}}))
