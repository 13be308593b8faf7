/** What needs attention in a fleet: each reason once, with everything that it concerns. */
import type { AlertDocument, EdgeDocument, JoinerDocument, ShardDocument, SinkDocument, StreamDocument } from "../api/documents";
import { received } from "./decisions";
import { count, percent, whole } from "./numbers";
import { roughly } from "./time";

export interface Finding {
  state: string;
  reason: string;
  about: { kind: "alert" | "stream" | "edge" | "joiner" | "sink" | "page"; name: string }[];
}

/** The state of shards whose readings become dead letters, and in `about` the page that has these. */
export const DEAD_LETTERS = "dead letters";

/** States that nobody has to do anything about. A paused alert was paused by somebody. */
const CALM = new Set(["running", "active", "unused", "paused", "ended", "delivering"]);
/** The worst first: without the joiner there is no alarm, and of a source or sink that fails the cause is known. */
const ORDER = ["silent", "refused", "failing", "gone", "away", "degraded", "behind", "waiting", "starting", DEAD_LETTERS, "late", "doubtful"];
/** Of the readings of a shard: a few late ones are part of most networks. */
const MANY_LATE = 0.001;

export function attention(
  alerts: AlertDocument[],
  streams: StreamDocument[],
  edges: EdgeDocument[],
  joiner?: JoinerDocument,
  sinks: SinkDocument[] = [],
): Finding[] {
  const found = new Map<string, Finding>();
  const note = (state: string, reasons: string[], kind: Finding["about"][number]["kind"], name: string): void => {
    for (const reason of reasons.length > 0 ? reasons : [`${kind} ${name} is ${state}`]) {
      const finding = found.get(reason) ?? { state, reason, about: [] };
      if (rank(state) < rank(finding.state)) finding.state = state;
      finding.about.push({ kind, name });
      found.set(reason, finding);
    }
  };
  // Where it has reported nothing yet, each alert that waits for it says so.
  if (joiner?.state === "behind" || joiner?.state === "silent") note(joiner.state, joiner.why, "joiner", "joiner");
  for (const { name, state, why } of sinks) {
    if (!CALM.has(state)) note(state, why, "sink", name);
  }
  for (const { name, state, why, failing, shards } of edges) {
    // The shards of a source that fails still obey their plan.
    const failures = Object.entries(failing).map(([source, reason]) => `source ${source} fails: ${reason}`);
    if (failures.length > 0) note("failing", failures, "edge", name);
    for (const shard of shards) {
      for (const { state, reason } of unusual(shard)) {
        note(state, [reason], "stream", shard.stream);
        if (state === DEAD_LETTERS) note(state, [reason], "page", DEAD_LETTERS);
      }
      if (shard.doubts.length > 0) note("doubtful", shard.doubts.map((doubt) => `shard ${shard.shard}: ${doubt}`), "edge", name);
    }
    if (CALM.has(state)) continue;
    // Without a shard, the edge itself has a reason. It is news only if the edge is away: one that has just
    // started waits for its first reading.
    if (shards.length === 0 && state === "away") note(state, why.slice(0, 1), "edge", name);
    for (const shard of shards) {
      if (!CALM.has(shard.state)) note(shard.state, shard.why ? [shard.why] : [], "edge", name);
    }
  }
  for (const { name, why } of streams) {
    if (why.length > 0) note("refused", why, "stream", name);
  }
  for (const { name, state, why } of alerts) {
    if (!CALM.has(state)) note(state, why, "alert", name);
  }
  return [...found.values()].sort((a, b) => rank(a.state) - rank(b.state));
}

/** Readings of the last minutes that became dead letters or came late. */
function unusual({ shard, recent }: ShardDocument): { state: string; reason: string }[] {
  if (recent === null) return [];
  const all = received(recent.tuples) ?? 0;
  const { dead = 0, late = 0 } = recent.tuples;
  const of = (number: number): string => `${whole(number)} of ${count(all, "reading")} (${percent(number / all)})`;
  const when = `in the last ${roughly(recent.seconds * 1e6)}`;
  const found = [];
  if (dead > 0) found.push({ state: DEAD_LETTERS, reason: `shard ${shard}: ${of(dead)} became dead letters ${when}` });
  if (late > MANY_LATE * all) found.push({ state: "late", reason: `shard ${shard}: ${of(late)} came late ${when}` });
  return found;
}

function rank(state: string): number {
  const at = ORDER.indexOf(state);
  return at < 0 ? ORDER.length : at;
}
