/** Places of mistakes in the text of the editor. */
import type { Diagnostic } from "@codemirror/lint";
import type { Text } from "@codemirror/state";
import type { Mistake } from "../api/documents";

/** The offset of a mistake. Columns count characters, and the editor counts UTF-16 units. */
export function offset(text: Text, { line, column }: Mistake): number {
  const found = text.line(Math.min(Math.max(line ?? 1, 1), text.lines));
  const before = [...found.text].slice(0, Math.max((column ?? 1) - 1, 0)).join("");
  return found.from + before.length;
}

/** A mark for each mistake: the word at its place, or the character where there is no word. */
export function diagnostics(text: Text, mistakes: Mistake[]): Diagnostic[] {
  return mistakes
    .map((mistake): Diagnostic => {
      const from = offset(text, mistake);
      const { to: end } = text.lineAt(from);
      const word = /^\w+/.exec(text.sliceString(from, end))?.[0].length ?? 1;
      const message = mistake.hint ? `${mistake.what}; ${mistake.hint}` : mistake.what;
      return { from, to: Math.min(from + word, end), severity: "error", message };
    })
    .sort((a, b) => a.from - b.from);
}
