/** Alarms and episodes of an alert as they come, with the readings that raised them. */
import { useMemo } from "preact/hooks";
import type { Alarm, ExplainedSource, Names, Records, TopicRecord } from "../api/documents";
import { useLive } from "../api/live";
import { keyShown } from "../text/keys";
import { latencyOf } from "../text/latency";
import { seriesOf, timesOf, type Times } from "../text/series";
import { roughly } from "../text/time";
import { Episodes } from "./Episodes";
import { ProblemMessage } from "./ProblemMessage";
import { ReadingsChart } from "./ReadingsChart";
import { RowText } from "./RowText";
import { Section } from "./Section";
import { Table } from "./Table";
import { Time } from "./Time";

interface Properties {
  name: string;
  sources: ExplainedSource[];
  /** The columns of its rows that are times. */
  times: string[];
  /** The positions of the values in its keys that are times. */
  keyTimes: number[];
}

export function Alarms({ name, sources, times, keyTimes }: Properties) {
  const path = `/v1/alerts/${encodeURIComponent(name)}`;
  const alarms = useLive<Records<Alarm>>(`${path}/alarms?limit=50`, ["alarm"], name);
  const { data: names } = useLive<Names>("/v1/names", ["streams", "plan"]);
  const ofSources = useMemo(
    () => Object.fromEntries(sources.map(({ alias, stream }) => [alias, timesOf(names, stream)])),
    [names, sources],
  );
  const distinct = useMemo(() => alarms.data && once(alarms.data.records), [alarms.data]);
  const readings = (distinct ?? []).flatMap(({ value }) => Object.entries(value.tuples));
  const series = useMemo(() => seriesOf(readings, ofSources), [distinct, ofSources]);
  const latency = useMemo(() => latencyOf(distinct ?? []), [distinct]);
  return (
    <>
      <Episodes name={name} times={times} keyTimes={keyTimes} />
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
            <AlarmTable rows={distinct} times={times} keyTimes={keyTimes} ofSources={ofSources} />
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

interface TableProperties {
  rows: TopicRecord<Alarm>[] | undefined;
  times: string[];
  keyTimes: number[];
  ofSources: Times;
}

function AlarmTable({ rows, times, keyTimes, ofSources }: TableProperties) {
  return (
    <Table
      caption="Alarms"
      rows={rows}
      rowKey={({ value }) => value.id}
      empty="No alarm is in the topic, which keeps a week. New alarms appear here as they come."
      columns={[
        { heading: "Event time", head: true, cell: ({ value }) => <Time at={value.event_time} /> },
        { heading: "Key", cell: ({ value }) => keyShown(value.key, keyTimes) || "–" },
        { heading: "Row", wide: true, cell: ({ value }) => <RowText row={value.row} times={times} /> },
        {
          heading: "Readings",
          wide: true,
          cell: ({ value }) =>
            Object.entries(value.tuples).map(([alias, reading]) => (
              <div key={alias}>
                <strong>{alias}</strong> <RowText row={reading} times={ofSources[alias] ?? []} />
              </div>
            )),
        },
        { heading: "Written", cell: ({ time }) => <Time at={time} /> },
        { heading: "Remarks", cell: ({ value }) => remarks(value) },
      ]}
    />
  );
}

function remarks(alarm: Alarm): string {
  const found = [];
  if (alarm.late) found.push("late");
  if (alarm.incomplete) found.push("incomplete");
  if (alarm.withdrawn) found.push("withdrawn");
  return found.join(", ");
}
