"""The built console belongs to its sources, and its page loads only files of this server."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from tamis_registry.http.live.console import POLICY, PREFIX, console_routes

REGISTRY = Path(__file__).parents[3] / "services/registry"
SOURCES, BUILT = REGISTRY / "console", REGISTRY / "tamis_registry/console"
LISTED = (
    "index.html",
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    "vite.config.ts",
    "src",
    "public",
)


def digests(folder: Path, names: tuple[str, ...]) -> dict[str, str]:
    """SHA-256 of every file, by its path."""
    found = [
        path for name in names for path in (folder / name, *(folder / name).rglob("*")) if path.is_file()
    ]
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in found
    }


def test_the_build_is_of_these_sources() -> None:
    manifest = json.loads((BUILT / "manifest.json").read_text())
    assert manifest["sources"] == digests(SOURCES, LISTED), "run: make console"
    built = digests(BUILT, (".",))
    del built["manifest.json"]
    assert manifest["built"] == built, "run: make console"


def test_the_lock_names_no_address() -> None:
    text = (SOURCES / "package-lock.json").read_text()
    lock = json.loads(text)
    assert "://" not in text, "run: npm run lock"
    assert not any("resolved" in package for package in lock["packages"].values())
    assert all("integrity" in package for name, package in lock["packages"].items() if name)


@pytest.fixture(scope="module")
def client() -> TestClient:
    return TestClient(Starlette(routes=console_routes()))


def test_the_page_has_nothing_inline_and_nothing_from_elsewhere(client: TestClient) -> None:
    answer = client.get("/")
    assert answer.headers["content-security-policy"] == POLICY and "unsafe" not in POLICY
    assert answer.headers["cache-control"] == "no-cache"
    files = re.findall(r'(?:src|href)="([^"]+)"', answer.text)
    assert files and all(file.startswith(PREFIX) for file in files)
    assert not re.search(r"<script(?![^>]* src=)|<style|\sstyle=|\son\w+=", answer.text)
    for file in files:
        assert client.get(file).status_code == httpx.codes.OK, file


def test_a_file_that_the_browser_has_is_not_sent_again(client: TestClient) -> None:
    script = next((BUILT / "assets").glob("*.js")).relative_to(BUILT).as_posix()
    first = client.get(PREFIX + script)
    assert "immutable" in first.headers["cache-control"]
    assert first.headers["content-type"].startswith("text/javascript")
    again = client.get(PREFIX + script, headers={"if-none-match": first.headers["etag"]})
    assert again.status_code == httpx.codes.NOT_MODIFIED and not again.content


def test_files_are_compressed_for_clients_that_take_that(client: TestClient) -> None:
    script = max((BUILT / "assets").glob("*.js"), key=lambda path: path.stat().st_size)
    path = PREFIX + script.relative_to(BUILT).as_posix()
    plain = client.get(path, headers={"accept-encoding": "identity"})
    compressed = client.get(path, headers={"accept-encoding": "br, gzip"})
    assert "content-encoding" not in plain.headers and compressed.headers["content-encoding"] == "gzip"
    assert plain.content == compressed.content == script.read_bytes()  # the client decompresses it
    assert int(compressed.headers["content-length"]) < 0.5 * len(plain.content)
    assert plain.headers["etag"] != compressed.headers["etag"]
    for answer in (plain, compressed):
        assert answer.headers["vary"] == "Accept-Encoding"
    known = {"accept-encoding": "gzip", "if-none-match": compressed.headers["etag"]}
    assert client.get(path, headers=known).status_code == httpx.codes.NOT_MODIFIED


def test_the_first_page_needs_neither_editor_nor_chart(client: TestClient) -> None:
    index = client.get("/").text
    scripts = re.findall(r'<script[^>]* src="([^"]+)"', index)
    assert len(scripts) == 1
    # The whole of them has half a megabyte.
    assert len(client.get(scripts[0]).content) < 100_000


def test_only_files_of_the_console_are_served(client: TestClient) -> None:
    for path in ("console/../http/api.py", "console/%2e%2e/http/api.py", "console/none.js", "console/"):
        assert client.get(f"/{path}").status_code == httpx.codes.NOT_FOUND
