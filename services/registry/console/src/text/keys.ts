/** Keys of alarms and episodes as text. */
import type { Value, Whole } from "../api/documents";
import { shown } from "./numbers";
import { iso } from "./time";

/** The values of a key. `times`: the positions of those that are times. Empty for the key of an alert without any. */
export function keyShown(key: Value[], times: number[]): string {
  return key.map((value, place) => (times.includes(place) && isWhole(value) ? iso(value) : shown(value))).join(", ");
}

/** True if a text in a silence means a value of a key: a number, or a time in ISO 8601. */
export function standsFor(text: string, value: Value): boolean {
  if (text === shown(value)) return true;
  return isWhole(value) && moment(text) === BigInt(value);
}

function isWhole(value: Value): value is Whole {
  return typeof value === "bigint" || (typeof value === "number" && Number.isInteger(value));
}

/** The time of an ISO 8601 text in microseconds; null if it isn't one. UTC without a zone. */
function moment(text: string): bigint | null {
  const found = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2})?)(?:\.(\d{1,6}))?)?(Z|[+-]\d{2}:\d{2})?$/.exec(text.trim());
  if (found === null) return null;
  const [, day, clock = "00:00", fraction = "", zone = "Z"] = found;
  const at = Date.parse(`${day}T${clock}${zone}`);
  return Number.isNaN(at) ? null : BigInt(at) * 1000n + BigInt(fraction.padEnd(6, "0"));
}
