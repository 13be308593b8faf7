/** Tries a query of the editor on the newest readings in the topics; nothing changes in the fleet. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { ExplainedQuery } from "../api/documents";
import type { Trial as Trials } from "../api/trial";
import { summary } from "../text/trial";
import { ProblemMessage } from "./ProblemMessage";
import { Section } from "./Section";
import { Trial } from "./Trial";

interface Properties {
  trial: Trials;
  text: string;
  /** The queries of the text; none while it has a mistake. */
  queries: ExplainedQuery[];
}

export function TryOut({ trial, text, queries }: Properties) {
  const { done, problem, busy, run, cancel } = trial;
  const begin = useRef<HTMLButtonElement>(null);
  const [chosen, setChosen] = useState("");
  const query = queries.find(({ name }) => name === chosen) ?? queries.at(-1);
  const noun = done?.query.kind === "stream" ? "row" : "alarm";
  const wasBusy = useRef(false);
  useEffect(() => {
    // The button that cancels may have had the focus, and has gone.
    const ended = wasBusy.current && !busy;
    if (ended && document.activeElement === document.body) begin.current?.focus({ preventScroll: true });
    wasBusy.current = busy;
  }, [busy]);
  return (
    <Section title="Trial" note="What the query would find in the newest readings of its topics.">
      <div class="actions">
        {queries.length > 1 && (
          <label class="choice">
            Query
            <select value={query?.name} onChange={(event) => setChosen(event.currentTarget.value)}>
              {queries.map(({ name }) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </label>
        )}
        <button
          ref={begin}
          type="button"
          disabled={query === undefined}
          aria-disabled={busy}
          onClick={() => query && !busy && run(text, query)}
        >
          Try it on recent readings
        </button>
        {busy && (
          <button type="button" onClick={cancel}>
            Cancel trial
          </button>
        )}
      </div>
      <p role="status" class={busy ? "muted" : "hidden"}>
        {busy ? "Reading the topics and running the query …" : done && `Trial of ${summary(done.result, noun)}`}
      </p>
      <ProblemMessage problem={problem} />
      {done && <Trial result={done.result} noun={noun} stale={done.text !== text} />}
    </Section>
  );
}
