"""The plan: the contract between registry, edges, joiner and alerts, as data, as JSON, and as text."""
