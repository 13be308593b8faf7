/** The physical plan of an alert in words. */
import type { PlanBound, PlanOperator } from "../api/plan";
import { whole } from "./numbers";

/** The state of an operator that has none. */
const NOTHING = "nothing";

export function keepsNothing({ keeps }: PlanOperator): boolean {
  return keeps === NOTHING;
}

/** The number of a bound; empty if it has none. */
export function boundText({ most, unit }: PlanBound): string {
  return most === null ? "" : `at most ${whole(most)} ${unit}`;
}

export function title({ operator, subject }: PlanOperator): string {
  return subject === null ? operator : `${operator} ${subject}`;
}

/** The tree as lines of text: below each operator what it does, and behind arrows the operators that it reads. */
export function planText(one: PlanOperator, indent = "", arrow = ""): string {
  const own = `${indent}${" ".repeat(arrow.length)}  `;
  const stateless = keepsNothing(one) ? ", keeps nothing" : "";
  const lines = [`${indent}${arrow}${title(one)}  (${one.runs}${stateless})`];
  for (const { name, text } of one.details) lines.push(`${own}${name}: ${text}`);
  if (!stateless) lines.push(`${own}keeps: ${one.keeps}`);
  if (one.bound !== null) {
    const bound = [boundText(one.bound), one.bound.formula ?? ""].filter((part) => part !== "").join(" = ");
    if (bound !== "") lines.push(`${own}bound: ${bound}`);
  }
  return [...lines, ...one.inputs.map((input) => planText(input, own, "->  "))].join("\n");
}
