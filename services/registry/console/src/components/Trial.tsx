/** The result of a trial: its rows, the readings that were looked at, and what the result doesn't say. */
import { useMemo } from "preact/hooks";
import type { TrialInput, TrialResult } from "../api/documents";
import { count, whole } from "../text/numbers";
import { namedRows, sent, seriesOfRows, span, summary } from "../text/trial";
import { ReadingsChart } from "./ReadingsChart";
import { Rows } from "./Rows";
import { Time } from "./Time";

/** `noun`: of a row, such as "alarm". `stale`: the text is another one now. */
export function Trial({ result, noun, stale }: { result: TrialResult; noun: string; stale: boolean }) {
  const rows = useMemo(() => namedRows(result), [result]);
  const series = useMemo(() => seriesOfRows(result, rows), [result, rows]);
  return (
    <div class="trial">
      <p>
        <strong>{summary(result, noun)}</strong>
        {result.truncated && ` These are the first ${whole(result.rows.length)}.`}
        {stale && <span class="warning"> The text has changed since this trial.</span>}
      </p>
      <ul class="plain" aria-label="Readings that were looked at">
        {Object.entries(result.inputs).map(([stream, input]) => (
          <Input key={stream} stream={stream} input={input} />
        ))}
      </ul>
      {result.notices.map((notice) => (
        <p key={notice} class="warning">
          {notice}
        </p>
      ))}
      <p class="muted">{result.note}</p>
      {series.length > 0 && <ReadingsChart series={series} caption={`Numbers of each ${noun} over event time (UTC).`} />}
      <Rows caption={`Trial: ${noun}s`} rows={rows} times={result.times} empty={`These readings raise no ${noun}.`} />
    </div>
  );
}

/** What was looked at of a stream, in sentences. */
function Input({ stream, input }: { stream: string; input: TrialInput }) {
  const { rows, refused, from, complete } = input;
  const over = span(input);
  return (
    <li>
      <strong>{stream}</strong>: {count(rows, "reading")}
      {over !== null && (
        <>
          {" "}
          over {over}, from <Time at={from} /> on
        </>
      )}
      {rows > 0 && <>; edges would send {sent(input)}</>}.{refused > 0 && ` ${count(refused, "reading")} would be refused.`}
      {!complete && " The topics have older ones."}
    </li>
  );
}
