/** A time in microseconds: ISO 8601 in UTC, with the local time when one points at it. */
import type { Whole } from "../api/documents";
import { iso, local } from "../text/time";

/** `seconds`: without fractions, for times that people choose. */
export function Time({ at, seconds = false }: { at: Whole | null | undefined; seconds?: boolean }) {
  if (at === null || at === undefined) return <span class="muted">–</span>;
  const text = seconds ? iso(at).replace(/\.\d+/, "") : iso(at);
  return (
    <time dateTime={text} title={local(at)}>
      {text}
    </time>
  );
}
