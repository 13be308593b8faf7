/** Readings as series of a chart. */
import type { Reading } from "../api/documents";

/** `points`: event time in seconds, and the value. */
export interface Series {
  name: string;
  points: [number, number][];
}

/** Charts are for a glance: more series than these can't be told apart. */
const MOST_SERIES = 4;

/** A series for each numeric column of the readings of each source. `times`: the time column of each source. */
export function seriesOf(readings: [source: string, reading: Reading][], times: Record<string, string>): Series[] {
  const found = new Map<string, Map<string, [number, number]>>();
  for (const [source, reading] of readings) {
    const time = times[source];
    const at = time === undefined ? undefined : reading[time];
    if (typeof at !== "number" && typeof at !== "bigint") continue;
    for (const [column, value] of Object.entries(reading)) {
      if (column === time || column === "_" || typeof value !== "number") continue;
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

