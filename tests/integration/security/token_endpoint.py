"""A real OAuth 2.0 token endpoint on loopback, whose tokens are signed, and its JSON Web Key Set."""

from __future__ import annotations

import base64
import subprocess
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, unquote_plus

import orjson

LIFETIME_SECONDS = 600


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class TokenEndpoint:
    """Gives tokens to `clients`, secrets by name, on `/token`; its keys are on `/keys`.

    `asked` has the names of the clients that got a token, in order.
    """

    def __init__(self, directory: Path, clients: Mapping[str, str]) -> None:
        self._clients, self._key = clients, directory / "signing.pem"
        self.asked: list[str] = []
        self.scopes: list[str] = []
        key = ["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"]
        subprocess.run([*key, "-out", str(self._key)], check=True, capture_output=True)
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                self._answer(*endpoint._token(self.headers.get("Authorization", ""), form))

            def do_GET(self) -> None:
                self._answer(200, endpoint._keys())

            def _answer(self, status: int, document: Any) -> None:
                body = orjson.dumps(document)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Write nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _token(self, authorization: str, form: Mapping[str, list[str]]) -> tuple[int, Any]:
        name, _, secret = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        name, secret = unquote_plus(name), unquote_plus(secret)
        if form.get("grant_type") != ["client_credentials"]:
            return 400, {"error": "unsupported_grant_type"}
        if self._clients.get(name) != secret:
            return 401, {"error": "invalid_client", "error_description": "Invalid client or Invalid secret"}
        self.asked.append(name)
        self.scopes += form.get("scope", [])
        now = int(time.time())
        claims = {"sub": name, "aud": "kafka", "iss": self.url, "iat": now, "exp": now + LIFETIME_SECONDS}
        claims["scope"] = " ".join(form.get("scope", ["kafka"]))
        head = {"alg": "RS256", "typ": "JWT", "kid": "tests"}
        signed = f"{_base64(orjson.dumps(head))}.{_base64(orjson.dumps(claims))}"
        sign = ["openssl", "dgst", "-sha256", "-sign", str(self._key)]
        signature = subprocess.run(sign, input=signed.encode(), check=True, capture_output=True).stdout
        token = f"{signed}.{_base64(signature)}"
        return 200, {"access_token": token, "token_type": "Bearer", "expires_in": LIFETIME_SECONDS}

    def _keys(self) -> Any:
        show = ["openssl", "rsa", "-in", str(self._key), "-noout", "-modulus"]
        shown = subprocess.run(show, check=True, capture_output=True, text=True).stdout
        modulus = bytes.fromhex(shown.strip().partition("=")[2])
        key = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "tests", "n": _base64(modulus)}
        return {"keys": [{**key, "e": _base64((65537).to_bytes(3, "big"))}]}
