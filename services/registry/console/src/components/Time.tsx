/** A time in microseconds: ISO 8601 in UTC, with the local time when one points at it. */
import type { Whole } from "../api/documents";
import { iso, local } from "../text/time";

export function Time({ at }: { at: Whole | null | undefined }) {
  if (at === null || at === undefined) return <span class="muted">–</span>;
  const text = iso(at);
  return (
    <time dateTime={text} title={local(at)}>
      {text}
    </time>
  );
}
