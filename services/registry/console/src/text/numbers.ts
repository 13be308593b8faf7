/** Numbers and values as text. */
import { showJson } from "../api/json";
import type { Value, Whole } from "../api/documents";

/** A whole number with commas between groups of three digits. */
export function whole(value: Whole): string {
  return value.toLocaleString("en");
}

/** A count with its noun, as in "1 shard" and "3 shards". */
export function count(value: Whole, noun: string, plural = `${noun}s`): string {
  return `${whole(value)} ${value === 1 || value === 1n ? noun : plural}`;
}

/** A rate a second with three significant digits. */
export function perSecond(rate: number): string {
  return `${Number(rate.toPrecision(3)).toLocaleString("en", { maximumSignificantDigits: 3 })} /s`;
}

/** A size in memory. */
export function bytes(value: Whole): string {
  const size = Number(value);
  if (size < 10_000) return `${whole(value)} B`;
  const [unit, of] = size < 1e6 ? ["kB", 1e3] as const : size < 1e9 ? ["MB", 1e6] as const : ["GB", 1e9] as const;
  return `${Number((size / of).toPrecision(3))} ${unit}`;
}

/** A share as a percentage with three significant digits. It is 100 % only if it is 1. */
export function percent(share: number): string {
  const shown = Number((100 * share).toPrecision(3));
  return shown >= 100 && share < 1 ? "almost 100 %" : `${shown} %`;
}

/** A value of a reading. */
export function shown(value: Value | undefined): string {
  if (value === undefined) return "";
  if (value === null) return "NULL";
  return typeof value === "string" ? value : showJson(value);
}

/** A number with at most six significant digits, for a glance. */
export function short(value: number): string {
  return String(Number(value.toPrecision(6)));
}
