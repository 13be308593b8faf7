/** Readings of a stream by the decision of the edges. */
import type { Decisions, StreamDocument, Whole } from "../api/documents";

export interface Decided {
  decision: string;
  meaning: string;
  rate: number | null;
  tuples: Whole;
}

const MEANINGS: [decision: string, meaning: string][] = [
  ["published", "sent to topics, because an alert can need it"],
  ["omitted", "not sent: readings around it give the same alarms"],
  ["filtered", "not sent: no filter lets it pass"],
  ["aggregated", "sent in sums and counts of windows, not by itself"],
  ["late", "sent, though it came after the watermark"],
  ["dead", "refused, and put to the dead letters"],
];

/** A row for each decision; undefined if no edge has told its counts. */
export function decided(tuples: Decisions<Whole> | null, rates: Decisions<number> | null): Decided[] | undefined {
  if (tuples === null) return undefined;
  const known = new Set(MEANINGS.map(([decision]) => decision));
  // A later release may know further decisions.
  const others = Object.keys(tuples).filter((decision) => !known.has(decision));
  return [...MEANINGS, ...others.map((decision): [string, string] => [decision, ""])].map(([decision, meaning]) => ({
    decision,
    meaning,
    rate: rates === null ? null : (rates[decision] ?? 0),
    tuples: tuples[decision] ?? 0,
  }));
}

/** Why there are no counts: edges count while they serve a shard, and begin anew with it. */
export function withoutCounts({ shards }: StreamDocument): string {
  const states = new Set(shards.map(({ state }) => state));
  if (states.size === 0) return "No edge has announced a source of this stream yet.";
  if (["active", "behind"].some((state) => states.has(state))) {
    return "The edges have not told their counts. Edges of an older release don't.";
  }
  return `No shard of the stream is active now (${[...states].join(", ")}). Counts begin anew when one comes back.`;
}

/** All readings a second; null if the rates are not known. */
export function received(rates: Decisions<number> | null): number | null {
  if (rates === null) return null;
  return Object.values(rates).reduce<number>((sum, rate) => sum + (rate ?? 0), 0);
}
