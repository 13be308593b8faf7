"""The command `tamis`.

Each module of this package whose name has no leading underscore is a subcommand of that name: its function
`command` is a click command, and the first line of that function's docstring is its line in `tamis --help`. A
module is imported only when its subcommand is asked for: help is quick, and a service imports what it needs.

Exit codes: 0 yes or done, 1 no (a query that is refused, alarms that differ), 2 the input is wrong (or what
is needed isn't there), 130 interrupted.
"""

from __future__ import annotations

import ast
import errno
import importlib
import sys
from pathlib import Path
from typing import IO, Any

import click

from tamis.errors import TamisError, UnavailableError

_FOLDER = Path(__file__).parent
_INTERRUPTED = 130


class _Failure(click.ClickException):
    """A TamisError, as click shows and counts it."""

    def __init__(self, error: TamisError) -> None:
        super().__init__(str(error))
        self.exit_code = error.exit_code

    def show(self, file: IO[Any] | None = None) -> None:
        """As text, or as an event where a service's log is JSON."""
        logs = sys.modules.get("tamis.telemetry.logs")  # only services have loaded it
        if logs is not None and logs.in_json():
            logs.get_logger("cli").error(self.message)
        else:
            super().show(file)


class _Subcommands(click.Group):
    """The modules of this package."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(path.stem for path in _FOLDER.glob("[!_]*.py"))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        command = importlib.import_module(f"{__name__}.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary(name)) for name in self.list_commands(ctx)])

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except TamisError as error:
            raise _Failure(error) from error
        except BrokenPipeError:
            raise  # click ends quietly: whoever reads has read enough
        except OSError as error:
            # Such as a full disk under standard output; with 1 it would say no to what was asked.
            raise _Failure(_from_system(error)) from error
        except KeyboardInterrupt:
            ctx.exit(_INTERRUPTED)


def _from_system(error: OSError) -> TamisError:
    return UnavailableError(
        f"the system refuses: {error.strerror or error}",
        where=str(error.filename) if error.filename else None,
        hint="make room on the disk, or write elsewhere" if error.errno == errno.ENOSPC else None,
    )


def summary(name: str) -> str:
    """The first line of a subcommand's docstring, read from its source without importing it."""
    for node in ast.parse((_FOLDER / f"{name}.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name == "command":
            return (ast.get_docstring(node) or "").partition("\n")[0]
    return ""


@click.group(cls=_Subcommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="tamis")
def main() -> None:
    """Threshold alerts over joined sensor streams, with provably bounded memory and filters at the edge."""
