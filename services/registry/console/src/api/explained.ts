/** The explanation of a text while it is written. */
import { useEffect, useState } from "preact/hooks";
import { Problem, sendSql } from "./client";
import type { ExplainedQuery, Mistake } from "./documents";

export interface Explained {
  queries: ExplainedQuery[];
  mistakes: Mistake[];
  /** A problem that isn't a mistake at a place of the text. */
  problem: Problem | null;
  busy: boolean;
}

const NOTHING: Explained = { queries: [], mistakes: [], problem: null, busy: false };
/** Milliseconds after the last key. */
const PAUSE = 400;

/** The last request, which is waited for and never given up: the registry would end the process that proves it. */
let last: Promise<unknown> = Promise.resolve();

/** The explanation of `text`, some time after its last change. */
export function useExplained(text: string | undefined): Explained {
  const [state, setState] = useState(NOTHING);
  useEffect(() => {
    if (text === undefined || text.trim() === "") {
      setState(NOTHING);
      return undefined;
    }
    let current = true;
    setState((before) => ({ ...before, busy: true }));
    const timer = setTimeout(() => {
      const ask = async (): Promise<void> => {
        if (!current) return;
        const found = await explain(text);
        if (current) setState(found);
      };
      last = last.then(ask, ask);
    }, PAUSE);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [text]);
  return state;
}

async function explain(text: string): Promise<Explained> {
  try {
    const { queries } = await sendSql<{ queries: ExplainedQuery[] }>("/v1/explain?file=console", text);
    return { ...NOTHING, queries };
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return explainedProblem(error);
  }
}

/** The parts of a problem document that the page shows at different places. */
function explainedProblem(problem: Problem): Explained {
  const { errors, query } = problem.document;
  if (errors && errors.length > 0) return { ...NOTHING, mistakes: errors };
  return { ...NOTHING, queries: query ? [query] : [], problem };
}
