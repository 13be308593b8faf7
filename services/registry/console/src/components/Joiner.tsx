/** The joiner: how far it has come, and which shard or partition holds it back. */
import type { ComponentChildren } from "preact";
import type { JoinerDocument, JoinerPartition, JoinerTopic } from "../api/documents";
import { heldBack, reached, slowestFirst } from "../text/joiner";
import { bytes, whole } from "../text/numbers";
import { links } from "../text/route";
import { roughly } from "../text/time";
import { Reached } from "./Reached";
import { Reasons } from "./Reasons";
import { Section } from "./Section";
import { State } from "./State";
import { Table } from "./Table";

/** A fleet may have hundreds of topics; those that hold the joiner back are of interest. */
const MOST = 10;

export function Joiner({ joiner }: { joiner: JoinerDocument | undefined }) {
  return (
    <Section title="Joiner" note="Alarms of readings before its event time are complete.">
      {joiner === undefined ? <p class="muted">Loading …</p> : <Facts joiner={joiner} />}
    </Section>
  );
}

function Facts({ joiner }: { joiner: JoinerDocument }) {
  const dead = Object.entries(joiner.dead);
  return (
    <>
      <dl class="figures">
        <Figure name="State">
          <State state={joiner.state} />
        </Figure>
        <Figure name="Reported">{joiner.reported_ago === null ? "–" : `${joiner.reported_ago} s ago`}</Figure>
        <Figure name="Complete up to (event time)">
          <Reached at={reached(joiner)} />
        </Figure>
        <Figure name="Plan">{joiner.plan || "–"}</Figure>
        <Figure name="Late tuples">{whole(joiner.late)}</Figure>
        <Figure name="Wait for a newer plan">{whole(joiner.parked)}</Figure>
        {dead.length > 0 && (
          <Figure name="Dead letters">{dead.map(([reason, n]) => `${reason} ${whole(n)}`).join(", ")}</Figure>
        )}
      </dl>
      {joiner.why.length > 0 && (
        <div class="panel why">
          <strong>Why {joiner.state}:</strong> <Reasons why={joiner.why} />
          {joiner.process && <p>It is {joiner.process}.</p>}
        </div>
      )}
      {joiner.partitions.length > 0 && joiner.state !== "silent" && (
        <div class="panel why" role="group" aria-label="What holds the joiner back">
          <Reasons why={heldBack(joiner)} />
        </div>
      )}
      <div class="columns">
        <Partitions rows={slowestFirst(joiner.partitions)} />
        <Topics rows={slowestFirst(joiner.topics)} />
      </div>
    </>
  );
}

function Figure({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Partitions({ rows }: { rows: JoinerPartition[] }) {
  return (
    <div class="part">
      <h3>Partitions{more(rows)}</h3>
      <Table
        caption="Partitions of the joiner"
        rows={rows.slice(0, MOST)}
        rowKey={({ partition }) => String(partition)}
        empty="The joiner has reported nothing yet."
        columns={[
          { heading: "Partition", head: true, number: true, cell: ({ partition }) => partition },
          { heading: "Complete up to", cell: ({ frontier }) => <Reached at={frontier} /> },
          { heading: "Behind its clock", number: true, cell: ({ behind }) => (behind === null ? "–" : roughly(BigInt(behind))) },
          { heading: "Live tuples", number: true, cell: ({ tuples }) => whole(tuples) },
          { heading: "Memory", number: true, cell: (one) => bytes(one.bytes) },
          { heading: "Plan", number: true, cell: ({ plan }) => plan },
        ]}
      />
    </div>
  );
}

function Topics({ rows }: { rows: JoinerTopic[] }) {
  return (
    <div class="part">
      <h3>Topics{more(rows)}</h3>
      <Table
        caption="Topics of the joiner"
        rows={rows.slice(0, MOST)}
        rowKey={({ topic }) => topic}
        empty="No alert needs a topic."
        columns={[
          { heading: "Topic", head: true, cell: ({ topic }) => topic },
          { heading: "Stream", cell: ({ stream }) => <a href={links.stream(stream)}>{stream}</a> },
          { heading: "Complete up to", cell: ({ frontier }) => <Reached at={frontier} /> },
          { heading: "Slowest shard", cell: ({ slowest }) => slowest?.shard ?? "–" },
          { heading: "Live tuples", number: true, cell: ({ tuples }) => whole(tuples) },
        ]}
        note={({ why }) =>
          why.length > 0 ? (
            <>
              <span class="muted">Why it waits:</span> <Reasons why={why} />
            </>
          ) : null
        }
      />
    </div>
  );
}

/** Says that some rows are left out. */
function more(rows: unknown[]) {
  return rows.length > MOST && <span class="muted"> (the {MOST} that have come least far, of {whole(rows.length)})</span>;
}
