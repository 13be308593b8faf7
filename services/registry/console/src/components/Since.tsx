/** The event time from which a shard obeys a plan. It is 0 for a shard that had read nothing before. */
import type { Whole } from "../api/documents";
import { Time } from "./Time";

export function Since({ at }: { at: Whole | null | undefined }) {
  if (at === 0) return <span class="muted">its first reading</span>;
  return <Time at={at} />;
}
