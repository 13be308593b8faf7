/** Readings of a stream by the decision of the edges, and the share that they published. */
import type { StreamDocument } from "../api/documents";
import { decided, received, withoutCounts } from "../text/decisions";
import { percent, perSecond, whole } from "../text/numbers";
import { Section } from "./Section";
import { Table } from "./Table";

export function Decisions({ stream }: { stream: StreamDocument }) {
  const rows = decided(stream.tuples, stream.rates);
  const all = received(stream.rates);
  return (
    <Section title="Readings" note="By the decision of the edges. Rates are those of the last 10 to 20 s.">
      {rows === undefined ? (
        <p class="empty">{withoutCounts(stream)}</p>
      ) : (
        <>
          <dl class="figures">
            <div>
              <dt>Retained share</dt>
              <dd>
                {stream.retained === null ? (
                  <span class="muted">no reading yet</span>
                ) : (
                  <>
                    <meter min={0} max={1} value={stream.retained} aria-label="Retained share" />
                    <span>{percent(stream.retained)}</span>
                  </>
                )}
              </dd>
            </div>
            <div>
              <dt>Received</dt>
              <dd>{all === null ? <span class="muted">not known yet</span> : perSecond(all)}</dd>
            </div>
          </dl>
          <Table
            caption="Readings by decision"
            rows={rows}
            rowKey={({ decision }) => decision}
            empty=""
            columns={[
              { heading: "Decision", head: true, cell: ({ decision }) => decision },
              { heading: "Rate", number: true, cell: ({ rate }) => (rate === null ? "–" : perSecond(rate)) },
              { heading: "Since the edges began", number: true, cell: ({ tuples }) => whole(tuples) },
              { heading: "Meaning", wide: true, cell: ({ meaning }) => meaning },
            ]}
          />
        </>
      )}
    </Section>
  );
}
