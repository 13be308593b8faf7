"""The process that reads and proves: `python -m tamis_registry.proving.child FD`.

It has no Kafka, no threads, and no state except a replica of the definitions. If a text takes too long, the
kernel ends the process at any point of its work. A thread couldn't be ended in this way.
"""

from __future__ import annotations

import pickle
import resource
import signal
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection

from tamis.errors import RefusedError, TamisError
from tamis.identity_cache import IdentityCache
from tamis.query.model import AlertDef, Catalog, DerivedDef
from tamis.telemetry import get_logger
from tamis_registry.core.statements.reading import read
from tamis_registry.proving.fork import data_bytes, limit, too_large
from tamis_registry.proving.messages import (
    MOST_ANSWER,
    Answer,
    Failed,
    Progress,
    Request,
    Settings,
    TrialRequest,
    encoded,
)

_log = get_logger("tamis.registry")


def main(connection: Connection) -> None:
    """Read texts until the registry closes the pipe."""
    # Ctrl-C in a terminal is for the registry, which ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    settings: Settings = pickle.loads(connection.recv_bytes())
    limit(resource.RLIMIT_DATA, settings.data_bytes)
    catalog = Catalog(file_access=settings.file_access)
    while True:
        try:
            request: Request | TrialRequest = pickle.loads(connection.recv_bytes())
        except EOFError:
            return
        request.difference.apply(catalog)
        seconds, most = settings.seconds, settings.data_bytes
        if isinstance(request, TrialRequest):
            limits = request.trial.limits
            seconds, most = limits.seconds, min(most, data_bytes() + limits.data_bytes)
        used = resource.getrusage(resource.RUSAGE_SELF)
        # Whole seconds, from the beginning of the process.
        limit(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + 1 + seconds)
        limit(resource.RLIMIT_DATA, most)
        answer = _answer(request, catalog, connection)
        limit(resource.RLIMIT_DATA, settings.data_bytes)
        connection.send_bytes(answer)
        # The next text has other definitions, so these results would only take memory.
        catalog.results = IdentityCache()


def _answer(request: Request | TrialRequest, catalog: Catalog, connection: Connection) -> bytes:
    def before_each(made: AlertDef | DerivedDef) -> None:
        connection.send_bytes(encoded(Progress(made.name, str(made.position))))

    try:
        answer = encoded(_made(request, catalog, before_each))
        if len(answer) > MOST_ANSWER:
            raise too_large(MOST_ANSWER)
        return answer
    except TamisError as error:
        return encoded(Failed(error))
    except MemoryError:
        if isinstance(request, TrialRequest):
            what, hint = "the trial takes too much memory", "send fewer readings, or a query with fewer rows"
        else:
            what = "the proofs for these SQL statements take too much memory"
            hint = "send fewer statements at a time"
        return encoded(Failed(RefusedError(what, hint=hint)))
    except Exception:
        # A fault of ours in one text; its traceback is in the log of the registry.
        _log.exception("parsing or proving SQL statements failed")
        return encoded(Failed(TamisError("an error in the registry; its log has the cause")))


def _made(
    request: Request | TrialRequest, catalog: Catalog, before_each: Callable[[AlertDef | DerivedDef], None]
) -> Answer:
    if isinstance(request, TrialRequest):
        # Evaluators and Arrow take seconds and memory, which most registries never need.
        from tamis_registry.proving.trial import try_out

        return try_out(request.trial, catalog)
    return read(
        request.text,
        catalog,
        request.file,
        keep=request.keep,
        files=request.files,
        before_each=before_each,
    )


if __name__ == "__main__":
    main(Connection(int(sys.argv[1])))
