/** The token for a protected registry. It is kept until the browser's tab is closed, and nowhere else. */

const KEY = "tamis.token";
const listeners = new Set<() => void>();
let refused: string | null = null;

export function token(): string | null {
  return sessionStorage.getItem(KEY);
}

/** The registry's reason for asking for a token; null if none is needed now. */
export function refusal(): string | null {
  return refused;
}

export function setToken(text: string | null): void {
  if (text === null) sessionStorage.removeItem(KEY);
  else sessionStorage.setItem(KEY, text);
  refused = null;
  tell();
}

/** Note that the registry refused a request because of the token. */
export function refuse(detail: string): void {
  if (refused === detail) return;
  refused = detail;
  tell();
}

/** Call `listener` after every change; returns the function that ends this. */
export function onToken(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell(): void {
  for (const listener of listeners) listener();
}
