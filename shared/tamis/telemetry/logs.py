"""Structured logs on standard error: text for people, or JSON lines for programs.

Secrets of settings are never logged.
"""

from __future__ import annotations

import faulthandler
import logging
import sys
import threading
from textwrap import indent
from types import TracebackType
from typing import Literal

import structlog

from tamis.printable import printable_facts, printable_lines

# Whether this process writes only JSON to standard error.
_json = False

# Facts of an event with several lines: the calls of an exception.
_TRACES = ("exception", "stack")
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def configure_logs(
    service: str,
    level: Literal["debug", "info", "warning", "error"] = "info",
    form: Literal["text", "json"] = "text",
) -> None:
    """Set up structlog and the loggers of the standard library, once at the start of a process.

    A process that a signal such as SIGSEGV or SIGBUS ends also writes the calls of its threads, as text.
    """
    faulthandler.enable(2)  # the descriptor: the file may be replaced

    def name_service(
        _: structlog.typing.WrappedLogger, __: str, event: structlog.typing.EventDict
    ) -> structlog.typing.EventDict:
        # A context variable would not do: threads that libraries start don't inherit it.
        return {"service": service, **event}

    shared: list[structlog.typing.Processor] = [
        name_service,
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if form == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.stdlib.LoggerFactory(),
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                _only_printable,
                renderer,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    # Libraries log only warnings and errors, whatever the level of the service.
    root.setLevel(max(_LEVELS[level], logging.WARNING))
    logging.getLogger("tamis").setLevel(_LEVELS[level])
    logging.captureWarnings(True)
    global _json  # noqa: PLW0603
    _json = form == "json"
    if _json:
        sys.excepthook = _died
        threading.excepthook = lambda of: _died(of.exc_type, of.exc_value, of.exc_traceback)


def _only_printable(
    _: structlog.typing.WrappedLogger, __: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """The event without characters that steer a terminal, or begin a line that looks like another event."""
    if _json:
        return event  # JSON escapes them
    calls = {
        name: indent(printable_lines(text), "  ")
        for name in _TRACES
        if isinstance(text := event.get(name), str)
    }
    return {**printable_facts(event), **calls}


def in_json() -> bool:
    """True if everything that this process writes to standard error has to be JSON."""
    return _json


def _died(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
    get_logger("died").error("ended by an unhandled exception", exc_info=(kind, error or kind(), trace))


def get_logger(name: str) -> structlog.typing.FilteringBoundLogger:
    """A logger under `tamis.`. Events are short phrases; their facts are keyword arguments."""
    logger: structlog.typing.FilteringBoundLogger = structlog.get_logger(f"tamis.{name}")
    return logger
