/** Sentences about the topics of a stream. */
import type { TopicEntry, TopicReader } from "../api/documents";
import { duration } from "./time";

const BRACKETS = {
  above: "lies between two higher ones",
  below: "lies between two lower ones",
  both: "lies between two higher ones and between two lower ones",
};

/** What omission leaves out of an entry; null without omission. */
export function omission({ key, value, sides, interval, max_delay }: TopicEntry): string | null {
  if (value === null || sides === null) return null;
  if (max_delay === 0) return "Nothing is omitted: with max_delay = 0 edges decide before they have seen the next readings.";
  const each = key.length > 0 ? ` of the same ${key.join(", ")}` : "";
  return `A reading is omitted if its value ${BRACKETS[sides]}${each} that are at most ${duration(interval)} apart.`;
}

/** What edges may omit for a reader: the interval, or why nothing. */
export function readerOmission({ interval, needs_all }: TopicReader): string {
  return needs_all === null ? duration(interval) : `omits nothing: ${needs_all}`;
}

/** The other readers of a topic that need every tuple, so that edges publish for `alert` more than it needs. */
export function needy(readers: TopicReader[], alert: string): TopicReader[] {
  return readers.filter(({ kind, name, needs_all }) => needs_all !== null && !(kind === "alert" && name === alert));
}

/** A reader, as in "alert hot (a)". A replaced definition is told apart by its plan. */
export function readerText({ kind, name, plan, source, retiring }: TopicReader): string {
  const alias = source !== null && kind === "alert" ? ` (${source})` : "";
  return `${kind} ${name}${alias}${retiring ? `, replaced definition of plan ${plan}` : ""}`;
}
