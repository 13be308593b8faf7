"""The HTML of explanations and verdicts: well-formed, complete and escaped."""

from __future__ import annotations

from html.parser import HTMLParser

import pyarrow as pa

import tamis
from tamis.frames.explain import explained_html, verdicts_html
from tamis.offline.explain import Explained

TIMES = pa.array([1_700_000_000 + second for second in range(3)], pa.timestamp("s"))
STREAM = """
CREATE STREAM vib (k VARCHAR KEY, ts TIMESTAMP, v DOUBLE, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)
  WITH (keys = 2);
"""
PAIR = """
CREATE ALERT pair AS SELECT x.ts FROM vib x JOIN vib y ON x.k = y.k
  AND y.ts BETWEEN x.ts AND x.ts + INTERVAL '5' SECOND
WHERE x.v > 3 AND x.v < 90 AND x.k <> '<script>alert(1)</script>' AND y.v - x.v > 2;
"""


class Page(HTMLParser):
    """Checks that tags are closed, and collects them and the text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_explanations_show_each_source_and_their_text() -> None:
    frame = pa.table({"k": ["n"] * 3, "ts": TIMES, "v": [5.0, 4.0, 9.0]})
    found = tamis.explain(STREAM + PAIR, {"vib": frame})
    page = Page(found._repr_html_())
    text = "".join(page.texts)
    assert "alert pair accepted" in text and "vib as x" in text and "vib as y" in text
    assert "of 3 (" in text and text.count(found.text(verbose=True)) == 1
    assert not {"script", "b"} & set(page.tags)


def test_text_of_the_query_is_escaped() -> None:
    html = tamis.explain(STREAM + PAIR)._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "<script>alert(1)</script>" in "".join(Page(html).texts)


def test_refused_queries_and_changes_say_why() -> None:
    sql = "CREATE STREAM s (a INT, b INT); CREATE STREAM t (a INT, b INT);"
    refused = tamis.explain(sql + "CREATE ALERT q AS SELECT s.a FROM s, t WHERE s.a = t.a")
    text = "".join(Page(refused._repr_html_()).texts)
    assert "alert q refused" in text and "would be bounded with: " in text
    assert explained_html(Explained((), ())) == "<p>no query: nothing to explain</p>"


def test_verdicts_are_a_table() -> None:
    frame = pa.table({"k": ["n"] * 3, "ts": TIMES, "v": [5.0, 4.0, 9.0]})
    found = tamis.verify(STREAM + PAIR, {"vib": frame})
    page = Page(found._repr_html_())
    assert page.tags.count("tr") == 2 and "same" in page.texts and "differs" not in page.texts
    assert str(found) in page.texts
    (verdict,) = found
    worse = type(verdict)(**{**verdict.to_json(), "missed": 1_234, "query": "<i>"})
    html = verdicts_html([worse], "<i>")
    assert {"<i>", "differs", "1,234"} <= set(Page(html).texts) and "<i>" not in html
