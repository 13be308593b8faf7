/** The fleet: what needs attention and why, then alerts, streams, edges, joiner, sinks and plans. */
import type {
  AlertDocument,
  EdgeDocument,
  JoinerDocument,
  PlanDocument,
  ShardDocument,
  SinkDocument,
  StreamDocument,
} from "../api/documents";
import { useLive } from "../api/live";
import { Joiner } from "../components/Joiner";
import { LiveState } from "../components/LiveState";
import { Links } from "../components/Links";
import { ProblemMessage } from "../components/ProblemMessage";
import { Reasons } from "../components/Reasons";
import { Section } from "../components/Section";
import { Sinks } from "../components/Sinks";
import { Since } from "../components/Since";
import { State } from "../components/State";
import { Table } from "../components/Table";
import { Time } from "../components/Time";
import { attention, type Finding } from "../text/attention";
import { received } from "../text/decisions";
import { count, percent, perSecond } from "../text/numbers";
import { links } from "../text/route";

export function Fleet() {
  const alerts = useLive<AlertDocument[]>("/v1/alerts", ["alerts", "plan"]);
  const streams = useLive<StreamDocument[]>("/v1/streams", ["streams", "plan"]);
  const edges = useLive<EdgeDocument[]>("/v1/edges", ["edges", "plan"]);
  const joiner = useLive<JoinerDocument>("/v1/joiner", ["plan", "alerts"]);
  const sinks = useLive<SinkDocument[]>("/v1/sinks");
  const plans = useLive<PlanDocument[]>("/v1/plans", ["plan"]);
  const newest = plans.data?.find((plan) => plan.newest);
  const problem =
    alerts.problem ?? streams.problem ?? edges.problem ?? joiner.problem ?? sinks.problem ?? plans.problem;
  const findings =
    alerts.data && streams.data && edges.data
      ? attention(alerts.data, streams.data, edges.data, joiner.data, sinks.data)
      : undefined;
  return (
    <>
      <div class="title">
        <h1 tabIndex={-1}>Fleet</h1>
        <p class="muted">
          {alerts.data && streams.data && edges.data && (
            <>
              {count(alerts.data.length, "alert")}, {count(streams.data.length, "stream")},{" "}
              {count(edges.data.length, "edge")}
            </>
          )}
          {newest && <>, plan {newest.version}</>}
        </p>
      </div>
      <ProblemMessage problem={problem} />
      {(findings || !problem) && (
        <Tables
          alerts={alerts.data}
          streams={streams.data}
          edges={edges.data}
          joiner={joiner.data}
          sinks={sinks.data}
          plans={plans.data}
          findings={findings}
        />
      )}
    </>
  );
}

interface Documents {
  alerts: AlertDocument[] | undefined;
  streams: StreamDocument[] | undefined;
  edges: EdgeDocument[] | undefined;
  joiner: JoinerDocument | undefined;
  sinks: SinkDocument[] | undefined;
  plans: PlanDocument[] | undefined;
  findings: Finding[] | undefined;
}

function Tables({ alerts, streams, edges, joiner, sinks, plans, findings }: Documents) {
  return (
    <>
      <Attention findings={findings} alerts={alerts} />
      <Section title="Alerts">
        <Alerts rows={alerts} streams={streams} />
      </Section>
      <Section title="Streams">
        <Streams rows={streams} />
      </Section>
      <Section title="Edges">
        <Edges rows={edges} />
      </Section>
      <Joiner joiner={joiner} />
      <Sinks rows={sinks} />
      <Section title="Plans" note="The newest versions. Every service moves to the newest plan by itself.">
        <Plans rows={plans} />
      </Section>
    </>
  );
}

function Attention({ findings, alerts }: { findings: Finding[] | undefined; alerts: AlertDocument[] | undefined }) {
  if (findings === undefined) return null;
  if (findings.length === 0) {
    const running = alerts?.filter(({ state }) => state === "running").length ?? 0;
    return (
      <p class="calm" role="status">
        <span class="state good">
          <span class="sign" aria-hidden="true" />
          Nothing needs attention
        </span>
        {running > 0 && <>: {count(running, "alert")} running.</>}
      </p>
    );
  }
  return (
    <Section title="Needs attention">
      <ul class="findings" aria-live="polite">
        {findings.map(({ state, reason, about }) => (
          <li key={`${state} ${reason}`}>
            <State state={state} />
            <span>{reason}</span>
            <ul class="inline muted">
              {about.map(({ kind, name }) => (
                <li key={`${kind} ${name}`}>
                  <About kind={kind} name={name} />
                </li>
              ))}
            </ul>
          </li>
        ))}
      </ul>
    </Section>
  );
}

function About({ kind, name }: Finding["about"][number]) {
  if (kind === "joiner") return <>the joiner</>;
  if (kind === "page") return <a href={links.deadLetters}>{name}</a>;
  if (kind === "edge" || kind === "sink") return <>{`${kind} ${name}`}</>;
  return <a href={links[kind](name)}>{`${kind} ${name}`}</a>;
}

function Alerts({ rows, streams }: { rows: AlertDocument[] | undefined; streams: StreamDocument[] | undefined }) {
  return (
    <Table
      caption="Alerts"
      rows={rows}
      rowKey={({ name }) => name}
      empty={
        streams?.length === 0 ? (
          <>
            There is no alert yet, and no stream. Define both in <a href={links.new}>New alert</a>, or run{" "}
            <code>tamis apply FILE.sql</code>.
          </>
        ) : (
          <>
            There is no alert yet. Write one in <a href={links.new}>New alert</a>, or run{" "}
            <code>tamis apply FILE.sql</code>.
          </>
        )
      }
      columns={[
        { heading: "Alert", head: true, cell: ({ name }) => <a href={links.alert(name)}>{name}</a> },
        { heading: "State", cell: ({ state }) => <State state={state} /> },
        { heading: "Live state", number: true, cell: (alert) => <LiveState alert={alert} /> },
        { heading: "Streams", cell: (alert) => <Links names={alert.streams} to="stream" /> },
        { heading: "Plan", number: true, cell: ({ plan }) => plan },
        { heading: "Why", wide: true, cell: ({ why }) => <Reasons why={why} /> },
      ]}
    />
  );
}

function Streams({ rows }: { rows: StreamDocument[] | undefined }) {
  return (
    <Table
      caption="Streams"
      rows={rows}
      rowKey={({ name }) => name}
      empty={
        <>
          There is no stream yet. Define one by <code>CREATE STREAM</code> in <a href={links.new}>New alert</a>.
        </>
      }
      columns={[
        { heading: "Stream", head: true, cell: ({ name }) => <a href={links.stream(name)}>{name}</a> },
        { heading: "Kind", cell: ({ kind }) => kind },
        { heading: "Shards active", number: true, cell: activeShards },
        { heading: "Received", number: true, cell: ({ rates }) => rate(received(rates)) },
        { heading: "Retained", number: true, cell: ({ retained }) => (retained === null ? "–" : percent(retained)) },
        { heading: "Topics", number: true, cell: ({ topics }) => topics.length },
        { heading: "Alerts", cell: ({ alerts }) => <Links names={alerts} to="alert" /> },
        { heading: "Subscribers", number: true, cell: ({ subscribers }) => subscribers.length },
        { heading: "Why", wide: true, cell: ({ why }) => <Reasons why={why} /> },
      ]}
    />
  );
}

function rate(value: number | null): string {
  return value === null ? "–" : perSecond(value);
}

function activeShards({ kind, shards }: StreamDocument) {
  if (kind !== "raw") return <span class="muted">–</span>;
  return `${shards.filter(({ state }) => state === "active").length} of ${shards.length}`;
}

interface EdgeRow {
  edge: string;
  state: string;
  why: string[];
  shard?: ShardDocument;
}

/** A row for each shard of an edge; an edge without any has one of its own. */
function edgeRows({ name, state, why, shards }: EdgeDocument): EdgeRow[] {
  if (shards.length === 0) return [{ edge: name, state, why }];
  return shards.map((shard) => ({
    edge: name,
    state: shard.state,
    why: [...(shard.why ? [shard.why] : []), ...shard.doubts],
    shard,
  }));
}

function Edges({ rows }: { rows: EdgeDocument[] | undefined }) {
  return (
    <Table<EdgeRow>
      caption="Edges and their shards"
      rows={rows?.flatMap(edgeRows)}
      rowKey={({ edge, shard }) => shard?.shard ?? edge}
      empty={
        <>
          No edge has reported yet. Start one with <code>tamis edge</code>; <code>tamis edge --help</code> has examples.
        </>
      }
      columns={[
        { heading: "Edge", head: true, cell: ({ edge }) => edge },
        { heading: "Shard", cell: ({ shard }) => shard?.shard ?? "–" },
        { heading: "State", cell: ({ state }) => <State state={state} /> },
        { heading: "Stream", cell: ({ shard }) => (shard ? <a href={links.stream(shard.stream)}>{shard.stream}</a> : "–") },
        { heading: "Plan", number: true, cell: ({ shard }) => shard?.plan ?? "–" },
        { heading: "Active since (event time)", cell: ({ shard }) => <Since at={shard?.activation ?? null} /> },
        { heading: "Why", wide: true, cell: ({ why }) => <Reasons why={why} /> },
      ]}
    />
  );
}

function Plans({ rows }: { rows: PlanDocument[] | undefined }) {
  return (
    <Table
      caption="Plans"
      rows={rows && [...rows].sort((a, b) => b.version - a.version).slice(0, 5)}
      rowKey={({ version }) => String(version)}
      empty="No plan is written yet. The registry writes one when it starts."
      columns={[
        { heading: "Plan", head: true, number: true, cell: ({ version }) => version },
        { heading: "Newest", cell: ({ newest }) => (newest ? "yes" : "") },
        { heading: "Made", cell: ({ made }) => <Time at={made} /> },
        { heading: "Definitions", wide: true, cell: ({ definitions }) => definitions.join(", ") || "–" },
        { heading: "Retiring", cell: ({ retiring }) => retiring.join(", ") || "–" },
        { heading: "Topics", number: true, cell: ({ topics }) => topics.length },
        { heading: "Shards", number: true, cell: ({ shards }) => shards },
      ]}
      note={({ why }) =>
        why.length > 0 ? (
          <>
            <span class="muted">Why it was made:</span> <Reasons why={why} />
          </>
        ) : null
      }
    />
  );
}
