/** Dead letters: records that a service couldn't use, with the reason and the first bytes. */
import { useState } from "preact/hooks";
import type { DeadLetter, DeadLetters as Document } from "../api/documents";
import { useLive } from "../api/live";
import { ProblemMessage } from "../components/ProblemMessage";
import { Table } from "../components/Table";
import { Time } from "../components/Time";
import { whole } from "../text/numbers";

export function DeadLetters() {
  const [reason, setReason] = useState<string | null>(null);
  const all = useLive<Document>("/v1/dead-letters?limit=100");
  const chosen = useLive<Document>(
    reason === null ? null : `/v1/dead-letters?${new URLSearchParams({ limit: "100", reason })}`,
  );
  const shown = reason === null ? all : chosen;
  const reasons = Object.entries(all.data?.reasons ?? {}).sort(([, a], [, b]) => b - a);
  return (
    <>
      <div class="title">
        <h1 tabIndex={-1}>Dead letters</h1>
        <p class="muted">Records that a service couldn't use. They are kept for a week on tamis.dead-letters.</p>
      </div>
      <ProblemMessage problem={shown.problem ?? all.problem} />
      {reasons.length > 0 && (
        <fieldset class="filters">
          <legend>Reason</legend>
          <Choice text="all" chosen={reason === null} onChoose={() => setReason(null)} />
          {reasons.map(([name, count]) => (
            <Choice key={name} text={`${name} (${whole(count)})`} chosen={reason === name} onChoose={() => setReason(name)} />
          ))}
        </fieldset>
      )}
      {shown.data && !shown.data.complete && (
        <p class="muted">Only the newest records were looked through ({whole(shown.data.read)}); there may be more.</p>
      )}
      {(shown.data || !shown.problem) && <Letters rows={shown.data?.records} />}
      {reason === "undelivered" && (
        <p>
          <code>tamis redeliver</code> sends undelivered notifications again.
        </p>
      )}
    </>
  );
}

function Choice({ text, chosen, onChoose }: { text: string; chosen: boolean; onChoose: () => void }) {
  return (
    <label class="choice">
      <input type="radio" name="reason" checked={chosen} onChange={onChoose} />
      {text}
    </label>
  );
}

function Letters({ rows }: { rows: DeadLetter[] | undefined }) {
  return (
    <Table
      caption="Dead letters"
      rows={rows}
      rowKey={({ partition, offset }) => `${partition}/${offset}`}
      empty="There is no dead letter. Every reading and every notification could be used."
      columns={[
        { heading: "Time", head: true, cell: ({ time }) => <Time at={time} /> },
        { heading: "Reason", cell: ({ reason }) => reason },
        { heading: "Error", wide: true, cell: ({ error }) => error ?? "–" },
        { heading: "Service", cell: ({ service, edge }) => (edge ? `${service} ${edge}` : (service ?? "–")) },
        { heading: "Source", cell: place },
        { heading: "Bytes", number: true, cell: ({ bytes }) => whole(bytes) },
        { heading: "Record", wide: true, cell: (letter) => <Sample letter={letter} /> },
      ]}
    />
  );
}

/** Where the record came from, or the sink that refused it. */
function place({ source, source_partition, source_offset, sink }: DeadLetter) {
  if (sink) return `sink ${sink}`;
  if (!source) return <span class="muted">–</span>;
  return (
    <>
      {source}
      {source_offset !== null && (
        <span class="muted">
          {" "}
          {source_partition}:{source_offset.toString()}
        </span>
      )}
    </>
  );
}

function Sample({ letter }: { letter: DeadLetter }) {
  const text = letter.text ?? (letter.base64 === null ? "" : `base64: ${letter.base64}`);
  if (text.length <= 120) return <code>{text}</code>;
  return (
    <details>
      <summary>
        <code>{text.slice(0, 100)} …</code>
      </summary>
      <pre class="sql">{text}</pre>
    </details>
  );
}
