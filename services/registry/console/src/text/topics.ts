/** Sentences about the topics of a stream. */
import type { TopicEntry, TopicReader } from "../api/documents";
import { duration } from "./time";

const BRACKETS = {
  above: "lies between two higher ones",
  below: "lies between two lower ones",
  both: "lies between two higher ones and between two lower ones",
};

/** What omission leaves out of an entry; null without omission. */
export function omission({ key, value, sides, interval }: TopicEntry): string | null {
  if (value === null || sides === null) return null;
  const each = key.length > 0 ? ` of the same ${key.join(", ")}` : "";
  return `A reading is omitted if its value ${BRACKETS[sides]}${each} that are at most ${duration(interval)} apart.`;
}

/** A reader, as in "alert hot (a)". A replaced definition is told apart by its plan. */
export function readerText({ kind, name, plan, source, retiring }: TopicReader): string {
  const alias = source !== null && kind === "alert" ? ` (${source})` : "";
  return `${kind} ${name}${alias}${retiring ? `, replaced definition of plan ${plan}` : ""}`;
}
