/** The live state of an alert in a table; a dash while the alert has no definition in the plan. */
import type { AlertDocument } from "../api/documents";
import { Bound } from "./Bound";

export function LiveState({ alert: { state, live, bound } }: { alert: AlertDocument }) {
  if (state === "paused" || state === "refused") return <span class="muted">–</span>;
  return <Bound live={live} bound={bound} />;
}
