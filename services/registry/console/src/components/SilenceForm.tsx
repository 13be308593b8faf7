/** The form of a new silence: which episodes it covers, and for how long. */
import type { ComponentChildren } from "preact";
import { useId, useState } from "preact/hooks";
import { useRights } from "../api/rights";
import { token } from "../api/token";
import { requested, type Request, type Wanted } from "../text/silences";
import { Lacking } from "./Lacking";

const DURATIONS: [text: string, seconds: number][] = [
  ["5 minutes", 300],
  ["15 minutes", 900],
  ["30 minutes", 1_800],
  ["1 hour", 3_600],
  ["2 hours", 7_200],
  ["4 hours", 14_400],
  ["8 hours", 28_800],
  ["1 day", 86_400],
  ["7 days", 604_800],
];

interface Properties {
  alerts: string[];
  alert: string;
  keyText: string;
  /** True if it was made. */
  onSend: (body: Request & { by: string }) => Promise<boolean>;
}

export function SilenceForm({ alerts, alert, keyText, onSend }: Properties) {
  const empty: Wanted = { alert, key: keyText, severity: "", label: "", seconds: 7_200, comment: "" };
  const [wanted, setWanted] = useState(empty);
  const [by, setBy] = useState("");
  const [mistake, setMistake] = useState("");
  const [busy, setBusy] = useState(false);
  const { operate } = useRights();
  const change = (part: Partial<Wanted>): void => setWanted((before) => ({ ...before, ...part }));
  const send = async (): Promise<void> => {
    const body = requested(wanted);
    setMistake(typeof body === "string" ? body : "");
    if (typeof body === "string") return;
    setBusy(true);
    const made = await onSend({ ...body, by: by.trim() });
    setBusy(false);
    if (made) setWanted({ ...empty, alert: "", key: "" });
  };
  // An alert of a link may have been dropped.
  const choices = alert !== "" && !alerts.includes(alert) ? [alert, ...alerts] : alerts;
  return (
    <form
      class="panel fields"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <Field name="Alert">
        {(id) => (
          <select id={id} value={wanted.alert} onChange={(event) => change({ alert: event.currentTarget.value })}>
            <option value="">every alert</option>
            {choices.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        )}
      </Field>
      <Text name="Key" hint={'empty: every key; of several columns ["k1", 3]'} value={wanted.key} onInput={(key) => change({ key })} />
      <Text name="Severity" hint="such as page, critical" value={wanted.severity} onInput={(severity) => change({ severity })} />
      <Text name="Label" hint="such as team=ops" value={wanted.label} onInput={(label) => change({ label })} />
      <Field name="For">
        {(id) => (
          <select id={id} value={wanted.seconds} onChange={(event) => change({ seconds: Number(event.currentTarget.value) })}>
            {DURATIONS.map(([text, seconds]) => (
              <option key={seconds} value={seconds}>
                {text}
              </option>
            ))}
          </select>
        )}
      </Field>
      <Text name="Comment" hint="why" longest={1000} value={wanted.comment} onInput={(comment) => change({ comment })} />
      {token() === null && <Text name="Your name" longest={100} value={by} onInput={setBy} />}
      {mistake !== "" && (
        <p class="problem" role="alert">
          {mistake}
        </p>
      )}
      <div class="actions">
        <button type="submit" class="main" disabled={busy || !operate}>
          Silence
        </button>
        <Lacking right="operate" />
      </div>
    </form>
  );
}

function Field({ name, hint, children }: { name: string; hint?: string | undefined; children: (id: string) => ComponentChildren }) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{name}</label>
      {children(id)}
      {hint && (
        <span class="muted" id={`${id}-hint`}>
          {hint}
        </span>
      )}
    </div>
  );
}

interface TextProperties {
  name: string;
  hint?: string;
  longest?: number;
  value: string;
  onInput: (text: string) => void;
}

function Text({ name, hint, longest = 255, value, onInput }: TextProperties) {
  return (
    <Field name={name} hint={hint}>
      {(id) => (
        <input
          id={id}
          type="text"
          autocomplete="off"
          maxLength={longest}
          aria-describedby={hint ? `${id}-hint` : undefined}
          value={value}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}
