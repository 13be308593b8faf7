/** The page of an address that isn't one. */
import { links } from "../text/route";

export function NotFound({ path }: { path: string }) {
  return (
    <>
      <h1 tabIndex={-1}>There is no page "{path}"</h1>
      <p>
        <a href={links.fleet}>The fleet</a> lists every alert and stream.
      </p>
    </>
  );
}
