"""The benchmark of a stalled partner: the cost is the number of retained tuples."""

from __future__ import annotations

from benchmarks import stall


def test_state_grows_by_what_is_retained() -> None:
    result = stall.run(True, lambda _: None)
    (_, *every), (_, *kept), (_, *real), (_, *real_kept) = (
        [row[name] for name in ("what", "received", "retained", "state grew by")] for row in result.rows
    )
    assert every == [36_000] * 3
    assert real == [1_440] * 3
    for received, retained, grown in (kept, real_kept):
        assert isinstance(received, int)
        assert isinstance(retained, int)
        assert retained == grown
        assert retained < received / 4
