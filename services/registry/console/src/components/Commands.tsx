/** Buttons that pause, resume, replace or drop an alert. */
import { useState } from "preact/hooks";
import type { AlertDocument, Outcome } from "../api/documents";
import { Problem, sendSql } from "../api/client";
import { useRights } from "../api/rights";
import { links } from "../text/route";
import { quoted } from "../text/sql";
import { Confirm } from "./Confirm";
import { Lacking } from "./Lacking";
import { ProblemMessage } from "./ProblemMessage";

interface Properties {
  alert: AlertDocument;
  onDone: () => void;
}

export function Commands({ alert, onDone }: Properties) {
  const [asking, setAsking] = useState(false);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [done, setDone] = useState("");
  const { change, operate } = useRights();
  const run = async (statement: string): Promise<boolean> => {
    setBusy(true);
    setProblem(null);
    setDone("");
    try {
      const outcomes = await sendSql<Outcome[]>("/v1/statements?file=console", statement);
      setDone(outcomes.map(({ name, result }) => `Alert ${name ?? alert.name}: ${result}.`).join(" "));
      onDone();
      return true;
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      setProblem(error);
      return false;
    } finally {
      setBusy(false);
    }
  };
  const name = quoted(alert.name);
  return (
    <div class="commands">
      <div class="actions">
        {alert.state === "paused" ? (
          <button type="button" disabled={busy || !change} onClick={() => void run(`RESUME ALERT ${name};`)}>
            Resume
          </button>
        ) : (
          <button type="button" disabled={busy || !change} onClick={() => void run(`PAUSE ALERT ${name};`)}>
            Pause
          </button>
        )}
        {operate && (
          <a class="button" href={links.silence(alert.name)}>
            Silence
          </a>
        )}
        {change && (
          <a class="button" href={links.replace(alert.name)}>
            Replace
          </a>
        )}
        <button type="button" class="danger" disabled={busy || !change} onClick={() => setAsking(true)}>
          Drop
        </button>
      </div>
      <Lacking right="change" />
      <p role="status" class="muted">
        {done}
      </p>
      <ProblemMessage problem={problem} />
      {asking && (
        <Confirm
          title={`Drop alert ${alert.name}?`}
          action="Drop alert"
          onCancel={() => setAsking(false)}
          onConfirm={() => {
            setAsking(false);
            void run(`DROP ALERT ${name};`).then((dropped) => {
              if (dropped) location.hash = links.fleet;
            });
          }}
        >
          <p>The whole fleet stops evaluating it. Alarms so far stay in their topic. Pause it instead to keep it for later.</p>
          <p>Copy the SQL if you may need it again:</p>
          <pre class="sql">{alert.sql}</pre>
        </Confirm>
      )}
    </div>
  );
}
