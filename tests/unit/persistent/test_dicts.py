"""Persistent dictionaries against dictionaries that are copied, after random changes."""

from __future__ import annotations

import random

import pytest

from tamis.persistent.dicts import MOST_RECENT, PersistentDict, changed_keys


@pytest.mark.parametrize("seed", range(10))
def test_it_and_its_copies_have_the_items_of_dictionaries_with_the_same_changes(seed: int) -> None:
    draw = random.Random(seed)
    plain: dict[int, object] = {}
    found = PersistentDict[int, object]()
    copies: list[tuple[PersistentDict[int, object], dict[int, object]]] = []
    for step in range(6 * MOST_RECENT):
        key = draw.randint(0, 2 * MOST_RECENT)
        if key in plain and draw.random() < 0.4:
            del plain[key], found[key]
        else:
            plain[key] = found[key] = object()
        if step % 97 == 0:
            copies.append((found.copy(), dict(plain)))
            found = found.copy()
    for one, other in (*copies, (found, plain)):
        assert list(one.items()) == list(other.items())
        assert list(one) == list(one.key_list) == list(other)
        assert list(reversed(one)) == list(reversed(other))
        assert list(one.values()) == list(one.value_list) == list(other.values())
        assert one == other
        assert all(one[key] is other[key] for key in other)
        assert all((key in one) == (key in other) for key in range(2 * MOST_RECENT))
    (first, before), (last, after) = copies[0], copies[-1]
    assert changed_keys(first, last) == changed_keys(before, after)
    assert last.same_objects(last.copy())
    assert not last.same_objects(first)


def test_unknown_keys_are_refused() -> None:
    found = PersistentDict({"a": 1})
    del found["a"]
    for key in ("a", "b"):
        with pytest.raises(KeyError):
            found[key]
        with pytest.raises(KeyError):
            del found[key]


def test_changes_of_an_original_are_not_in_its_copies() -> None:
    one = PersistentDict({"a": 1})
    other = one.copy()
    one["b"] = 2
    other |= {"c": 3}
    assert (dict(one), dict(other)) == ({"a": 1, "b": 2}, {"a": 1, "c": 3})
