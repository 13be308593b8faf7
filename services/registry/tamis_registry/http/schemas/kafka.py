"""Type of the document about the Kafka cluster of the fleet."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict


class Kafka(TypedDict):
    """The Kafka cluster that has the topics of the fleet."""

    cluster_id: Annotated[
        str | None, Field(description="As Kafka told it when the registry connected; null if it doesn't")
    ]
