/** The sinks of notifications, and what waits for them. */
import type { SinkDocument } from "../api/documents";
import { whole } from "../text/numbers";
import { Reasons } from "./Reasons";
import { Section } from "./Section";
import { State } from "./State";
import { Table } from "./Table";
import { Time } from "./Time";

export function Sinks({ rows }: { rows: SinkDocument[] | undefined }) {
  return (
    <Section title="Sinks" note="Receivers of notifications. What a sink doesn't take waits in Kafka.">
      <Table
        caption="Sinks of notifications"
        rows={rows}
        rowKey={({ name }) => name}
        empty={
          <>
            The alerts service has reported nothing yet. Start it with <code>tamis alerts</code>.
          </>
        }
        columns={[
          { heading: "Sink", head: true, cell: ({ name }) => name },
          { heading: "State", cell: ({ state }) => <State state={state} /> },
          { heading: "Notifications that wait", number: true, cell: ({ waiting }) => whole(waiting) },
          { heading: "Oldest from", cell: ({ oldest }) => <Time at={oldest} /> },
          { heading: "Why", wide: true, cell: ({ why }) => <Reasons why={why} /> },
        ]}
      />
    </Section>
  );
}
