"""The command `tamis`: modules with subcommands, in folders by use.

| folder | subcommands |
|---|---|
| `query` | queries over recordings, without a fleet |
| `manage` | at a registry, a Kafka or a terminal of a user: definitions, state, silences, tokens |
| `fleet` | a whole fleet on this machine |
| `services` | one service each, as containers run them |

`common` has options, tables and files that several subcommands share, and `shell` the parts of `tamis sql`.

A module of the first four folders without a leading underscore has the subcommand of that name: its function
`command` is a click command. Of a few others it has a function with the name of the subcommand
(`_WITH_OTHERS`). The first line of the docstring of such a function is its line in `tamis --help`. A module
is imported only when its subcommand runs: help is quick, and a service imports only what it needs.

Exit codes: 0 yes or done; 1 no (a query is refused, alarms differ); 2 the input is wrong, or something that
is needed isn't available (TAMIS_EXIT_UNAVAILABLE in the environment sets another code for the latter); 130
interrupted.
"""

from __future__ import annotations

import ast
import errno
import importlib
import os
import re
import sys
from pathlib import Path
from typing import IO, Any

import click

from tamis.errors import EXIT_UNAVAILABLE, InputError, TamisError, UnavailableError
from tamis.printable import printable_lines

_FOLDERS = ("query", "manage", "fleet", "services")
_KEEP_READINGS = ("fleet", "services")  # on disk, where no other user may read them
_INTERRUPTED = 130
# Subcommands in the module of another one.
_WITH_OTHERS = {"drop": "apply", "unsilence": "silence", "acknowledge": "silence"}
_PLOTS = ("matplotlib", "plotext")  # packages of the extra `plots`


class _Failure(click.ClickException):
    """A TamisError as click's exception, with its exit code."""

    def __init__(self, error: TamisError) -> None:
        super().__init__(error.shown)
        self._logged = str(error)
        self.exit_code = _exit_code(error)

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message: as text, or as a log event if a service logs JSON."""
        logs = sys.modules.get("tamis.telemetry.logs")  # loaded only by services
        if logs is not None and logs.in_json():
            logs.get_logger("cli").error(self._logged)
        else:
            self.message = printable_lines(self.message)
            super().show(file)


class _Subcommands(click.Group):
    """The subcommands: the modules of the folders."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(modules())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return subcommand(cmd_name) if cmd_name in modules() else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not ctx.resilient_parsing and not name.startswith("-") and name not in modules():
            from tamis.wording.names import suggest

            ctx.fail(f"there is no command '{name}'; {suggest(name, modules(), '`tamis --help` lists them')}")
        if not ctx.resilient_parsing and name in modules() and modules()[name].parent.name in _KEEP_READINGS:
            from tamis.settings.common import keep_new_files_private

            keep_new_files_private()
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary(path, name)) for name, path in sorted(modules().items())])

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except TamisError as error:
            raise _Failure(error) from error
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] == "tamis":
                raise
            raise _Failure(_not_installed(error.name)) from error
        except BrokenPipeError:
            raise  # click ends quietly: the reader of standard output has closed it
        except OSError as error:
            # Such as a full disk under standard output. Exit code 1 would mean that the answer is no.
            raise _Failure(_from_system(error)) from error
        except KeyboardInterrupt:
            ctx.exit(_INTERRUPTED)
        except Exception as error:
            kafka = sys.modules.get("confluent_kafka")  # loaded only by commands that use Kafka
            if kafka is None or not isinstance(error, kafka.KafkaException):
                raise
            raise _Failure(_from_kafka(error)) from error


def _exit_code(error: TamisError) -> int:
    """The exit code; a supervisor can choose the code of errors that may pass when it tries again."""
    other = os.environ.get(EXIT_UNAVAILABLE, "")
    known = other.isascii() and other.isdigit() and 0 < int(other) < 128
    return int(other) if error.retriable and known else error.exit_code


def _not_installed(module: str) -> TamisError:
    package = module.partition(".")[0]
    hint = (
        "install Tamis with the extra that needs it: tamis[tools] for commands, tamis[edge], "
        "tamis[registry], tamis[joiner] or tamis[alerts] for a service"
    )
    if package in _PLOTS:
        hint = "install Tamis with the extra for plots: tamis[tools,plots]"
    return InputError(f"the Python package {package!r} is not installed", hint=hint)


def _from_system(error: OSError) -> TamisError:
    return UnavailableError(
        f"the system refuses: {error.strerror or error}",
        where=str(error.filename) if error.filename else None,
        hint="make room, or write to another disk" if error.errno == errno.ENOSPC else None,
    )


def _from_kafka(error: Exception) -> TamisError:
    """An unhandled error of the Kafka client, such as settings that it rejects."""
    from confluent_kafka import KafkaError

    from tamis.messaging.connection import BOOTSTRAP, Cluster, kafka_at, unavailable

    bootstrap = os.environ.get(BOOTSTRAP) or "127.0.0.1:9092"
    if error.args[0].code() == KafkaError._INVALID_ARG:
        return InputError(
            f"the Kafka client rejects its settings: {error.args[0].str()}",
            where=kafka_at(bootstrap),
            hint="check the TAMIS_KAFKA_… variables and the files in them",
        )
    return unavailable(error.args[0], Cluster(bootstrap))


def modules() -> dict[str, Path]:
    """The module of each subcommand, by the name of the subcommand."""
    here = Path(__file__).parent
    own = {path.stem: path for folder in _FOLDERS for path in (here / folder).glob("[!_]*.py")}
    return own | {name: own[other] for name, other in _WITH_OTHERS.items()}


def subcommand(name: str) -> click.Command:
    """The command of a subcommand, whose module is imported."""
    path = modules()[name]
    module = importlib.import_module(f"{__name__}.{path.parent.name}.{path.stem}")
    command = getattr(module, _function(name))
    assert isinstance(command, click.Command)
    return command


def _function(name: str) -> str:
    """The name of the function of a subcommand in its module."""
    return name if name in _WITH_OTHERS else "command"


def summary(module: Path, name: str) -> str:
    """The first sentence of a subcommand's docstring, read from the source without an import."""
    for node in ast.parse(module.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name == _function(name):
            first = " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())
            return re.split(r"(?<=[.]) ", first, maxsplit=1)[0]
    return ""


@click.group(cls=_Subcommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="tamis")
def main() -> None:
    """Threshold alerts over joined sensor streams, with provably bounded memory and filters at the edge."""
