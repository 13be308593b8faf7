/** What this page may do with its token, as the registry says in its first message. */
import { useEffect, useState } from "preact/hooks";
import { currentRights, onEvent, type Rights } from "./events";

/** The rights now. Until the registry has told them they are all there: it refuses what a token may not do. */
export function useRights(): Rights {
  const [rights, setRights] = useState(currentRights());
  useEffect(() => {
    // They may have been told since the first drawing.
    setRights(currentRights());
    return onEvent((kind) => {
      if (kind === "rights") setRights(currentRights());
    });
  }, []);
  return rights;
}
