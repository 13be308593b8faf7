"""HTTP: parts that all servers of Tamis share, and the client of the registry.

`guard` rejects requests from other sites, bodies that are too large, and too many requests at a time.
`connection_limits` limits slow clients, also those that are slow to begin TLS, for which `tls` has the
certificate. `authentication` lets in requests with one of the `tokens`. `problems` writes errors as problem
documents, which `registry_client` turns into errors again.
"""
