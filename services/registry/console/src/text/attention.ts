/** What needs attention in a fleet: each reason once, with everything that it concerns. */
import type { AlertDocument, EdgeDocument, JoinerDocument, SinkDocument, StreamDocument } from "../api/documents";

export interface Finding {
  state: string;
  reason: string;
  about: { kind: "alert" | "stream" | "edge" | "joiner" | "sink"; name: string }[];
}

/** States that nobody has to do anything about. A paused alert was paused by somebody. */
const CALM = new Set(["running", "active", "unused", "paused", "ended", "delivering"]);
/** The worst first: without the joiner there is no alarm, and of a source or sink that fails the cause is known. */
const ORDER = ["silent", "refused", "failing", "gone", "away", "degraded", "behind", "waiting", "starting", "doubtful"];

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
    for (const { shard, doubts } of shards) {
      if (doubts.length > 0) note("doubtful", doubts.map((doubt) => `shard ${shard}: ${doubt}`), "edge", name);
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

function rank(state: string): number {
  const at = ORDER.indexOf(state);
  return at < 0 ? ORDER.length : at;
}
