"""Codes of keys whose texts have numbers are those that the texts themselves have."""

from __future__ import annotations

import random

import numpy as np
import orjson
import pytest

from tamis.expressions.nodes import Type
from tamis.expressions.vectors import NumberedTexts, Vector
from tamis.operators.time_join.key_codes import NO_KEY, KeyCodes
from tamis.recordings.flat_json.columns import FlatDecoder


@pytest.mark.parametrize("seed", range(20))
def test_numbered_texts_have_the_codes_of_their_texts(seed: int) -> None:
    """Two topics with tables of their own have the same keys, and one of the tables forgets its texts."""
    r = random.Random(seed)
    decoders = [FlatDecoder({"k": Type.VARCHAR}, "us", texts) for texts in (1 << 10, 1 << 17)]
    codes, plain = KeyCodes(), KeyCodes()
    numbered = 0
    for _ in range(12):
        texts = [r.choice((None, f"s{r.randrange(4_000)}", "")) for _ in range(r.randrange(900))]
        (vector,), understood = r.choice(decoders).decode([orjson.dumps({"k": text}) for text in texts])
        vector = vector.take(understood) if not understood.all() else vector
        numbered += isinstance(vector, NumberedTexts)
        found = codes.encode([vector], len(vector))
        assert found.tolist() == plain.encode([Vector(vector.data, vector.null)], len(vector)).tolist()
        if vector.null is not None:
            assert (found[vector.null] == NO_KEY).all()
        # The caller may change what it gets.
        found[:] = -7
    assert numbered > 3 and len(codes._numbered) > 0


def test_vectors_that_are_made_of_numbered_texts_have_no_numbers() -> None:
    (vector,), _ = FlatDecoder({"k": Type.VARCHAR}, "us").decode([b'{"k":"a"}', b'{"k":"b"}'])
    assert isinstance(vector, NumberedTexts)
    for other in (vector.take(np.array([1])), Vector.concat([vector, vector])):
        assert not isinstance(other, NumberedTexts)


def test_few_keys_of_a_table_with_many_texts_take_little_memory() -> None:
    decoder, codes = FlatDecoder({"k": Type.VARCHAR}, "us"), KeyCodes()
    decoder.decode([orjson.dumps({"k": f"of another partition {number}"}) for number in range(5_000)])
    for _ in range(2):
        (vector,), _ = decoder.decode([orjson.dumps({"k": f"s{number}"}) for number in range(50)])
        assert codes.encode([vector], len(vector)).tolist() == list(range(50))
    assert not codes._numbered
