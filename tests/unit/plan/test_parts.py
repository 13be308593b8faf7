"""Parts of a plan by stream: cut in one pass, read in any order, and used only together."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from tests.oracle.fleet.plan_parts import in_order, part_of
from tests.unit.plan.test_slices import plan

from tamis.errors import InputError
from tamis.plan.json_form import NewerFormatError, decode_plan, encode_plan
from tamis.plan.parts import NewestParts, PartRecord, cut, joined, parts

STREAMS = {"a", "b"}


def test_each_part_is_what_is_cut_for_its_stream_alone() -> None:
    document = encode_plan(plan())
    assert parts(document) == {name: cut(document, {name}) for name in ("a", "b", "c")}


def test_parts_are_joined_to_the_part_of_all_their_streams() -> None:
    made = plan()
    found = parts(encode_plan(made))
    assert in_order(decode_plan(joined({name: found[name] for name in STREAMS}))) == in_order(
        part_of(made, STREAMS)
    )


def test_a_part_of_a_newer_release_is_refused_as_a_whole_plan_is() -> None:
    found = parts(encode_plan(plan()))
    for wrong in (found["b"].replace(b'"format":1', b'"format":2'), b'{"extra":1,' + found["b"][1:]):
        with pytest.raises(NewerFormatError):
            decode_plan(joined({**found, "b": wrong}))
    with pytest.raises(InputError):
        decode_plan(joined({**found, "b": found["b"][:-1]}))


@pytest.mark.parametrize("seed", range(50))
def test_only_parts_of_one_version_are_used_whatever_compaction_removes(seed: int) -> None:
    """An edge that starts anywhere, and reads some topics sooner than others, has only plans that were."""
    r = random.Random(seed)
    made = plan()
    versions = {
        version: replace(
            made, version=version, streams=tuple(replace(one, delay=version) for one in made.streams)
        )
        for version in range(1, 12)
    }
    written = [parts(encode_plan(one)) for one in versions.values()]
    logs = {name: [found[name] for found in written] for name in STREAMS}
    for found in logs.values():  # the newest record always stays
        found[:-1] = [part for part in found[:-1] if r.random() < 0.5]
    newest = NewestParts(STREAMS)
    above = 0
    while any(logs.values()):
        name = r.choice([name for name, found in logs.items() if found])
        newest.take(name, PartRecord([7], logs[name].pop(0)).encode())
        if newest.version > above:
            taken = decode_plan(newest.plan())
            assert taken.version == newest.version and newest.ends == [7]
            above = taken.version
            assert in_order(taken) == in_order(part_of(versions[above], STREAMS))
    assert above == max(versions)


def test_a_plan_that_is_written_again_ends_where_its_newest_parts_say() -> None:
    """The registry does so for a joiner that waits for a record. For edges the plan still has parts."""
    written = parts(encode_plan(plan()))
    newest = NewestParts(STREAMS)
    for end in (7, 9):
        for name in STREAMS:
            newest.take(name, PartRecord([end], written[name]).encode())
        assert (newest.version, list(newest.ends)) == (plan().version, [end])
