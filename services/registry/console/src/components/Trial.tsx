/** The result of a trial: its rows, the readings that were looked at, and what the result doesn't say. */
import { useMemo } from "preact/hooks";
import type { TrialInput, TrialResult } from "../api/documents";
import { whole } from "../text/numbers";
import { namedRows, sent, seriesOfRows, span, summary } from "../text/trial";
import { ReadingsChart } from "./ReadingsChart";
import { Rows } from "./Rows";
import { Table } from "./Table";
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
      {series.length > 0 && <ReadingsChart series={series} caption={`Numbers of each ${noun} over event time (UTC).`} />}
      <Rows caption={`Trial: ${noun}s`} rows={rows} times={result.times} empty={`These readings raise no ${noun}.`} />
      <h3>Readings that were looked at</h3>
      <Inputs inputs={result.inputs} />
      {result.notices.map((notice) => (
        <p key={notice} class="warning">
          {notice}
        </p>
      ))}
      <p class="muted">{result.note}</p>
    </div>
  );
}

function Inputs({ inputs }: { inputs: Record<string, TrialInput> }) {
  return (
    <Table
      caption="Readings that were looked at"
      rows={Object.entries(inputs)}
      rowKey={([stream]) => stream}
      empty="The query reads no stream."
      columns={[
        { heading: "Stream", head: true, cell: ([stream]) => stream },
        { heading: "Readings", number: true, cell: ([, { rows }]) => whole(rows) },
        { heading: "Edges would send", number: true, cell: ([, input]) => sent(input) },
        { heading: "Refused", number: true, cell: ([, { refused }]) => whole(refused) },
        { heading: "From (event time)", cell: ([, { from }]) => <Time at={from} /> },
        { heading: "Over", number: true, cell: ([, input]) => span(input) ?? "–" },
        { heading: "Older ones in topics", cell: ([, { complete }]) => (complete ? "no" : "yes") },
      ]}
    />
  );
}
