"""`tamis plot`: the retained and omitted readings of a recording, as a picture or in the terminal."""

from __future__ import annotations

import io
import os
import shutil
import sys
from pathlib import Path
from typing import Literal, get_args

import click

from tamis.cli.common.recordings import files_of, read_recordings, recording_options
from tamis.cli.common.sql_file import statements_of
from tamis.errors import InputError
from tamis.offline.retained_series import RetainedSeries, retained_series
from tamis.offline.run import chosen_query
from tamis.offline.wording import COMMAND
from tamis.recordings.files import Format
from tamis.recordings.times import TimeUnit

_Picture = Literal["png", "svg", "pdf"]
_INCHES = (11.0, 5.0)
_DPI = 120
# The prompt of the shell stands below the plot.
_LINES_BELOW = 2


@click.command(
    epilog="""\b
Examples:
  tamis plot demo/first/alerts.sql --input air=demo/first/air.csv --value temp
  tamis plot demo/first/alerts.sql --input air=demo/first/air.csv --value temp -o retained.png
"""
)
@recording_options
@click.option("--value", required=True, metavar="COLUMN", help="The column to plot.")
@click.option("--stream", metavar="NAME", help="The stream, if --input has several.")
@click.option("--query", metavar="NAME", help="The alert, if the file has several.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="A file for the picture: .png, .svg or .pdf; `-` writes PNG to standard output. By default the plot "
    "is shown in the terminal.",
)
def command(
    source: str,
    inputs: tuple[str, ...],
    unit: TimeUnit | None,
    form: Format | None,
    as_arrived: bool,
    value: str,
    stream: str | None,
    query: str | None,
    output: str | None,
) -> None:
    """Plot which readings of a stream edges send for an alert alone, and which they drop.

    Of aggregates of windows, edges send partial aggregates of panes in place of readings: the plot shows the
    readings that are in them, in a picture between the boundaries of panes, and says how many rows they make.

    Only the plotted stream needs a recording. Of more than six keys, those with the most readings are shown.
    Needs the extra `plots`.
    """
    picture = None if output is None else _format(output)
    catalog, _ = statements_of(source)
    alert = chosen_query(catalog, query, source, COMMAND)
    files = files_of(inputs, source, catalog)
    recordings = read_recordings(catalog, [alert], files, form, unit, complete=False, as_arrived=as_arrived)
    series = retained_series(alert, catalog, recordings, value=value, stream=stream, wording=COMMAND)
    if output is None or picture is None:
        _show(series)
    else:
        _write(_rendered(series, picture), output)


def _format(output: str) -> _Picture:
    if output == "-":
        return "png"
    for known in get_args(_Picture):
        if Path(output).suffix.lower() == f".{known}":
            return known  # type: ignore[no-any-return]
    known = ", ".join(get_args(_Picture))
    raise InputError(
        "the format can't be determined from the name", where=output, hint=f"end the name in one of {known}"
    )


def _show(series: RetainedSeries) -> None:
    from tamis.offline.terminal_plot import terminal_plot

    size = shutil.get_terminal_size()
    color = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    click.echo(terminal_plot(series, size.columns, size.lines - _LINES_BELOW, color=color))


def _rendered(series: RetainedSeries, picture: _Picture) -> bytes:
    from matplotlib.figure import Figure

    from tamis.offline.retained_series import draw

    figure = Figure(figsize=_INCHES)
    draw(figure.subplots(), series)
    made = io.BytesIO()
    figure.savefig(made, format=picture, dpi=_DPI, bbox_inches="tight")
    return made.getvalue()


def _write(data: bytes, output: str) -> None:
    if output == "-":
        click.get_binary_stream("stdout").write(data)
        return
    try:
        Path(output).write_bytes(data)
    except OSError as error:
        raise InputError(f"can't be written: {error.strerror}", where=output) from error
