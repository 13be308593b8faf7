/** Requests to the HTTP API of the registry. */
import type { ProblemDocument } from "./documents";
import { parseJson, showJson } from "./json";
import { refuse, token } from "./token";

/** An answer that isn't the wanted one, or none (`status` 0). */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly document: ProblemDocument,
  ) {
    super(document.detail ?? document.title ?? `The registry answered ${status}.`);
  }
}

/** The headers that every request needs. */
export function authorization(): Record<string, string> {
  const text = token();
  return text === null ? {} : { Authorization: `Bearer ${text}` };
}

export function read<T>(path: string, signal?: AbortSignal): Promise<T> {
  return send<T>("GET", path, undefined, signal);
}

/** Send SQL text. */
export function sendSql<T>(path: string, sql: string, signal?: AbortSignal): Promise<T> {
  return send<T>("POST", path, { type: "application/sql", text: sql }, signal);
}

/** Send a document as JSON. */
export function sendDocument<T>(path: string, document: unknown): Promise<T> {
  return send<T>("POST", path, { type: "application/json", text: showJson(document) });
}

export function remove(path: string): Promise<void> {
  return send<void>("DELETE", path);
}

interface Body {
  type: string;
  text: string;
}

async function send<T>(method: string, path: string, sent?: Body, signal?: AbortSignal): Promise<T> {
  const headers = authorization();
  if (sent !== undefined) headers["Content-Type"] = sent.type;
  let answer: Response;
  let text: string;
  try {
    answer = await fetch(path, { method, headers, body: sent?.text ?? null, signal: signal ?? null });
    text = await answer.text();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem(0, { title: "No answer from the registry", detail: "The registry doesn't answer." });
  }
  // A deletion is answered without a text.
  if (answer.ok) return (text === "" ? undefined : parseJson(text)) as T;
  throw problemOf(answer.status, text);
}

/** The error of an answer with an error status. */
export function problemOf(status: number, text: string): Problem {
  let document: ProblemDocument;
  try {
    document = parseJson(text) as ProblemDocument;
  } catch {
    document = { detail: text.slice(0, 300) || `The answer has status ${status} and no text.` };
  }
  if (status === 401) refuse(document.detail ?? "This registry needs a token.");
  return new Problem(status, document);
}
