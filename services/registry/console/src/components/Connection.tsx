/** The state of the connection to the registry, which is also announced when it changes. */
import { useEffect, useState } from "preact/hooks";
import { currentConnection, onEvent, type Connection as State } from "../api/events";

const WORDS: Record<State, { tone: string; text: string; title: string }> = {
  connecting: { tone: "neutral", text: "Connecting", title: "Waiting for the registry's first answer" },
  live: { tone: "good", text: "Live", title: "The registry tells this page of every change" },
  polling: { tone: "warn", text: "Updates every 5 s", title: "There is no stream of events: this page asks every 5 seconds" },
  away: { tone: "bad", text: "No answer", title: "The registry doesn't answer; this page tries again" },
};

export function Connection() {
  const [state, setState] = useState(currentConnection());
  useEffect(
    () =>
      onEvent((kind) => {
        if (kind === "connection") setState(currentConnection());
      }),
    [],
  );
  const { tone, text, title } = WORDS[state];
  return (
    <p class={`connection ${tone}`} role="status" title={title}>
      <span class="sign" aria-hidden="true" />
      <span class="hidden">Connection: </span>
      {text}
    </p>
  );
}
