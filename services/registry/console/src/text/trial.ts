/** Results of trials as readings and sentences. */
import type { Reading, TrialInput, TrialResult } from "../api/documents";
import { count, percent, whole } from "./numbers";
import { seriesOf, type Series } from "./series";
import { roughly } from "./time";

/** The rows of a result by the names of their columns. */
export function namedRows({ columns, rows }: TrialResult): Reading[] {
  return rows.map((row) => Object.fromEntries(columns.map((name, index) => [name, row[index] ?? null])));
}

/** The numbers of the rows over the first of their times. */
export function seriesOfRows({ query, times }: TrialResult, rows: Reading[]): Series[] {
  return seriesOf(rows.map((row) => [query, row]), { [query]: times });
}

/** The result in a sentence. `noun`: of a row, such as "alarm". */
export function summary(result: TrialResult, noun: string): string {
  const readings = Object.values(result.inputs).reduce((sum, input) => sum + input.rows, 0);
  return `${result.query}: ${count(result.row_count, noun)} from ${count(readings, "reading")}.`;
}

/** The time between the first and the last reading; null without any. */
export function span({ from, to }: TrialInput): string | null {
  return from === null || to === null ? null : roughly(BigInt(to) - BigInt(from));
}

/** The readings that edges would send, as a number and as a share. */
export function sent({ rows, retained }: TrialInput): string {
  return rows === 0 ? "0" : `${whole(retained)} (${percent(retained / rows)})`;
}
