/** The sinks of notifications, and what waits for them. */
import type { SinkDocument } from "../api/documents";
import { count, whole } from "../text/numbers";
import { Reasons } from "./Reasons";
import { Section } from "./Section";
import { State } from "./State";
import { Table } from "./Table";
import { Time } from "./Time";

/** The queue of a sink reads so far ahead; of further events it isn't known yet whether they are for the sink. */
function waits(waiting: number, unread: number): string {
  return unread > 0 ? `${whole(waiting)}, and ${count(unread, "event")} not read yet` : whole(waiting);
}

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
          { heading: "Notifications that wait", number: true, cell: ({ waiting, unread }) => waits(waiting, unread) },
          { heading: "Oldest from", cell: ({ oldest }) => <Time at={oldest} /> },
          { heading: "Why", wide: true, cell: ({ why }) => <Reasons why={why} /> },
        ]}
      />
    </Section>
  );
}
