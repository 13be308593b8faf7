/** A new alert, or another form of one: an editor with mistakes and explanation, and apply. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { AlertDocument, Mistake, Outcome } from "../api/documents";
import { Problem, read, sendSql } from "../api/client";
import { useExplained } from "../api/explained";
import { useLive } from "../api/live";
import { useRights } from "../api/rights";
import { useTrial } from "../api/trial";
import type { Names } from "../api/documents";
import { Explanation } from "../components/Explanation";
import { Lacking } from "../components/Lacking";
import { ProblemMessage } from "../components/ProblemMessage";
import { Section } from "../components/Section";
import { NotLoaded } from "../components/NotLoaded";
import { TryOut } from "../components/TryOut";
import { useLoaded } from "../components/useLoaded";
import type { EditorHandle } from "../editor/SqlEditor";
import { ended, replacing } from "../text/sql";
import { links } from "../text/route";

const loadEditor = () => import("../editor/SqlEditor");
const DRAFT = "tamis.draft";
const EXAMPLE = `CREATE ALERT hot AS
SELECT station, ts, temp
FROM air
WHERE temp > 35;
`;

export function NewAlert({ replace }: { replace: string | null }) {
  const draft = replace === null ? DRAFT : `${DRAFT}.${replace}`;
  const [text, setText] = useState<string | null>(null);
  const [missing, setMissing] = useState<Problem | null>(null);
  const { data: names } = useLive<Names>("/v1/names", ["streams", "alerts", "plan"]);
  useEffect(() => {
    const kept = sessionStorage.getItem(draft);
    if (kept !== null || replace === null) {
      setText(kept ?? "");
      return;
    }
    read<AlertDocument>(`/v1/alerts/${encodeURIComponent(replace)}`)
      .then(({ sql }) => setText(ended(replacing(sql))))
      .catch((error: unknown) => {
        if (!(error instanceof Problem)) throw error;
        setMissing(error);
        setText("");
      });
  }, [draft, replace]);
  return (
    <>
      <div class="title">
        <h1 tabIndex={-1}>{replace === null ? "New alert" : `Replace ${replace}`}</h1>
        <p class="muted">Nothing changes in the fleet until you apply it.</p>
      </div>
      <ProblemMessage problem={missing} />
      {text === null ? <p class="muted">Loading …</p> : <Workshop draft={draft} first={text} names={names} />}
    </>
  );
}

interface WorkshopProperties {
  /** The key under which the text is kept while the tab is open. */
  draft: string;
  first: string;
  names: Names | undefined;
}

function Workshop({ draft, first, names }: WorkshopProperties) {
  const [text, setText] = useState(first);
  const editor = useRef<EditorHandle>(null);
  const { part, failed } = useLoaded(loadEditor);
  const explained = useExplained(text);
  const trial = useTrial();
  const { change: mayChange } = useRights();
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [outcomes, setOutcomes] = useState<Outcome[] | null>(null);
  const change = useCallback(
    (now: string) => {
      setText(now);
      setOutcomes(null);
      if (now.trim()) sessionStorage.setItem(draft, now);
      else sessionStorage.removeItem(draft);
    },
    [draft],
  );
  const apply = async (): Promise<void> => {
    setBusy(true);
    setProblem(null);
    setOutcomes(null);
    try {
      setOutcomes(await sendSql<Outcome[]>("/v1/statements?file=console", text));
      sessionStorage.removeItem(draft);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      setProblem(error);
    } finally {
      setBusy(false);
    }
  };
  const refused = explained.queries.some(({ accepted }) => !accepted);
  const wrong = explained.mistakes.length > 0 || explained.problem !== null || refused;
  return (
    <div class="columns">
      <div class="stack">
        <Section title="SQL" note="Ctrl+Space completes. Escape, then Tab leaves the editor.">
          {part ? (
            <part.SqlEditor ref={editor} text={first} mistakes={explained.mistakes} names={names} onChange={change} />
          ) : (
            <div class="editor">{failed ? <NotLoaded what="The editor" /> : <p class="muted">Loading …</p>}</div>
          )}
          {part && text.trim() === "" && (
            <p class="empty">
              Write <code>CREATE ALERT</code> here, or{" "}
              <button type="button" class="link" onClick={() => editor.current?.replace(EXAMPLE)}>
                begin with an example
              </button>
              .
            </p>
          )}
          <Mistakes mistakes={explained.mistakes} onChoose={(mistake) => editor.current?.go(mistake)} />
          <div class="actions">
            <button
              type="button"
              class="main"
              disabled={busy || wrong || !mayChange || text.trim() === ""}
              onClick={() => void apply()}
            >
              Apply
            </button>
            <Lacking right="change" />
          </div>
          <p role="status" class="muted">
            {busy && "Applying …"}
          </p>
          <ProblemMessage problem={problem} />
          {outcomes && <Applied outcomes={outcomes} />}
        </Section>
        <TryOut trial={trial} text={text} queries={wrong ? [] : explained.queries} />
      </div>
      <Section title="Explanation" note={explained.busy ? "Checking …" : undefined}>
        <ProblemMessage problem={explained.problem} />
        {explained.queries.map((query) => (
          <Explanation key={`${query.kind} ${query.name}`} query={query} />
        ))}
        {explained.queries.length === 0 && !explained.problem && (
          <p class="empty">
            {explained.mistakes.length > 0
              ? "The explanation appears when the SQL has no mistake."
              : "What edges will omit, and how much memory the alert needs, appears here as you type."}
          </p>
        )}
      </Section>
    </div>
  );
}

function Mistakes({ mistakes, onChoose }: { mistakes: Mistake[]; onChoose: (mistake: Mistake) => void }) {
  return (
    <div aria-live="polite">
      {mistakes.length > 0 && (
        <ul class="mistakes">
          {mistakes.map((mistake) => (
            <li key={`${mistake.line}:${mistake.column} ${mistake.what}`}>
              {mistake.line !== null && (
                <button type="button" class="link" onClick={() => onChoose(mistake)}>
                  line {mistake.line}, column {mistake.column}
                </button>
              )}{" "}
              {mistake.what}
              {mistake.hint && <>; {mistake.hint}</>}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function Applied({ outcomes }: { outcomes: Outcome[] }) {
  return (
    <div role="status" class="panel">
      <ul class="plain">
        {outcomes.map(({ statement, kind, name, result, notices }, index) => (
          <li key={index}>
            <span class="state good">
              <span class="sign" aria-hidden="true" />
              {result}
            </span>{" "}
            {name === undefined ? statement : kind === "alert" ? <a href={links.alert(name)}>alert {name}</a> : `${kind} ${name}`}
            {notices?.map((notice) => <p key={notice}>{notice}</p>)}
          </li>
        ))}
      </ul>
    </div>
  );
}
