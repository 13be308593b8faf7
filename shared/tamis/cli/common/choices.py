"""Options and arguments with a few possible values: the answer to another one names the most similar."""

from __future__ import annotations

from typing import Any

import click

from tamis.query.names import suggest


class Choice(click.Choice[str]):
    """One of a few texts, as click's own choice."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """The message about an unknown value.

        >>> Choice(["streams", "alerts"]).get_invalid_choice_message("alrts", None)
        "'alrts' is not one of 'streams', 'alerts'; did you mean 'alerts'?"
        >>> Choice(["streams", "alerts"]).get_invalid_choice_message("x", None)
        "'x' is not one of 'streams', 'alerts'"
        """
        message = super().get_invalid_choice_message(value, ctx).removesuffix(".")
        hint = suggest(str(value), [str(choice) for choice in self.choices], "")
        return f"{message}; {hint}" if hint else message
