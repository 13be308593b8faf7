"""Parsed and proved SQL statements, which the proving process sends to the planner."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, replace

from tamis.declarations.definitions import TableDef
from tamis.declarations.file_access import OF_READERS
from tamis.errors import UnavailableError
from tamis.persistent.dicts import PersistentDict
from tamis.planning.proof_results import WorkedOut, work_out
from tamis.query.model import AlertDef, Catalog, DerivedDef, Explain, Redefine, Statement
from tamis.query.parse import parse
from tamis.query.redefinition import Reader
from tamis_registry.core.plan.planner import Known
from tamis_registry.core.statements.catalog_changes import carry_out, existing, same, stays

Definitions = MutableMapping[str, object]


class OutdatedError(UnavailableError):
    """The definitions have changed since the text was read, so the text must be read again."""

    def __init__(self) -> None:
        super().__init__(
            "other statements were applied while these were read", where="registry", hint="send them again"
        )


@dataclass(frozen=True)
class Read:
    """The statements of a text, each with the results of explaining and proving its queries.

    `kept`: for each statement, the places of its readers that mean the same as before.
    """

    statements: tuple[Statement, ...]
    found: tuple[tuple[WorkedOut, ...], ...]
    kept: tuple[tuple[int, ...], ...]

    def within(self, catalog: Catalog) -> Read:
        """The text as if it had been read here, with an equal catalogue: what another process has sent are
        copies, and what means the same as before must be the same object as before.
        """
        pairs = zip(self.statements, self.kept, strict=True)
        return replace(self, statements=tuple(_with_kept(one, kept, catalog) for one, kept in pairs))

    @property
    def known(self) -> Known:
        """The results, for a planner."""
        known: Known = {}
        for one, results in zip(self.statements, self.found, strict=True):
            made = one.made if isinstance(one, Redefine) else None
            for query, found in zip(_queries(one), results, strict=True) if results else ():
                known.setdefault(id(query), []).append((made, found))
        return known


def _with_kept(statement: Statement, kept: Sequence[int], catalog: Catalog) -> Statement:
    if not isinstance(statement, Redefine) or not kept:
        return statement
    readers = list(statement.readers)
    for at in kept:
        found = existing(catalog, readers[at])
        assert isinstance(found, Reader)
        readers[at] = found
    return replace(statement, readers=tuple(readers))


def _kept(statement: Statement, catalog: Catalog) -> tuple[int, ...]:
    """The places of the readers that are definitions of `catalog`."""
    readers = statement.readers if isinstance(statement, Redefine) else ()
    return tuple(at for at, one in enumerate(readers) if existing(catalog, one) is one)


def read(
    text: str,
    catalog: Catalog,
    file: str | None = None,
    *,
    keep: bool = False,
    files: bool = True,
    before_each: Callable[[AlertDef | DerivedDef], None] = lambda _: None,
) -> Read:
    """Parse a text with a catalogue, and explain and prove its queries. Raises the same TamisErrors as
    applying the text.

    `keep`: existing definitions stay as they are. `files`: the text may name files. `before_each` is called
    with each query before it is proved.
    """
    statements = tuple(parsed(text, catalog, file, keep=keep, files=files))
    draft, found = catalog.copy(), []
    for statement in statements:
        stay = keep and stays(catalog, statement)
        if not stay:
            carry_out(draft, statement)
        results = []
        for made in () if stay else _queries(statement):
            before_each(made)
            results.append(work_out(made, draft))
        found.append(tuple(results))
    return Read(statements, tuple(found), tuple(_kept(one, catalog) for one in statements))


def parsed(
    text: str, catalog: Catalog, file: str | None = None, *, keep: bool = False, files: bool = True
) -> list[Statement]:
    """The statements of a text, parsed with a catalogue. With `keep`, statements about existing definitions
    change nothing. Without `files`, a text that names files other than those of tables in service is refused.
    """

    def carry(draft: Catalog, statement: Statement) -> None:
        if not (keep and stays(catalog, statement)):
            carry_out(draft, statement)

    if files:
        return parse(text, catalog, carry, file)
    statements = parse(text, replace(catalog, file_access=OF_READERS), carry, file)
    for one in statements:
        known = catalog.tables.get(one.name) if isinstance(one, TableDef) else None
        if isinstance(one, TableDef) and (known is None or not same(known, one)):
            OF_READERS.resolve(one.path, f"{one.position}: table {one.name}")
    return statements


def same_definitions(one: Catalog, other: Catalog) -> bool:
    """True if two catalogues have the same objects as definitions."""
    pairs = zip(kinds(one), kinds(other), strict=True)
    return one.paused == other.paused and all(_same(mine, theirs) for (_, mine), (_, theirs) in pairs)


def _same(mine: Definitions, theirs: Definitions) -> bool:
    if isinstance(mine, PersistentDict) and isinstance(theirs, PersistentDict):
        return mine.same_objects(theirs)
    return list(mine) == list(theirs) and all(
        a is b for a, b in zip(mine.values(), theirs.values(), strict=True)
    )


def kinds(catalog: Catalog) -> Iterator[tuple[str, Definitions]]:
    """For each kind of definition, the definitions by name and the attribute of the catalogue that
    has them.
    """
    for kind in ("streams", "derived", "functions", "tables", "patterns", "alerts"):
        yield kind, getattr(catalog, kind)


def _queries(statement: Statement) -> tuple[AlertDef | DerivedDef, ...]:
    """The queries that a statement defines, or resolves again."""
    match statement:
        case Explain():
            return (statement.target,) if isinstance(statement.target, AlertDef) else ()
        case Redefine():
            return tuple(one for one in statement.readers if isinstance(one, AlertDef | DerivedDef))
        case AlertDef() | DerivedDef():
            return (statement,)
        case _:
            return ()
