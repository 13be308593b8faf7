import { describe, expect, it } from "vitest";
import type { PlanOperator } from "../src/api/plan";
import { boundText, keepsNothing, planText, title } from "../src/text/plan";

const scan: PlanOperator = {
  operator: "Scan",
  runs: "edge",
  subject: "air as a",
  details: [{ name: "filter", text: "v > 50" }],
  keeps: "nothing",
  bound: null,
  inputs: [],
};
const join: PlanOperator = {
  operator: "TimeJoin",
  runs: "joiner",
  subject: null,
  details: [
    { name: "on", text: "a.k = g.k" },
    { name: "select", text: "a.k" },
  ],
  keeps: "tuples of a for 5 s",
  bound: { most: 19860000, unit: "tuples", formula: "10 * 3" },
  inputs: [scan, { ...scan, subject: "ground as g", details: [] }],
};

describe("physical plans", () => {
  it("are trees of text, as the command prints them", () => {
    expect(planText(join).split("\n")).toEqual([
      "TimeJoin  (joiner)",
      "  on: a.k = g.k",
      "  select: a.k",
      "  keeps: tuples of a for 5 s",
      "  bound: at most 19,860,000 tuples = 10 * 3",
      "  ->  Scan air as a  (edge, keeps nothing)",
      "        filter: v > 50",
      "  ->  Scan ground as g  (edge, keeps nothing)",
    ]);
  });
  it("name operators by what they read", () => expect([title(scan), title(join)]).toEqual(["Scan air as a", "TimeJoin"]));
  it("have bounds with every digit, or only a formula", () => {
    expect(boundText({ most: 123456789012345678901n, unit: "entries", formula: null })).toBe(
      "at most 123,456,789,012,345,678,901 entries",
    );
    expect(boundText({ most: null, unit: "tuples", formula: "3 * keys" })).toBe("");
    expect(planText({ ...join, bound: { most: null, unit: "tuples", formula: "3 * keys" }, inputs: [] })).toContain(
      "\n  bound: 3 * keys",
    );
  });
  it("tell operators without state", () => expect([scan, join].map(keepsNothing)).toEqual([true, false]));
});
