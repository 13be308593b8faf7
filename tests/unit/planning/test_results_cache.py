"""Caches by identity: owned by a catalogue, safe between threads, swept when definitions go."""

from __future__ import annotations

import gc
import importlib
import pkgutil
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.unit.certificates.catalogs import NEAR, TWO

import tamis.bounded
import tamis.planning
import tamis.query
import tamis.sharing
import tamis_registry.core
from tamis.identity_cache import IdentityCache
from tamis.planning.join_verdict import judge
from tamis.query.parse import catalog_of
from tamis_registry.core.plan.planner import PLANNER
from tamis_registry.core.registry import Registry
from tamis_registry.core.state.model import State

ALERT = f"CREATE ALERT {{}} AS SELECT a.k FROM a JOIN b ON {NEAR} WHERE a.x > b.x;"


def test_threads_may_share_a_cache_that_overflows_and_is_swept() -> None:
    cache = IdentityCache[int](1_500)
    objects = [[number] for number in range(2_000)]

    def results(one: list[int]) -> tuple[int, int]:
        return cache.one(one, lambda: one[0]), cache.get((one, objects[0]), "x", lambda: -one[0])

    def read(first: int) -> bool:
        found = [results(one) for one in objects[first:] + objects[:first]]
        cache.retain(objects[:500])
        return sorted(found) == [(number, -number) for number in range(2_000)]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, range(0, 2_000, 50)))


def test_a_sweep_is_safe_while_the_garbage_collector_lets_other_threads_in() -> None:
    cache = IdentityCache[int]()
    objects = [[number] for number in range(5_000)]

    def collected(phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            cache.one(objects[len(cache)], lambda: 0)

    for one in objects[:2_000]:
        cache.one(one, lambda: 0)
    thresholds = gc.get_threshold()
    gc.callbacks.append(collected)
    gc.set_threshold(50)
    try:
        cache.retain(objects[:500])
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(collected)
    assert len(cache) < 1_000


def test_results_of_objects_that_are_gone_are_removed() -> None:
    cache = IdentityCache[int]()
    kept, gone = [[number] for number in range(10)], [[number] for number in range(1_000)]
    for one in (*kept, *gone):
        cache.get((one, None), "x", lambda: 1)
    cache.retain(kept)
    assert all(cache.find((one, None), "x") for one in kept)
    assert not any(cache.find((one, None), "x") for one in gone)


def test_a_catalogue_owns_the_results_of_its_definitions_and_shares_them_with_copies() -> None:
    catalog, other = (catalog_of(TWO, ALERT.format("q")) for _ in range(2))
    found = judge(catalog.alerts["q"], catalog)
    assert judge(catalog.alerts["q"], catalog.copy()) is found
    assert judge(catalog.alerts["q"], other) is not found


def test_the_registry_forgets_verdicts_on_dropped_alerts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tamis.identity_cache._SMALL", 8)
    registry = Registry(PLANNER, State(2), None, 0, 0)
    registry.done(registry.apply(TWO, 0)[1], 0)
    registry.done(registry.apply(ALERT.format("stays"), 0)[1], 0)
    for number in range(20):
        registry.done(registry.apply(ALERT.format(f"q{number}"), 0)[1], 0)
        registry.done(registry.apply(f"DROP ALERT q{number};", 0)[1], 0)
    catalog = registry.state.catalog
    assert len(catalog.results) < 20
    stays = catalog.alerts["stays"]
    assert catalog.results.find((stays, catalog.streams["a"], catalog.streams["b"]), "verdict")


@pytest.mark.parametrize(
    "package", [tamis.bounded, tamis.planning, tamis.query, tamis.sharing, tamis_registry.core]
)
def test_no_module_of_the_planner_has_a_cache_of_its_own(package: object) -> None:
    prefix = f"{package.__name__}."  # type: ignore[attr-defined]
    for info in pkgutil.walk_packages(package.__path__, prefix):  # type: ignore[attr-defined]
        module = importlib.import_module(info.name)
        assert not [name for name, value in vars(module).items() if isinstance(value, IdentityCache)], (
            info.name
        )
