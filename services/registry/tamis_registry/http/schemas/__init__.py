"""Types of the HTTP API's documents, for its OpenAPI description; tests compare them with real documents.

Begin with `definitions`; `documents` makes what these types describe.
"""
