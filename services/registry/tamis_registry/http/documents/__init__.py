"""Documents of the HTTP interface: alerts, edges, leases and streams, each from a view of the registry.

Begin with `alerts`, which also has the document of an applied statement.
"""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]
