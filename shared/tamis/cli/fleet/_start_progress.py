"""Progress of the start of a fleet, on standard error."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from tamis.cli.common.output import say
from tamis.printable import printable, printable_lines


class StartProgress:
    """Prints lines; within `with`, a terminal also shows each service that isn't ready, with what it waits
    for and the time since then. What isn't a terminal gets the lines only.
    """

    def __init__(self, console: Console | None = None) -> None:
        """`console`: by default standard error."""
        self._console = console or Console(stderr=True)
        self._progress: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> StartProgress:
        if self._console.is_terminal:
            columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
            self._progress = Progress(*columns, console=self._console, transient=True)
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    def say(self, text: str) -> None:
        """Print a line, above the services that are waited for."""
        if self._progress is None:
            say(text)
        else:
            shown = Text(printable_lines(text))
            self._console.print(shown, highlight=False, soft_wrap=True)

    def show_waiting(self, waiting: Mapping[str, str]) -> None:
        """Show these services with what they wait for, and no others."""
        if self._progress is None:
            return
        for name in self._tasks.keys() - waiting.keys():
            self._progress.remove_task(self._tasks.pop(name))
        for name, reason in waiting.items():
            if name not in self._tasks:
                self._tasks[name] = self._progress.add_task("", total=None)
            self._progress.update(self._tasks[name], description=printable(f"{name}: {reason}"))
