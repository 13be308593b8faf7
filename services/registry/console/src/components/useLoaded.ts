/** Parts of the page that are loaded when they are first shown, since most visits don't need them. */
import { useEffect, useState } from "preact/hooks";

export type Loaded<T> = { part: T; failed: false } | { part: null; failed: boolean };

/** The part that `load` gives, once it is there. `load` must be the same function in every call. */
export function useLoaded<T extends object>(load: () => Promise<T>): Loaded<T> {
  const [state, setState] = useState<Loaded<T>>({ part: null, failed: false });
  useEffect(() => {
    let current = true;
    load()
      .then((part) => current && setState({ part, failed: false }))
      // The registry was updated and has other files now, or it doesn't answer.
      .catch(() => current && setState({ part: null, failed: true }));
    return () => {
      current = false;
    };
  }, [load]);
  return state;
}
