/** How far the joiner has come, and what holds it back. */
import type { JoinerDocument, JoinerPartition, JoinerTopic, Whole } from "../api/documents";
import { iso, roughly } from "./time";

/** The frontier of sources that have ended. */
export const END_OF_TIME = Number.MAX_SAFE_INTEGER;

/** The event time up to which all alarms are complete; null until each partition has one. */
export function reached({ partitions }: JoinerDocument): Whole | null {
  const [least] = slowestFirst(partitions);
  return least?.frontier ?? null;
}

/** Those with the least frontier first; those without one before all others. */
export function slowestFirst<T extends { frontier: Whole | null }>(all: T[]): T[] {
  return [...all].sort((a, b) => {
    if (a.frontier === null || b.frontier === null) return Number(a.frontier !== null) - Number(b.frontier !== null);
    return a.frontier < b.frontier ? -1 : a.frontier > b.frontier ? 1 : 0;
  });
}

/** As `slowestFirst`, but a topic isn't slow while it waits for the end of a pane. */
function mostBehindFirst(topics: JoinerTopic[]): JoinerTopic[] {
  return slowestFirst(topics).sort((a, b) => {
    if (a.behind === null || b.behind === null) return Number(a.behind !== null) - Number(b.behind !== null);
    return a.behind > b.behind ? -1 : a.behind < b.behind ? 1 : 0;
  });
}

/** The partition and the topic that hold the joiner back, with the reasons, as sentences. Nothing but itself holds back
 * a joiner that is silent.
 */
export function heldBack(joiner: JoinerDocument): string[] {
  if (joiner.state === "silent") return [];
  return [...behindOthers(joiner.partitions), ...waiting(joiner.topics)];
}

function behindOthers(partitions: JoinerPartition[]): string[] {
  const order = slowestFirst(partitions);
  const least = order[0];
  const most = order.at(-1);
  if (least === undefined || most === undefined || least.frontier === most.frontier) return [];
  if (least.frontier === null) return [`Partition ${least.partition} has not joined anything yet, others have.`];
  if (most.frontier === END_OF_TIME) return [`Partition ${least.partition} has come least far.`];
  const gap = roughly(BigInt(most.frontier ?? 0) - BigInt(least.frontier));
  return [`Partition ${least.partition} has come least far: ${gap} behind partition ${most.partition}.`];
}

function waiting(topics: JoinerTopic[]): string[] {
  // Nothing waits for a topic whose shards are all gone.
  const waitedFor = topics.filter(({ frontier, slowest, why }) => frontier === null || slowest !== null || why.length > 0);
  const [topic] = mostBehindFirst(waitedFor.length > 0 ? waitedFor : topics);
  if (topic === undefined) return [];
  if (topic.frontier === END_OF_TIME) return ["All sources have ended."];
  const at = topic.frontier === null ? "it has no event time yet" : `it is complete up to ${iso(topic.frontier)}`;
  const found = [`Topic ${topic.topic} of stream ${topic.stream} has come least far: ${at}.`];
  if (topic.slowest !== null) {
    found.push(`Its slowest shard is ${topic.slowest.shard}, with the watermark ${iso(topic.slowest.watermark)}.`);
  }
  return [...found, ...topic.why.map((reason) => `It waits: ${reason}.`)];
}
