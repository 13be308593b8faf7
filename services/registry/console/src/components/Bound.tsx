/** The live state of an alert beside the proven bound. */
import type { Whole } from "../api/documents";
import { whole } from "../text/numbers";

export function Bound({ live, bound, bar = false }: { live: Whole; bound: Whole | null; bar?: boolean }) {
  if (bound === null) {
    return (
      <>
        {whole(live)} <span class="muted">(no proven number)</span>
      </>
    );
  }
  return (
    <>
      {bar && <meter min={0} max={Math.max(Number(bound), 1)} value={Number(live)} aria-label="Live state of the bound" />}
      <span>
        {whole(live)} <span class="muted">of {whole(bound)}</span>
      </span>
    </>
  );
}
