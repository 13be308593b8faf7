"""Readers of streams, alerts and subscriptions alike: what each asks for, and what follows from where it is
served.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from tamis.planning.crowds import Wish
from tamis.planning.definitions import define
from tamis.planning.entries import Reader
from tamis.planning.omission import bare
from tamis.planning.places import Places
from tamis.planning.plan import Definition, StandingQuery
from tamis.planning.standing import is_standing, judged, standing_query
from tamis.planning.subscriptions import Subscription, subscriber
from tamis.planning.verdict import accepted
from tamis.query.model import AlertDef, Catalog


@dataclass(frozen=True)
class Asked:
    """A reader: an alert as plan `made` has made it, or a subscription. `numbers`: by which topic each of its
    sources is served, as far as that is known.
    """

    id: str
    origin: AlertDef | Subscription
    made: int
    numbers: Mapping[str, int]

    @property
    def asked(self) -> Asked:
        """See `Asking`."""
        return self


class Asking(Protocol):
    """Something that may ask for a reader; the same object always asks for the same."""

    @property
    def asked(self) -> Asked | None:
        """The reader."""
        ...


@dataclass(frozen=True)
class Seat:
    """A reader with its places, and what follows from these alone. `definition`: None outside the fleet."""

    asked: Asked
    wishes: tuple[Wish, ...]
    numbers: Mapping[str, int]
    definition: Definition | StandingQuery | None
    readers: Mapping[str, Reader]

    def serves(self, asked: Asked) -> bool:
        """Whether it is what a reader asks for."""
        mine = self.asked
        return mine.origin is asked.origin and mine.made == asked.made and self.numbers == asked.numbers


def wishes_of(asked: Asked, catalog: Catalog) -> tuple[Wish, ...]:
    """The sources of a reader. Raises NotAcceptedError."""
    origin = asked.origin
    if isinstance(origin, Subscription):
        key = origin.stream, catalog.streams[origin.stream].key
        return (Wish(asked.id, "", key, origin.filter, subscriber=True, whole=True, made=asked.made),)
    if is_standing(origin, catalog):
        return tuple(
            Wish(
                asked.id,
                feed.stream.name,
                (feed.stream.name, feed.partition_key),
                feed.filter,
                subscriber=False,
                whole=True,
                made=asked.made,
            )
            for feed in judged(origin, catalog).layout.feeds
        )
    verdict = accepted(origin, catalog)
    return tuple(
        Wish(
            asked.id,
            omission.alias,
            (verdict.analysis.streams[omission.alias].name, verdict.keys.partition[omission.alias]),
            bare(omission.filter),
            subscriber=False,
            whole=omission.interval == 0,
            made=asked.made,
        )
        for omission in verdict.omissions
    )


def seat(asked: Asked, wishes: tuple[Wish, ...], places: Places, catalog: Catalog) -> Seat:
    """A reader where it was placed."""
    numbers = places.placed[asked.id]
    topics = {wish.alias: places.name(wish.key, numbers[wish.alias]) for wish in wishes}
    origin = asked.origin
    if isinstance(origin, Subscription):
        outside = subscriber(origin, catalog.streams[origin.stream], topics[""])
        return Seat(asked, wishes, numbers, None, {"": outside})
    if is_standing(origin, catalog):
        query, counting = standing_query(origin, asked.made, judged(origin, catalog), topics)
        return Seat(asked, wishes, numbers, query, {one.source.stream: one for one in counting})
    verdict = accepted(origin, catalog)
    definition = define(origin, asked.made, verdict, topics)
    readers = {
        source.alias: Reader(source, omission, asked.made, origin.options.max_delay)
        for source, omission in zip(definition.inputs, verdict.omissions, strict=True)
    }
    return Seat(asked, wishes, numbers, definition, readers)
