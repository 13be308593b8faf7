/** Documents of the API that stay up to date: read again after events, and now and then. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { Problem, read } from "./client";
import { currentConnection, onEvent } from "./events";
import { Timer } from "./timer";
import { onToken } from "./token";

export interface Live<T> {
  /** The newest document; undefined until there is one. */
  data: T | undefined;
  /** Why the last request failed; null if it didn't. */
  problem: Problem | null;
  /** Read it now. */
  again: () => void;
}

/** Milliseconds between requests without events, and with them: live counts change without an event. */
const POLL = 5_000;
const REFRESH = 15_000;
/** Events of one moment cause one request. */
const GATHER = 250;

/**
 * The document at `path`; null reads nothing. `kinds`: the events after which it is read again. `alert`: of events with
 * an alarm or an episode, only those of this alert count.
 */
export function useLive<T>(path: string | null, kinds: readonly string[] = [], alert?: string): Live<T> {
  const [state, setState] = useState<{ path: string | null; data?: T; problem: Problem | null }>({
    path,
    problem: null,
  });
  const wake = useRef<() => void>(() => undefined);
  const about = kinds.join(" ");
  useEffect(() => {
    if (path === null) return undefined;
    const controller = new AbortController();
    let busy = false;
    let asked = false;
    const load = async (): Promise<void> => {
      timer.stop();
      if (busy) {
        asked = true;
        return;
      }
      busy = true;
      asked = false;
      try {
        const data = await read<T>(path, controller.signal);
        setState({ path, data, problem: null });
      } catch (error) {
        if (controller.signal.aborted) return;
        const problem = error instanceof Problem ? error : new Problem(0, { detail: String(error) });
        setState((before) => (before.path === path ? { ...before, problem } : { path, problem }));
      } finally {
        busy = false;
      }
      timer.within(asked ? GATHER : currentConnection() === "live" ? REFRESH : POLL);
    };
    const timer = new Timer(() => (document.hidden ? timer.within(POLL) : void load()));
    wake.current = () => void load();
    const ends = [
      onToken(() => void load()),
      onEvent((kind, data) => {
        if (kind === "gap" || kind === "connection") timer.within(GATHER);
        else if (about.split(" ").includes(kind) && concerns(data, alert)) timer.within(GATHER);
      }),
    ];
    const shown = (): void => {
      if (!document.hidden) void load();
    };
    document.addEventListener("visibilitychange", shown);
    void load();
    return () => {
      controller.abort();
      timer.stop();
      for (const end of ends) end();
      document.removeEventListener("visibilitychange", shown);
    };
  }, [path, about, alert]);
  const again = useCallback(() => wake.current(), []);
  const current = state.path === path;
  return { data: current ? state.data : undefined, problem: current ? state.problem : null, again };
}

function concerns(data: unknown, alert: string | undefined): boolean {
  return alert === undefined || (data as { alert?: string } | null)?.alert === alert;
}
