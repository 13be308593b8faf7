"""HTTP: parts that all servers of Tamis share, and the client of the registry.

`guard` rejects requests from other sites and too many at a time. `connection_limits` limits slow clients,
and `tls_handshake` limits those that are slow to begin TLS, for which `tls` has the certificate.
`authentication` lets in requests with one of the `tokens`. `body` reads a request's body, and `problems`
writes errors as problem documents, which `registry_client` turns into errors again.
"""
