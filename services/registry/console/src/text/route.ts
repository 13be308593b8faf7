/** Addresses of the pages, which are in the fragment: the server has one page. */

export type Route =
  | { page: "fleet" }
  | { page: "alert"; name: string }
  | { page: "stream"; name: string }
  | { page: "new"; replace: string | null }
  | { page: "silences"; alert: string; key: string }
  | { page: "dead-letters" }
  | { page: "unknown"; path: string };

/** The page of a fragment such as `#/alerts/hot`. */
export function parseRoute(fragment: string): Route {
  const [path = "", query = ""] = fragment.replace(/^#?\/?/, "").split("?", 2);
  const [head = "", ...rest] = path.split("/");
  const name = decode(rest.join("/"));
  if (path === "") return { page: "fleet" };
  if (head === "alerts" && name) return { page: "alert", name };
  if (head === "streams" && name) return { page: "stream", name };
  if (path === "new") return { page: "new", replace: new URLSearchParams(query).get("replace") };
  if (path === "silences") {
    const asked = new URLSearchParams(query);
    return { page: "silences", alert: asked.get("alert") ?? "", key: asked.get("key") ?? "" };
  }
  if (path === "dead-letters") return { page: "dead-letters" };
  return { page: "unknown", path };
}

export const links = {
  fleet: "#/",
  alert: (name: string) => `#/alerts/${encodeURIComponent(name)}`,
  stream: (name: string) => `#/streams/${encodeURIComponent(name)}`,
  new: "#/new",
  replace: (name: string) => `#/new?${new URLSearchParams({ replace: name })}`,
  silences: "#/silences",
  /** The form of a silence of an alert, or of one key of it. */
  silence: (alert: string, key = "") => `#/silences?${new URLSearchParams(key === "" ? { alert } : { alert, key })}`,
  deadLetters: "#/dead-letters",
};

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
