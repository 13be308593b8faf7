/** Alarms and episodes of an alert as they come, with the readings that raised them. */
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Alarm, Episode, ExplainedSource, Names, Reading, Records, TopicRecord } from "../api/documents";
import { onEvent } from "../api/events";
import { useLive } from "../api/live";
import { latencyOf } from "../text/latency";
import { shown, whole } from "../text/numbers";
import { seriesOf } from "../text/series";
import { iso, roughly } from "../text/time";
import { ProblemMessage } from "./ProblemMessage";
import { ReadingsChart } from "./ReadingsChart";
import { Cell } from "./Rows";
import { Section } from "./Section";
import { State } from "./State";
import { Table } from "./Table";
import { Time } from "./Time";

export function Alarms({ name, sources }: { name: string; sources: ExplainedSource[] }) {
  const path = `/v1/alerts/${encodeURIComponent(name)}`;
  const alarms = useLive<Records<Alarm>>(`${path}/alarms?limit=50`, ["alarm"], name);
  const episodes = useLive<Records<Episode>>(`${path}/episodes?limit=50`, ["episode"], name);
  const { data: names } = useLive<Names>("/v1/names", ["streams", "plan"]);
  const times = useMemo(() => {
    const column = new Map(names?.streams.map((stream) => [stream.name, stream.time]));
    const found: Record<string, string> = {};
    for (const { alias, stream } of sources) {
      const time = column.get(stream);
      if (time) found[alias] = time;
    }
    return found;
  }, [names, sources]);
  const distinct = useMemo(() => alarms.data && once(alarms.data.records), [alarms.data]);
  const readings = (distinct ?? []).flatMap(({ value }) => Object.entries(value.tuples));
  const series = useMemo(() => seriesOf(readings, times), [distinct, times]);
  const latency = useMemo(() => latencyOf(distinct ?? []), [distinct]);
  return (
    <>
      <Section title="Episodes" note="Alarms of one key that follow each other closely. The newest first.">
        <Announced name={name} />
        {episodes.problem ? (
          <ProblemMessage problem={episodes.problem} />
        ) : (
          <Episodes rows={episodes.data && newestOfEach(episodes.data.records)} times={new Set(Object.values(times))} />
        )}
      </Section>
      <Section title="Alarms" note="The newest first, at most 50.">
        {alarms.problem ? (
          <ProblemMessage problem={alarms.problem} />
        ) : (
          <>
            {series.length > 0 && (
              <ReadingsChart series={series} caption="Readings that raised these alarms, over event time (UTC)." />
            )}
            {latency !== null && (
              <p>
                Latency: <strong>{roughly(latency.median)}</strong> for one half of these alarms,{" "}
                <strong>{roughly(latency.most)}</strong> at most. It is the time from the arrival of the last reading at an edge
                until the alarm is in Kafka.
              </p>
            )}
            <AlarmTable rows={distinct} times={new Set(Object.values(times))} />
          </>
        )}
      </Section>
    </>
  );
}

/** Each alarm once: a replay after a crash writes the same `id` again. */
function once(records: TopicRecord<Alarm>[]): TopicRecord<Alarm>[] {
  return [...new Map(records.toReversed().map((record) => [record.value.id, record])).values()].toReversed();
}

/** The newest record of each episode. */
function newestOfEach(records: TopicRecord<Episode>[]): Episode[] {
  const found = new Map<string, Episode>();
  for (const { value } of records) if (!found.has(value.episode)) found.set(value.episode, value);
  return [...found.values()];
}

function Episodes({ rows, times }: { rows: Episode[] | undefined; times: Set<string> }) {
  return (
    <Table
      caption="Episodes"
      rows={rows}
      rowKey={({ episode }) => episode}
      empty="No episode is in the topic, which keeps a week. One opens with the first alarm of a key."
      columns={[
        { heading: "Key", head: true, cell: ({ key }) => key.map(shown).join(", ") || "–" },
        { heading: "State", cell: ({ event }) => <State state={event === "opened" ? "open" : event} /> },
        { heading: "First alarm (event time)", cell: ({ start }) => <Time at={start} /> },
        { heading: "Latest alarm (event time)", cell: ({ end }) => <Time at={end} /> },
        { heading: "Alarms", number: true, cell: ({ alarms }) => whole(alarms) },
        { heading: "Severity", cell: ({ severity }) => severity ?? "–" },
        { heading: "First row", wide: true, cell: ({ row }) => <RowText row={row} times={times} /> },
      ]}
    />
  );
}

function AlarmTable({ rows, times }: { rows: TopicRecord<Alarm>[] | undefined; times: Set<string> }) {
  return (
    <Table
      caption="Alarms"
      rows={rows}
      rowKey={({ value }) => value.id}
      empty="No alarm is in the topic, which keeps a week. New alarms appear here as they come."
      columns={[
        { heading: "Event time", head: true, cell: ({ value }) => <Time at={value.event_time} /> },
        { heading: "Key", cell: ({ value }) => value.key.map(shown).join(", ") || "–" },
        { heading: "Row", wide: true, cell: ({ value }) => <RowText row={value.row} times={times} /> },
        {
          heading: "Readings",
          wide: true,
          cell: ({ value }) =>
            Object.entries(value.tuples).map(([alias, reading]) => (
              <div key={alias}>
                <strong>{alias}</strong> <RowText row={reading} times={times} />
              </div>
            )),
        },
        { heading: "Written", cell: ({ time }) => <Time at={time} /> },
        { heading: "Remarks", cell: ({ value }) => remarks(value) },
      ]}
    />
  );
}

function RowText({ row, times }: { row: Reading; times?: Set<string> }) {
  return (
    <span class="pairs">
      {Object.entries(row).map(([name, value]) => (
        <span key={name}>
          <span class="muted">{name}</span> <Cell value={value} time={times?.has(name) ?? false} />
        </span>
      ))}
    </span>
  );
}

function remarks(alarm: Alarm): string {
  const found = [];
  if (alarm.late) found.push("late");
  if (alarm.incomplete) found.push("incomplete");
  if (alarm.withdrawn) found.push("withdrawn");
  return found.join(", ");
}

/** Tells screen readers of a new episode. */
function Announced({ name }: { name: string }) {
  const [text, setText] = useState("");
  useEffect(
    () =>
      onEvent((kind, data) => {
        if (kind !== "episode") return;
        const episode = data as Episode;
        if (episode.alert === name && episode.event === "opened") {
          setText(`New episode of key ${episode.key.map(shown).join(", ")} at ${iso(episode.start)}`);
        }
      }),
    [name],
  );
  return (
    <p class="hidden" aria-live="polite">
      {text}
    </p>
  );
}
