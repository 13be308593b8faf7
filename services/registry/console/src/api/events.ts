/**
 * One connection to `/v1/events` for the whole page, which is made again after every end.
 *
 * It is read with fetch and not with EventSource, because only fetch can send the token in a header.
 */
import { authorization, problemOf } from "./client";
import { parseJson } from "./json";
import { EventParser, type ServerEvent } from "./sse";
import { onToken } from "./token";

/** `live`: changes are told at once. `polling`: the page asks every few seconds. `away`: no answer. */
export type Connection = "connecting" | "live" | "polling" | "away";
/** `change`: definitions; `operate`: silences and acknowledgements. */
export interface Rights {
  change: boolean;
  operate: boolean;
}
export type Listener = (kind: string, data: unknown) => void;

const LONGEST_PAUSE = 15_000;
/** Two heartbeats of the registry are missing. */
const SILENCE = 40_000;

const ALL: Rights = { change: true, operate: true };

let connection: Connection = "connecting";
let rights = ALL;
let controller: AbortController | null = null;
let started = false;
let lastId: string | null = null;
const listeners = new Set<Listener>();

export function currentConnection(): Connection {
  return connection;
}

export function currentRights(): Rights {
  return rights;
}

/**
 * Listen to all events, and to the kinds `connection` and `rights` when one of these changes; returns the function that
 * ends this.
 */
export function onEvent(listener: Listener): () => void {
  listeners.add(listener);
  if (!started) {
    started = true;
    onToken(() => {
      grant(ALL);
      controller?.abort();
    });
    void connectAgainAndAgain();
  }
  return () => listeners.delete(listener);
}

function tell(kind: string, data: unknown): void {
  for (const listener of listeners) listener(kind, data);
}

function become(next: Connection): void {
  if (connection === next) return;
  connection = next;
  tell("connection", next);
}

function grant(next: Rights): void {
  rights = next;
  tell("rights", next);
}

async function connectAgainAndAgain(): Promise<void> {
  let pause = 500;
  for (;;) {
    const heard = await connectOnce();
    pause = heard ? 500 : Math.min(pause * 2, LONGEST_PAUSE);
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

/** Read events until the connection ends. True if there was one. */
async function connectOnce(): Promise<boolean> {
  controller = new AbortController();
  const { signal } = controller;
  let watch: ReturnType<typeof setTimeout> | undefined;
  let heard = false;
  const alive = () => {
    clearTimeout(watch);
    watch = setTimeout(() => controller?.abort(), SILENCE);
  };
  try {
    alive();
    const headers = authorization();
    if (lastId !== null) headers["Last-Event-ID"] = lastId;
    const answer = await fetch("/v1/events", { headers, signal });
    if (!answer.ok || answer.body === null) {
      problemOf(answer.status, await answer.text());
      become("polling");
      return false;
    }
    const parser = new EventParser();
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      alive();
      for (const event of parser.feed(value)) {
        heard = true;
        pass(event);
      }
    }
    become("polling");
  } catch {
    // An aborted request has a new token or was silent; a failed one means that the registry is away.
    become(signal.aborted ? "polling" : "away");
  } finally {
    clearTimeout(watch);
  }
  return heard;
}

function pass(event: ServerEvent): void {
  // The first message. Before it, the registry may miss what happens, and a page that reads then may miss it too.
  if (event.kind === "hello") become("live");
  if (event.id !== null) lastId = event.id;
  let data: unknown;
  try {
    data = parseJson(event.data);
  } catch {
    data = event.data;
  }
  // A registry of an older release doesn't tell the rights.
  if (event.kind === "hello") grant({ ...ALL, ...(data as Partial<Rights>) });
  tell(event.kind, data);
}
