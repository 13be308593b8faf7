/** Latency of alarms: from the arrival of the last reading at an edge until the alarm is in Kafka. */
import type { Alarm, TopicRecord } from "../api/documents";

export interface Latency {
  /** Microseconds. */
  median: number;
  most: number;
  alarms: number;
}

/** Over the alarms that say when their last reading arrived; null if none does. */
export function latencyOf(records: TopicRecord<Alarm>[]): Latency | null {
  const each = records
    .flatMap(({ time, value }) => (value.arrived === undefined ? [] : [Number(BigInt(time) - BigInt(value.arrived))]))
    .sort((a, b) => a - b);
  const median = each[Math.floor((each.length - 1) / 2)];
  const most = each.at(-1);
  return median === undefined || most === undefined ? null : { median, most, alarms: each.length };
}
