"""`tamis token`: what it prints is a file of tokens, and clients without the right are told so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
import yaml
from click.testing import CliRunner
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from structlog import get_logger

from tamis.cli import main
from tamis.settings.token_file import read_tokens
from tamis.telemetry.server import HttpServer
from tamis.web.authentication import Authentication
from tamis.web.tokens import digest
from tamis_registry.http.common.rights import RegistryRules


def token(*options: str) -> tuple[str, str]:
    """A new token, and the YAML of its entry."""
    result = CliRunner().invoke(main, ["token", *options])
    assert result.exit_code == 0, result.output
    _, text, _, _, entry = result.stdout.split("\n", 4)
    return text, entry


def test_the_entry_is_a_file_of_tokens_without_the_token(tmp_path: Path) -> None:
    text, entry = token("--name", "gw", "--role", "writer", "--streams", "air, surface", "--expires", "90d")
    assert text not in entry
    (tmp_path / "tokens.yaml").write_text(entry)
    found = read_tokens(tmp_path / "tokens.yaml").find(text)
    assert found is not None and found.expires is not None
    assert (found.name, found.role, found.streams) == ("gw", "writer", frozenset({"air", "surface"}))


def test_only_a_token_that_is_made_so_sees_readings(tmp_path: Path) -> None:
    for options, sees in (((), False), (("--readings",), True)):
        text, entry = token(*options)
        (tmp_path / "tokens.yaml").write_text(entry)
        found = read_tokens(tmp_path / "tokens.yaml").find(text)
        assert found is not None and found.readings is sees


def test_json_has_token_and_entry() -> None:
    result = CliRunner().invoke(main, ["token", "--json"])
    made = orjson.loads(result.stdout)
    assert made["entry"] == {"name": "default", "role": "reader", "sha256": digest(made["token"])}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--name", "a b"], "the token's name"),
        (["--expires", "-1d"], "is over already"),
        (["--expires", "soon"], "soon"),
        (["--role", "writer", "--streams", ""], "no stream is named"),
        (["--role", "writer", "--streams", " , "], "leave the option out for all streams"),
        (["--streams", "air"], "only a writer sends readings; add --role writer"),
    ],
)
def test_mistakes_are_named(options: list[str], said: str) -> None:
    result = CliRunner().invoke(main, ["token", *options])
    assert result.exit_code == 2 and said in result.stderr and "tamis_" not in result.stdout


async def _answer(request: Request) -> Response:
    if request.method == "POST":
        return JSONResponse([{"kind": "stream", "name": "air", "result": "created", "plan": 1}])
    return JSONResponse([])


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """A server with the registry's rules; its file of tokens is `tokens.yaml`."""
    (tmp_path / "tokens.yaml").write_text("tokens: []\n")
    app = Starlette(routes=[Route("/v1/{path:path}", _answer, methods=["GET", "POST"])])
    app.add_middleware(
        Authentication,
        tokens=lambda: read_tokens(tmp_path / "tokens.yaml"),
        rules=RegistryRules(),
        count=lambda _: None,
        log=get_logger(),
    )
    server = HttpServer(app, "127.0.0.1", 0)
    server.start()
    yield server.url
    server.stop()


def test_commands_take_the_token_from_the_environment(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, first = token("--name", "looks")
    writer, second = token("--name", "writes", "--role", "writer")
    entries = [entry for text in (first, second) for entry in yaml.safe_load(text)["tokens"]]
    (tmp_path / "tokens.yaml").write_text(yaml.safe_dump({"tokens": entries}))
    (tmp_path / "writer").write_text(f"{writer}\n")
    (tmp_path / "writer").chmod(0o400)
    (tmp_path / "a.sql").write_text("SHOW ALERTS")

    def run(*arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(main, [*arguments, "--registry", url])
        assert reader not in result.output and writer not in result.output
        return result.exit_code, result.stderr

    code, said = run("get")
    assert code == 2 and "needs a token" in said and "the token comes from TAMIS_TOKEN" in said
    monkeypatch.setenv("TAMIS_TOKEN", "wrong")
    assert "the token is not valid here" in run("get")[1]
    monkeypatch.setenv("TAMIS_TOKEN", reader)
    assert run("get") == (0, "there are no alerts\n")
    code, said = run("apply", str(tmp_path / "a.sql"))
    assert code == 2 and "the token 'looks' has no right to change definitions" in said
    monkeypatch.delenv("TAMIS_TOKEN")
    monkeypatch.setenv("TAMIS_TOKEN_FILE", str(tmp_path / "writer"))
    # It isn't the default address, so the command tells where it applied the file.
    assert run("apply", str(tmp_path / "a.sql")) == (0, f"applied at {url}\n")
