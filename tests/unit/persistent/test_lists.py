"""Persistent lists against lists that are copied, after random changes."""

from __future__ import annotations

import random

import pytest

from tamis.identity_diff import identity_diff
from tamis.persistent.lists import CHUNK, PersistentList, not_none


def common(one: list[object], other: list[object]) -> int:
    """The length of the common prefix."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a is not b), min(len(one), len(other)))


@pytest.mark.parametrize("seed", range(20))
def test_it_has_the_items_of_a_list_with_the_same_changes(seed: int) -> None:
    draw = random.Random(seed)
    plain: list[object] = []
    found, present = PersistentList[object | None](), PersistentList[object]()
    for _ in range(60):
        start = draw.randint(0, len(plain))
        stop = min(len(plain), start + draw.choice([0, 0, 1, 3, CHUNK, 3 * CHUNK]))
        added = [draw.choice([None, object()]) for _ in range(draw.choice([0, 1, 1, 2, 3 * CHUNK]))]
        before, kept, old = found, present, plain
        plain = [*plain[:start], *added, *plain[stop:]]
        found = found.spliced(start, stop, added)
        assert list(found) == plain
        assert list(reversed(found)) == plain[::-1]
        assert list(before) == old
        if plain:
            at = draw.randrange(-len(plain), len(plain))
            assert found[at] is plain[at]
        first, last = sorted(draw.randint(0, len(plain)) for _ in range(2))
        assert found[first:last] == tuple(plain[first:last])
        prefix = common(old, plain)
        suffix = min(common(old[::-1], plain[::-1]), min(len(old), len(plain)) - prefix)
        assert before.common_ends(found) == (prefix, suffix)
        assert identity_diff(before, found) == identity_diff(old, plain)
        present = not_none(found, before, kept)
        assert list(present) == [one for one in plain if one is not None]
        assert found == tuple(plain)
        assert hash(found) == hash(tuple(plain))


def test_a_copy_shares_the_chunks_that_have_not_changed() -> None:
    before = PersistentList(object() for _ in range(100 * CHUNK))
    after = before.spliced(50 * CHUNK, 50 * CHUNK + 1, [object()])
    shared = set(map(id, before.chunks)) & set(map(id, after.chunks))
    assert len(shared) == len(before.chunks) - 1
    assert set(map(id, before.chunks)) <= set(map(id, before.appended(object()).chunks)) | {
        id(before.chunks[-1])
    }


def test_many_removed_items_leave_few_chunks() -> None:
    found = PersistentList(range(20 * CHUNK))
    while len(found) > CHUNK:
        found = found.spliced(len(found) // 2, len(found) // 2 + 1, ())
    assert len(found.chunks) <= 6


def test_items_beyond_the_ends_are_refused() -> None:
    for at in (-3, 2):
        with pytest.raises(IndexError):
            PersistentList("ab")[at]
