"""The command `tamis registry` in a process of its own, with tokens for readers and writers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tamis.local.service_process import ServiceProcess, free_ports
from tamis.web.tokens import digest, new_token

READY_SECONDS = 60.0


class RegistryProcess:
    """A registry on loopback, as behind a proxy on its own host. `tokens`: by name."""

    def __init__(self, process: ServiceProcess, url: str, tokens: Mapping[str, str]) -> None:
        self.process, self.url, self.tokens = process, url, tokens

    def post(self, path: str, who: str | None, timeout: float = 60, **body: Any) -> httpx.Response:
        """A request with the token of `who`. `body`: `content` or `json`."""
        headers = {} if who is None else {"Authorization": f"Bearer {self.tokens[who]}"}
        return httpx.post(f"{self.url}/v1/{path}", headers=headers, timeout=timeout, **body)

    @property
    def pid(self) -> int:
        """The process id."""
        running = self.process._process
        assert running is not None
        return running.pid


@contextmanager
def registry_process(
    directory: Path, bootstrap: str, tokens: Mapping[str, str] | None = None, **environment: str
) -> Iterator[RegistryProcess]:
    """A running registry. `tokens`: the fields of each token as YAML, by its name; None: without tokens."""
    texts = {name: new_token() for name in tokens or {}}
    settings = {"TAMIS_KAFKA_BOOTSTRAP": bootstrap, "TAMIS_PARTITIONS": "2", **environment}
    if tokens is not None:
        file = directory / "tokens.yaml"
        lines = [
            f"  - {{name: {name}, sha256: {digest(texts[name])}, {fields}}}\n"
            for name, fields in tokens.items()
        ]
        file.touch(0o600)
        file.write_text("tokens:\n" + "".join(lines))
        settings["TAMIS_REGISTRY_TOKENS_FILE"] = str(file)
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    process = ServiceProcess(
        "registry", ["registry", "--port", str(port)], settings, directory / "registry.log", f"{url}/readyz"
    )
    process.start()
    try:
        process.wait_ready(READY_SECONDS)
        yield RegistryProcess(process, url, texts)
    finally:
        process.ask_to_stop()
        process.stop()
