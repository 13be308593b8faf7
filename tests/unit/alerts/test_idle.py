"""Told events are forgotten when nothing can bring them again."""

from __future__ import annotations

from tamis_alerts.core.idle import Idle


def test_a_key_is_over_when_it_has_long_had_no_state() -> None:
    idle = Idle(10)
    told = [b"a", b"b", b"c"]
    assert idle.over(told, {b"a", b"b"}, 100) == []
    assert idle.over(told, {b"a"}, 105) == []
    assert idle.over(told, {b"a"}, 110) == [b"c"]
    # Whoever has state again begins anew, and nothing is remembered of keys that are gone.
    assert idle.over([b"a", b"b"], {b"a", b"b"}, 112) == []
    assert idle.over([b"a", b"b"], {b"a"}, 116) == []
    assert idle.over([b"a", b"b"], set(), 126) == [b"b"]
    assert idle.over([], set(), 127) == []
    assert not idle._since
