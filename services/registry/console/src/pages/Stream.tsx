/** A stream: its shards, topics and readers, and the newest retained readings. */
import { useMemo } from "preact/hooks";
import type { AlertDocument, Names, Reading, Records, StreamDocument } from "../api/documents";
import { useLive } from "../api/live";
import { Decisions } from "../components/Decisions";
import { LiveState } from "../components/LiveState";
import { ProblemMessage } from "../components/ProblemMessage";
import { ReadingsChart } from "../components/ReadingsChart";
import { Reasons } from "../components/Reasons";
import { Rows } from "../components/Rows";
import { Section } from "../components/Section";
import { Shards } from "../components/Shards";
import { State } from "../components/State";
import { Table } from "../components/Table";
import { Topics } from "../components/Topics";
import { links } from "../text/route";
import { seriesOf, timesOf } from "../text/series";

export function Stream({ name }: { name: string }) {
  const path = `/v1/streams/${encodeURIComponent(name)}`;
  const { data: stream, problem } = useLive<StreamDocument>(path, ["streams", "edges", "plan"]);
  const alerts = useLive<AlertDocument[]>("/v1/alerts", ["alerts", "plan"]);
  const readers = alerts.data?.filter((alert) => stream?.alerts.includes(alert.name));
  return (
    <>
      <div class="title">
        <h1 tabIndex={-1}>Stream {name}</h1>
        {stream && (
          <p class="muted">
            {stream.kind}, since plan {stream.plan}
          </p>
        )}
      </div>
      <ProblemMessage problem={problem} />
      {stream && (
        <>
          {stream.why.length > 0 && (
            <p>
              <State state="refused" /> <Reasons why={stream.why} />
            </p>
          )}
          {stream.kind === "raw" && (
            <>
              <Decisions stream={stream} />
              <Section title="Shards" note="The sources of the stream. Each obeys a plan from an event time on.">
                <Shards rows={stream.shards} />
              </Section>
            </>
          )}
          <Section title="Alerts" note="What these keep of the stream beside the proven bound.">
            <Table
              caption="Alerts that read the stream"
              rows={readers}
              rowKey={(alert) => alert.name}
              empty={
                <>
                  No alert reads this stream, so edges publish none of it. Write one in <a href={links.new}>New alert</a>.
                </>
              }
              columns={[
                { heading: "Alert", head: true, cell: (alert) => <a href={links.alert(alert.name)}>{alert.name}</a> },
                { heading: "State", cell: ({ state }) => <State state={state} /> },
                { heading: "Live state", number: true, cell: (alert) => <LiveState alert={alert} /> },
              ]}
            />
          </Section>
          <Topics stream={name} />
          {stream.subscribers.length > 0 && <Subscribers stream={stream} />}
          <Retained name={name} />
          <Section title="SQL">
            <pre class="sql">{stream.sql}</pre>
          </Section>
        </>
      )}
    </>
  );
}

function Subscribers({ stream }: { stream: StreamDocument }) {
  return (
    <Section title="Subscribers" note="Consumers outside the fleet.">
      <Table
        caption="Subscribers"
        rows={stream.subscribers}
        rowKey={({ id }) => id}
        empty="There is none."
        columns={[
          { heading: "Consumer", head: true, cell: ({ consumer }) => consumer },
          { heading: "Topic", cell: ({ topic }) => <code>{topic}</code> },
          { heading: "Filter", wide: true, cell: ({ filter }) => (filter ? <code>{filter}</code> : "every tuple") },
          { heading: "Expires in", number: true, cell: (one) => `${one.expires_in} s` },
        ]}
      />
    </Section>
  );
}

function Retained({ name }: { name: string }) {
  const path = `/v1/streams/${encodeURIComponent(name)}/readings?limit=100`;
  const { data, problem } = useLive<Records<Reading>>(path);
  const { data: names } = useLive<Names>("/v1/names", ["streams", "plan"]);
  const times = useMemo(() => timesOf(names, name), [names, name]);
  const readings = data?.records.map(({ value }) => value);
  const series = useMemo(() => seriesOf(readings?.map((one) => [name, one]) ?? [], { [name]: times }), [data, times]);
  return (
    <Section
      title="Newest readings"
      note="Retained readings only, the newest first: those that edges omit are in no topic."
    >
      {problem ? (
        <ProblemMessage problem={problem} />
      ) : (
        <>
          {series.length > 0 && <ReadingsChart series={series} caption="Values over event time (UTC)." />}
          <Rows
            caption="Newest readings"
            rows={readings?.slice(0, 20)}
            times={times}
            empty="No retained reading is in the topics. Edges publish when an alert reads the stream and readings come."
          />
        </>
      )}
    </Section>
  );
}
