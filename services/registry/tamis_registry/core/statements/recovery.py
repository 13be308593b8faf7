"""Definitions of a state that was read from Kafka, where they are stored as SQL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tamis.declarations.definitions import FunctionDef, TableDef
from tamis.declarations.streams import StreamDef
from tamis.errors import TamisError
from tamis.planning.queries.former_definitions import Former, former_catalog
from tamis.query.catalog import put
from tamis.query.model import AlertDef, Catalog, DerivedDef, SetPaused
from tamis.query.parse import parse
from tamis_registry.core.leases import understood
from tamis_registry.core.plan.planner import Planner
from tamis_registry.core.state.model import Defined, Retiring, State, Stored
from tamis_registry.core.statements.catalog_changes import carry_out
from tamis_registry.core.statements.outcomes import decided


def parse_all(state: State, planner: Planner) -> None:
    """Parse all definitions, in the order in which they were made: ANY stands for the patterns that were
    there before. Functions come first: one that was replaced may call later ones.
    """
    catalog = state.catalog
    for stored in _in_order(state):
        key = f"{stored.kind}/{stored.name}"
        try:
            made = _defined(stored.sql, catalog)
            if isinstance(made, AlertDef | DerivedDef):
                decided(planner, made, catalog, {})
            carry_out(catalog, made)
        except TamisError as error:
            state.statements[key] = replace(stored, refusal=str(error))
            continue
        if stored.paused:
            carry_out(catalog, SetPaused(stored.name, paused=True))
        state.statements[key] = replace(stored, definition=made)
    for key, lease in list(state.leases.items()):
        try:
            state.leases[key] = understood(lease, catalog)
        except TamisError:
            # Its stream has gone or has changed: whoever asks for it again is told so.
            del state.leases[key]
    for key, old in list(state.retiring.items()):
        try:
            state.retiring[key] = _retiring(old, state, planner)
        except TamisError:
            del state.retiring[key]


def _in_order(state: State) -> Iterator[Stored]:
    functions = {f"function/{one.name}": one for one in state.of_kind("function")}
    texts = {key: one.sql for key, one in functions.items()}
    for key in _callees_first(texts, state.catalog):
        yield functions[key]
    yield from state.of_kind("stream", "table", "pattern", "derived", "alert")


def _callees_first(texts: Mapping[str, str], catalog: Catalog) -> list[str]:
    """The keys of functions in an order in which each comes after those that it calls; functions that can't
    be parsed come last.
    """
    draft, left, found = catalog.copy(), dict(texts), []
    while left:
        waiting = {}
        for key, text in left.items():
            try:
                carry_out(draft, _defined(text, draft))
                found.append(key)
            except TamisError:
                waiting[key] = text
        if len(waiting) == len(left):
            break
        left = waiting
    return [*found, *left]


def _defined(sql: str, catalog: Catalog) -> Defined:
    """The definition of a stored text. Raises TamisError."""
    (made,) = parse(sql, catalog, carry_out)
    assert isinstance(made, Defined)
    return made


def _retiring(old: Retiring, state: State, planner: Planner) -> Retiring:
    """An old definition, with the definitions that it reads as they were. Raises TamisError."""
    without = state.catalog.copy()
    without.alerts.pop(old.alert, None)
    later = (one.name for one in state.of_kind("pattern") if one.order > old.order)
    for name in later:
        without.patterns.pop(name, None)
    former = _former(old, without)
    put(without, (one.definition for one in former))
    made = _defined(old.sql, without)
    assert isinstance(made, AlertDef)
    decided(planner, made, former_catalog(state.catalog, former, made), {})
    return replace(old.with_former(former), definition=made)


def _former(old: Retiring, catalog: Catalog) -> tuple[Former, ...]:
    """The definitions that an old definition reads as they were. Raises TamisError."""
    known = {key: (until, sql) for until, key, sql in old.former}
    draft = catalog.copy()
    functions = {key: sql for key, (_, sql) in known.items() if key.startswith("function/")}
    for key in functions:
        del draft.functions[key.removeprefix("function/")]
    found = {}
    order = [*_callees_first(functions, draft)]
    order += [key for kind in ("stream", "table", "derived") for key in known if key.startswith(f"{kind}/")]
    for key in order:
        (made,) = parse(known[key][1], draft, lambda *_: None)
        assert isinstance(made, StreamDef | TableDef | FunctionDef | DerivedDef)
        put(draft, (made,))
        found[key] = Former(known[key][0], made)
    return tuple(found[key] for key in known)
