/** A trial of a query on the newest readings, while it runs and when it has ended. */
import { useEffect, useRef, useState } from "preact/hooks";
import { Problem, sendSql } from "./client";
import type { ExplainedQuery, TrialResult } from "./documents";

export interface Trial {
  /** The result of the last trial that ended well, with the text and the query that were tried. */
  done: { result: TrialResult; text: string; query: ExplainedQuery } | null;
  problem: Problem | null;
  busy: boolean;
  run: (text: string, query: ExplainedQuery) => void;
  /** End the trial that runs. */
  cancel: () => void;
}

type State = Pick<Trial, "done" | "problem" | "busy">;
const NOTHING: State = { done: null, problem: null, busy: false };

export function useTrial(): Trial {
  const [state, setState] = useState(NOTHING);
  const running = useRef<AbortController | null>(null);
  // The registry ends a trial whose client has gone.
  useEffect(() => () => running.current?.abort(), []);
  const cancel = (): void => {
    running.current?.abort();
    running.current = null;
    setState((before) => ({ ...before, busy: false }));
  };
  const run = (text: string, query: ExplainedQuery): void => {
    running.current?.abort();
    const controller = new AbortController();
    running.current = controller;
    setState({ ...NOTHING, busy: true });
    const address = `/v1/try?${new URLSearchParams({ file: "console", query: query.name })}`;
    sendSql<TrialResult>(address, text, controller.signal)
      .then((result) => setState({ ...NOTHING, done: { result, text, query } }))
      .catch((error: unknown) => {
        if (controller.signal.aborted) return;
        if (!(error instanceof Problem)) throw error;
        setState({ ...NOTHING, problem: error });
      });
  };
  return { ...state, run, cancel };
}
