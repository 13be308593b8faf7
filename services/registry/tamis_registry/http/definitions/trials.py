"""Trials over HTTP: a query that isn't in service runs on samples of readings, in a proving process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

import orjson
from fastapi import FastAPI, Query, Request
from fastapi.concurrency import run_in_threadpool
from pydantic import TypeAdapter, ValidationError
from starlette.responses import Response

from tamis.errors import InputError, RefusedError
from tamis.query.model import Catalog
from tamis.recordings.json_structure import ComplexityError, loads
from tamis.recordings.times import TimeUnit
from tamis_registry.http.common.parts import TEXT_TYPES, File, read_sql, while_connected
from tamis_registry.http.common.reading_turns import ReadingTurns
from tamis_registry.http.common.rights import client_of, may_change, may_see_readings, refusal_of_readings
from tamis_registry.http.schemas.trials import TrialBody, TrialResult
from tamis_registry.kafka.newest import NewestReader
from tamis_registry.kafka.recent_samples import recent_sample
from tamis_registry.proving.messages import Needed, Sample, Trial, TrialLimits, Tried
from tamis_registry.proving.pool import Provers
from tamis_registry.proving.turns import Client
from tamis_registry.worker import Worker

# Limits of one trial, in seconds of processor time and in bytes.
SECONDS = 10
DATA_BYTES = 512 * 2**20
MOST_ROWS = 1_000
MOST_READINGS = 10_000  # that are sent
# Reading the topics of a stream takes at most 2 s.
MOST_STREAMS = 8

JSON_TYPE = "application/json"

_SENT = "The rows are those of the readings that were sent, each sample as one source."
_FEWER = "The topics have only the readings that queries in service need."
_FURTHER = f"{_FEWER} In service, this query may have more rows."
_OTHER = (
    f"{_FEWER} In service, this query may have other rows, since its rows also depend on readings that are"
    " missing here."
)

_BODY = TypeAdapter[TrialBody](TrialBody)
_LIMITS = TrialLimits(SECONDS, DATA_BYTES, MOST_ROWS)

Wanted = Annotated[
    str | None,
    Query(
        max_length=255,
        description="A query that the text creates or explains; without it, the last one of the text",
    ),
]
Rows = Annotated[int, Query(ge=1, le=MOST_ROWS, description="The greatest number of rows in the answer")]


@dataclass(frozen=True)
class _Asked:
    """The body of a request. Without `samples`, the newest readings in the topics are wanted."""

    text: str
    samples: Mapping[str, Sample] | None = None
    unit: TimeUnit | None = None


class Trials:
    """Runs queries on samples."""

    def __init__(self, worker: Worker, provers: Provers, reader: NewestReader, turns: ReadingTurns) -> None:
        self._worker, self._provers, self._reader, self._turns = worker, provers, reader, turns

    async def run(self, trial: Trial, client: Client) -> Response:
        """The result on the samples of a trial, or on the newest readings if it has none."""
        by = await run_in_threadpool(self._catalog)
        if trial.samples is not None:
            tried = await self._provers.try_out(trial, by, client)
            assert isinstance(tried, Tried)
            return _answer(tried, "sent", dict.fromkeys(tried.inputs, True), _SENT)
        needed = await self._provers.try_out(trial, by, client)
        assert isinstance(needed, Needed)
        samples, complete = await self._turns.run(partial(self._recent, needed))
        tried = await self._provers.try_out(replace(trial, samples=samples, unit="us"), by, client)
        assert isinstance(tried, Tried)
        return _answer(tried, "recent", complete, _FURTHER if needed.monotone else _OTHER)

    def _catalog(self) -> Catalog:
        with self._worker.reading() as (registry, _):
            return registry.state.catalog

    def _recent(self, needed: Needed) -> tuple[dict[str, Sample], dict[str, bool]]:
        hint = "send samples of readings with the request, or run the query on a recording by `tamis run`"
        if needed.neighbours:
            what = "compares readings with those beside them in their stream, and topics lack some of these"
            raise RefusedError(f"{needed.query} {what}", hint=hint)
        if len(needed.streams) > MOST_STREAMS:
            what = f"{needed.query} reads {len(needed.streams)} streams, and topics of at most {MOST_STREAMS}"
            raise RefusedError(f"{what} are read for a trial", hint=hint)
        with self._worker.reading() as (registry, _):
            plan = registry.plan
        found = {name: recent_sample(self._reader, plan, name, one) for name, one in needed.streams.items()}
        samples = {name: sample for name, (sample, _) in found.items()}
        return samples, {name: complete for name, (_, complete) in found.items()}


def _answer(tried: Tried, source: str, complete: Mapping[str, bool], note: str) -> Response:
    inputs = {
        name: {
            "rows": one.rows,
            "retained": one.retained,
            "omitted": one.rows - one.retained,
            "refused": one.refused,
            "from": one.first,
            "to": one.last,
            "source": source,
            "complete": complete[name],
        }
        for name, one in tried.inputs.items()
    }
    document = {
        "query": tried.query,
        "columns": tried.columns,
        "times": tried.times,
        "rows": orjson.Fragment(tried.rows),
        "row_count": tried.row_count,
        "truncated": tried.truncated,
        "inputs": inputs,
        "note": note,
        "notices": tried.notices,
    }
    return Response(orjson.dumps(document), media_type=JSON_TYPE)


def trial_routes(app: FastAPI, trials: Trials) -> None:
    """Add the route."""

    @app.post(
        "/v1/try",
        openapi_extra=_body_types(),
        summary="Run a query on samples of readings, apply nothing",
        description="With SQL text: on the newest readings in the topics of its streams; tokens need "
        f"`readings: true`. With JSON: on the readings in it. A trial has {SECONDS} s of processor time.",
        tags=["Statements"],
        response_model=TrialResult,
    )
    async def try_out(
        request: Request, query: Wanted = None, limit: Rows = 200, file: File = None
    ) -> Response:
        asked = await _read(request)
        refusal = refusal_of_readings(request) if asked.samples is None else None
        if refusal is not None:
            return refusal
        limits = replace(_LIMITS, rows=limit)
        writer = may_change(request)
        trial = Trial(
            asked.text,
            file,
            query,
            asked.samples,
            asked.unit,
            limits,
            files=writer,
            tables=writer or may_see_readings(request),
        )
        return await while_connected(request, trials.run(trial, client_of(request)))


async def _read(request: Request) -> _Asked:
    """The body. Raises HTTPException and InputError if it is neither SQL text nor a TrialBody."""
    kind = request.headers.get("content-type", "text/plain").partition(";")[0].strip().lower()
    if kind != JSON_TYPE:
        return _Asked(await read_sql(request))
    body = await request.body()
    try:
        # Nothing else is answered while the body is parsed. The objects besides readings are few.
        sent = _BODY.validate_python(loads(body, 2 * MOST_READINGS), strict=True)
    except orjson.JSONDecodeError as error:
        raise InputError(f"not JSON: {error}", where="the body") from None
    except ComplexityError as error:
        raise InputError(error.what, where="the body") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise InputError(first["msg"], where=".".join(map(str, first["loc"])) or "the body") from None
    if "samples" not in sent:
        return _Asked(sent["sql"], None, sent.get("time_unit"))
    readings = sum(map(len, sent["samples"].values()))
    if readings > MOST_READINGS:
        what = f"{readings} readings are sent, and a trial takes at most {MOST_READINGS}"
        raise InputError(what, where="samples", hint="send fewer, or use `tamis run`")
    samples = {name: Sample((tuple(some),)) for name, some in sent["samples"].items()}
    return _Asked(sent["sql"], samples, sent.get("time_unit"))


def _body_types() -> dict[str, Any]:
    """The types of the body in the OpenAPI description."""
    texts = {kind: {"schema": {"type": "string"}} for kind in TEXT_TYPES[:2]}
    json = {"schema": {**_BODY.json_schema(), "title": "TrialBody"}}
    return {"requestBody": {"required": True, "content": {**texts, JSON_TYPE: json}}}
