/** Times as text. */
import type { Whole } from "../api/documents";

/** The years 1 to 9999, in microseconds. ISO 8601 has no agreed form for others. */
const LEAST = -62_135_596_800_000_000n;
const GREATEST = 253_402_300_799_999_999n;

/** A time in microseconds as ISO 8601 in UTC, with as many digits of a second as it has. */
export function iso(microseconds: Whole): string {
  const whole = BigInt(microseconds);
  if (whole > GREATEST || whole < LEAST) return microseconds.toString();
  const fraction = ((whole % 1_000_000n) + 1_000_000n) % 1_000_000n;
  const date = new Date(Number((whole - fraction) / 1000n));
  const seconds = date.toISOString().slice(0, -5);
  const digits = fraction.toString().padStart(6, "0").replace(/0+$/, "");
  return `${seconds}${digits ? `.${digits}` : ""}Z`;
}

/** The same moment on the clock of the reader. */
export function local(microseconds: Whole): string {
  const date = new Date(Number(BigInt(microseconds) / 1000n));
  if (Number.isNaN(date.getTime())) return "";
  return date.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "long" });
}

/** The longest span, in seconds, whose labels have the time of day, and the longest whose labels have no year. */
const WITH_TIME = 7 * 86_400;
const WITHOUT_YEAR = 180 * 86_400;

/**
 * Labels of an axis of times, in seconds: clock times, with month and day if they are of several days, and dates
 * with the year over long spans.
 */
export function clock(seconds: number[]): string[] {
  const texts = seconds.map((at) => iso(Math.round(at * 1e6)).slice(0, -1));
  const days = new Set(texts.map((text) => text.slice(0, 10)));
  const years = new Set(texts.map((text) => text.slice(0, 4)));
  if (days.size <= 1) return texts.map((text) => text.slice(11));
  const span = Math.max(...seconds) - Math.min(...seconds);
  if (span > WITHOUT_YEAR || (years.size > 1 && span > WITH_TIME)) return texts.map((text) => text.slice(0, 10));
  return texts.map((text) => (span > WITH_TIME ? text.slice(5, 10) : text.slice(5, 16).replace("T", " ")));
}

/** A length of time in microseconds, as in the messages of the command line. */
export function duration(microseconds: Whole): string {
  return `${(Number(microseconds) / 1_000_000).toLocaleString("en", { maximumFractionDigits: 6 })} s`;
}

/** Units of a span, from the greatest: microseconds, name, and the number of them from which a span is told in it. */
const UNITS = [
  { length: 86_400e6, name: "days", from: 2 },
  { length: 3_600e6, name: "h", from: 2 },
  { length: 60e6, name: "min", from: 2 },
  { length: 1e6, name: "s", from: 0 },
];

/** A span of time in microseconds with three significant digits, in the unit that suits it. */
export function roughly(microseconds: Whole): string {
  const span = Number(microseconds);
  const unit = UNITS.find(({ length, from }) => span >= from * length) ?? { length: 1e6, name: "s" };
  return `${Number((span / unit.length).toPrecision(3))} ${unit.name}`;
}
