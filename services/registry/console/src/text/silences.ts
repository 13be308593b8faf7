/** Silences: their conditions as text, what a form asks for, and the episodes that they cover. */
import { showJson } from "../api/json";
import type { Episode, Silence, Value, Whole } from "../api/documents";
import { standsFor } from "./keys";
import { count, shown } from "./numbers";

/** The texts of a form. Several severities or labels are separated by commas. */
export interface Wanted {
  alert: string;
  key: string;
  severity: string;
  label: string;
  seconds: number;
  comment: string;
}

/** The body of `POST /v1/silences`. */
export interface Request {
  alerts?: string[];
  keys?: Value[][];
  severities?: string[];
  labels?: Record<string, string[]>;
  seconds: number;
  comment: string;
}

/** The request of a form, or the mistake in it. */
export function requested({ alert, key, severity, label, seconds, comment }: Wanted): Request | string {
  const made: Request = { seconds, comment: comment.trim() };
  if (alert !== "") made.alerts = [alert];
  if (severity.trim() !== "") made.severities = parts(severity);
  if (key.trim() !== "") {
    const found = parseKey(key.trim());
    if (found === null) return `The key ${key.trim()} is no JSON list. A key of several columns is written as ["k1", 3].`;
    made.keys = [found];
  }
  for (const one of parts(label)) {
    const [name = "", ...value] = one.split("=");
    if (name.trim() === "" || value.length === 0) return `The label ${one} has no value. Write it as team=ops.`;
    made.labels ??= {};
    (made.labels[name.trim()] ??= []).push(value.join("=").trim());
  }
  if (!made.alerts && !made.severities && !made.keys && !made.labels) {
    return "A silence without a condition would cover every alert. Choose an alert, or give a key, a severity or a label.";
  }
  return made;
}

function parts(text: string): string[] {
  return text
    .split(",")
    .map((one) => one.trim())
    .filter((one) => one !== "");
}

/** A key of one column as it is, or a JSON list of the values of several columns; null if it is no list. */
function parseKey(text: string): Value[] | null {
  if (!text.startsWith("[")) return [text];
  try {
    const found: unknown = JSON.parse(text);
    return Array.isArray(found) ? (found as Value[]) : null;
  } catch {
    return null;
  }
}

/** The text of a key in a form. */
export function keyText(key: Value[]): string {
  const [only] = key;
  return key.length === 1 && typeof only === "string" && !only.startsWith("[") ? only : showJson(key);
}

/** The conditions, all of which an episode has to meet. */
export function conditions({ alerts, keys, severities, labels }: Silence): string[] {
  const each = Object.entries(labels).map(([name, values]) => `label ${name}: ${values.join(" or ")}`);
  return [
    ...(alerts === null ? [] : [`alert ${alerts.join(" or ")}`]),
    ...(keys === null ? [] : [`key ${keys.map((key) => key.map(shown).join(", ")).join(" or ")}`]),
    ...(severities === null ? [] : [`severity ${severities.join(" or ")}`]),
    ...each,
  ];
}

/** What a silence holds back now. */
export function held({ state, held_notifications, held_episodes }: Silence): string {
  if (state !== "active") return "–";
  if (held_notifications === 0) return "nothing";
  return `${count(held_notifications, "opening")} of ${count(held_episodes, "episode")}`;
}

/** True if a silence that is active covers an episode, as the alerts service decides it. */
export function covers(silence: Silence, episode: Episode): boolean {
  return silence.state === "active" && meets(silence, episode);
}

/**
 * What a silence that covers an open episode means for its opening. `opened`: when the opening was written; undefined
 * if that isn't known. `silences`: all of them, since another one may have covered the episode then.
 */
export function opening(episode: Episode, opened: Whole | undefined, silences: Silence[]): "held" | "sent" | undefined {
  if (opened === undefined) return undefined;
  const at = BigInt(opened);
  const then = silences.some((one) => {
    const begins = BigInt(one.from) > BigInt(one.made) ? BigInt(one.from) : BigInt(one.made);
    return meets(one, episode) && begins <= at && at < BigInt(one.until);
  });
  return then ? "held" : "sent";
}

/** True if an episode meets the conditions of a silence. */
function meets({ alerts, keys, severities, labels }: Silence, episode: Episode): boolean {
  return (
    (alerts === null || alerts.includes(episode.alert)) &&
    (severities === null || severities.includes(episode.severity ?? "")) &&
    Object.entries(labels).every(([name, values]) => values.includes(episode.labels[name] ?? "")) &&
    (keys === null || keys.some((key) => means(key, episode.key)))
  );
}

/** True if a key of a silence means the key of an episode. Who writes a silence gives a number or a time as a text. */
function means(wanted: Value[], key: Value[]): boolean {
  return (
    wanted.length === key.length &&
    wanted.every((one, place) => standsFor(typeof one === "string" ? one : showJson(one), key[place] ?? null))
  );
}
