"""Pairs of constructs of the reference page: every answer is a result, or a refusal with a place.

Each statement contains two constructs, nested or side by side, over streams, tables and derived streams. It
is parsed, explained, planned, run on a small recording, and compared with DuckDB. A construct of the page
that has no template fails a test.
"""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from tests.oracle.language.pairs import answers as answering
from tests.oracle.language.pairs.answers import STEPS, answers, check_refusal, write_files
from tests.oracle.language.pairs.reference_page import PAGE, words
from tests.oracle.language.pairs.statements import DEFINITIONS, statement
from tests.oracle.language.pairs.templates import CONSTRUCTS, OF_KIND, SIMPLE, Construct
from tests.oracle.random_cases import SEED, cases

from tamis.errors import InputError

BLOCKS = 20  # of the long search, which has all pairs
# Words in the code of the page that are no constructs of Tamis.
_NO_CONSTRUCTS = {
    *("TYPE", "NAME", "FILE", "SINCE", "WHY"),
    *("TAMIS_REGISTRY_HOSTS", "TAMIS_SCHEMA_REGISTRY_URL", "TAMIS_TABLES"),
    *("f", "q", "x", "damp", "value", "name"),  # names of examples
    *(
        "TUMBLING",
        "MINUTES",
        "time_bucket",
        "FLOAT",
        "REAL",
    ),  # of other systems: the message says what to write
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("recordings")
    write_files(directory)
    return directory


@pytest.fixture(autouse=True)
def here(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of tables and patterns are named relative to the working directory."""
    monkeypatch.chdir(files)


def test_every_construct_of_the_page_has_a_template() -> None:
    templates = [one.template for one in CONSTRUCTS] + [one for of in SIMPLE.values() for one in of]
    texts = [DEFINITIONS, *templates, *(statement(seed, ()).sql for seed in range(50))]
    known = {word for text in texts for word in re.findall(r"\w+", text)}
    page = PAGE.read_text(encoding="utf-8")
    assert words(page) - known - _NO_CONSTRUCTS == set()
    added = page.replace("`floor(x)`", "`floor(x)`, `floored(x)`").replace("`CROSS JOIN`", "`CROSSED JOIN`")
    assert words(added) - known - _NO_CONSTRUCTS == {"floored", "CROSSED"}


def _hold(pairs: Iterable[Sequence[Construct]], directory: Path) -> Counter[str]:
    """Check the answers to a statement of each pair, and count how far they got."""
    seen: Counter[str] = Counter()
    for pair in pairs:
        made = statement(SEED * 1_000_000 + seen["statements"], pair)
        seen["statements"] += 1
        seen["without place"] += bool(made.left)
        try:
            found = answers(made.sql, directory)
        except Exception as error:
            raise AssertionError(f"{error!r} for {[one.template for one in pair]}:\n{made.sql}") from error
        assert found.difference is None, f"{found.difference}\n{made.sql}"
        seen.update(found.done)
        seen["with rows"] += found.rows > 0
        seen["refused"] += bool(found.refusals)
    print(seen)
    return seen


def _some_pairs(count: int) -> list[Sequence[Construct]]:
    """Pairs in which each construct occurs, and then any."""
    r = random.Random(SEED)
    shuffled: list[Construct] = []
    while len(shuffled) < 2 * count:
        shuffled += r.sample(CONSTRUCTS, len(CONSTRUCTS))
    return [shuffled[at : at + 2] for at in range(0, 2 * count, 2)]


@pytest.mark.timeout(600)
def test_pairs_of_constructs(files: Path) -> None:
    count = max(cases(1 / 24_000), (len(CONSTRUCTS) + 1) // 2)
    seen = _hold(_some_pairs(count), files)
    assert seen["without place"] < count / 20, seen
    for step in STEPS:
        assert seen[step] > count / 4, seen
    assert seen["with rows"] > count / 8 and seen["refused"] > count / 8, seen


@pytest.mark.soundness
@pytest.mark.timeout(0)
@pytest.mark.parametrize("block", range(BLOCKS))
def test_all_pairs_of_constructs(block: int, files: Path) -> None:
    pairs = list(itertools.combinations_with_replacement(CONSTRUCTS, 2))
    random.Random(SEED).shuffle(pairs)
    _hold(pairs[block::BLOCKS], files)


@pytest.mark.soundness
@pytest.mark.timeout(0)
def test_triples_of_constructs(files: Path) -> None:
    r = random.Random(SEED)
    _hold((r.sample(CONSTRUCTS, 3) for _ in range(cases(1 / 2))), files)


def _key_error(*_: object, **__: object) -> None:
    raise KeyError


def test_a_fault_in_any_step_is_found(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = statement(SEED, OF_KIND["number"][:1]).sql
    for name in ("parsed", "explained", "first_plan", "rows_of", "verify"):
        with monkeypatch.context() as broken:
            broken.setattr(answering, name, _key_error)
            with pytest.raises(KeyError):
                answers(sql, files)


def test_a_refusal_without_a_place_is_found() -> None:
    with pytest.raises(AssertionError):
        check_refusal(InputError("this isn't accepted"), "SELECT")
