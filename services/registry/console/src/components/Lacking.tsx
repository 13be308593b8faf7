/** A line that says which right the token lacks, beside the commands that can't be used without it. */
import { useRights } from "../api/rights";

export function Lacking({ right }: { right: "change" | "operate" }) {
  if (useRights()[right]) return null;
  return (
    <p class="muted">
      {right === "change"
        ? "This token may look, but not change alerts: that needs the role writer."
        : "This token may not silence or acknowledge: that needs the role writer, or operate: true."}
    </p>
  );
}
