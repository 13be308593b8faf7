/** Highlighting of SQL, and completion with the names of the fleet. */
import type { Completion, CompletionContext, CompletionResult } from "@codemirror/autocomplete";
import { SQLDialect, sql } from "@codemirror/lang-sql";
import type { Names } from "../api/documents";

const KEYWORDS =
  "create or replace alter alert stream function table pattern drop pause resume explain show as select distinct from " +
  "where join left on and not in between is null exists asof group by having with watermark for key check returns over " +
  "partition order rows range case when then else end interval second minute hour day values union all order";
const TYPES = "varchar double boolean int bigint timestamp";

const DIALECT = SQLDialect.define({ keywords: KEYWORDS, types: TYPES, doubleQuotedStrings: false });

export const language = sql({ dialect: DIALECT });

/** Completes with what the registry knows now; without its answer, with the words of the language. */
export function completionOf(names: () => Names | undefined) {
  return (context: CompletionContext): CompletionResult | null => {
    const word = context.matchBefore(/\w+/);
    if (!word && !context.explicit) return null;
    return { from: word?.from ?? context.pos, options: options(names()), validFor: /^\w*$/ };
  };
}

/** All completions, each label once; names of the fleet come before words of the language. */
export function options(names: Names | undefined): Completion[] {
  const found = new Map<string, Completion>();
  const add = (label: string, type: string, detail: string, boost: number): void => {
    const before = found.get(label);
    if (before) before.detail = [...new Set([...(before.detail ?? "").split(", "), detail])].join(", ");
    else found.set(label, { label, type, detail, boost });
  };
  for (const { name, kind, columns } of names?.streams ?? []) {
    add(name, "class", kind === "table" ? "table" : "stream", 3);
    for (const column of columns) add(column.name, "property", `${column.type} of ${name}`, 2);
  }
  for (const { name, parameters } of names?.functions ?? []) add(name, "function", `(${parameters.join(", ")})`, 2);
  for (const name of names?.patterns ?? []) add(name, "constant", "pattern", 1);
  for (const name of names?.builtin ?? []) add(name.toLowerCase(), "function", "built in", 0);
  for (const word of names?.keywords ?? KEYWORDS.toUpperCase().split(" ")) add(word, "keyword", "", -1);
  return [...found.values()];
}
