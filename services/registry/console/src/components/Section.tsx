/** A part of a page with a heading, which screen readers list as a landmark. */
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

interface Properties {
  title: string;
  note?: ComponentChildren;
  children: ComponentChildren;
}

export function Section({ title, note, children }: Properties) {
  const id = useId();
  return (
    <section aria-labelledby={id}>
      <div class="heading">
        <h2 id={id}>{title}</h2>
        {note && <p class="muted">{note}</p>}
      </div>
      {children}
    </section>
  );
}
