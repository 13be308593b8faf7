/** Readings as series of a chart. */
import type { Names, Reading } from "../api/documents";

/** `points`: event time in seconds, and the value. */
export interface Series {
  name: string;
  points: [number, number][];
}

/** Charts are for a glance: more series than these can't be told apart. */
const MOST_SERIES = 4;

/** The columns of a source that are times: the one over which its readings are plotted comes first. */
export type Times = Record<string, string[]>;

/** A series for each numeric column of the readings of each source. Times are no numbers to plot. */
export function seriesOf(readings: [source: string, reading: Reading][], times: Times): Series[] {
  const found = new Map<string, Map<string, [number, number]>>();
  for (const [source, reading] of readings) {
    const known = times[source] ?? [];
    const [time] = known;
    const at = time === undefined ? undefined : reading[time];
    if (typeof at !== "number" && typeof at !== "bigint") continue;
    for (const [column, value] of Object.entries(reading)) {
      if (known.includes(column) || column === "_" || typeof value !== "number") continue;
      const name = `${source}.${column}`;
      const points = found.get(name) ?? new Map<string, [number, number]>();
      // A reading that raised several alarms is one point.
      points.set(`${at} ${value}`, [Number(at) / 1e6, value]);
      found.set(name, points);
    }
  }
  return [...found]
    .slice(0, MOST_SERIES)
    .map(([name, points]) => ({ name, points: [...points.values()].sort(([a], [b]) => a - b) }));
}

/** The columns of a stream that are times, its event time first; none as long as the names aren't known. */
export function timesOf(names: Names | undefined, stream: string): string[] {
  const found = names?.streams.find(({ name }) => name === stream);
  const others = found?.columns.filter(({ name, type }) => type === "TIMESTAMP" && name !== found.time) ?? [];
  return [...(found?.time ? [found.time] : []), ...others.map(({ name }) => name)];
}

/** The series in the form of uPlot: all times in order, and for each series a value or null at each time. */
export function aligned(series: Series[]): (number | null)[][] {
  const times = [...new Set(series.flatMap(({ points }) => points.map(([at]) => at)))].sort((a, b) => a - b);
  return [
    times,
    ...series.map(({ points }) => {
      const values = new Map(points);
      return times.map((at) => values.get(at) ?? null);
    }),
  ];
}

