/** A state: its word, with a colour and a sign that say the same. */

const TONES: Record<string, string> = {
  running: "good",
  active: "good",
  bounded: "good",
  accepted: "good",
  delivering: "good",
  pending: "warn",
  silenced: "warn",
  starting: "warn",
  waiting: "warn",
  doubtful: "warn",
  "dead letters": "bad",
  late: "warn",
  behind: "warn",
  opened: "warn",
  open: "warn",
  degraded: "bad",
  failing: "bad",
  silent: "bad",
  away: "bad",
  gone: "bad",
  refused: "bad",
  unbounded: "bad",
  unknown: "bad",
};

export function State({ state }: { state: string }) {
  return (
    <span class={`state ${TONES[state] ?? "neutral"}`}>
      <span class="sign" aria-hidden="true" />
      {state}
    </span>
  );
}
