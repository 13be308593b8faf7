/** Names of alerts or streams as links, one after the other. */
import { links } from "../text/route";

export function Links({ names, to }: { names: string[]; to: "alert" | "stream" }) {
  if (names.length === 0) return <span class="muted">–</span>;
  return (
    <ul class="inline">
      {names.map((name) => (
        <li key={name}>
          <a href={links[to](name)}>{name}</a>
        </li>
      ))}
    </ul>
  );
}
