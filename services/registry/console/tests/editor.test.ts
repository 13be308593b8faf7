import { Text } from "@codemirror/state";
import { describe, expect, it } from "vitest";
import { options } from "../src/editor/language";
import { diagnostics, offset } from "../src/editor/mistakes";

const text = Text.of(["SELECT 😀, tmep", "FROM air"]);
const mistake = (line: number | null, column: number | null) => ({ line, column, what: "wrong", hint: null });

describe("places of mistakes", () => {
  it("count characters", () => {
    expect(text.sliceString(offset(text, mistake(1, 11)), offset(text, mistake(1, 11)) + 4)).toBe("tmep");
    expect(offset(text, mistake(2, 1))).toBe(text.line(2).from);
  });
  it("outside of the text are at its end or beginning", () => {
    expect(offset(text, mistake(9, 1))).toBe(text.line(2).from);
    expect(offset(text, mistake(null, null))).toBe(0);
  });
  it("mark the word", () => {
    const [found] = diagnostics(text, [{ ...mistake(2, 6), hint: "write it so" }]);
    expect(text.sliceString(found!.from, found!.to)).toBe("air");
    expect(found!.message).toBe("wrong; write it so");
  });
  it("at the end of the text have no length", () => {
    const [found] = diagnostics(text, [mistake(2, 9)]);
    expect([found!.from, found!.to]).toEqual([text.length, text.length]);
  });
});

describe("completion", () => {
  it("has each name once, with all that it is", () => {
    const column = { name: "temp", type: "DOUBLE", key: false };
    const found = options({
      streams: [
        { name: "air", kind: "raw", columns: [column], time: "ts" },
        { name: "surface", kind: "raw", columns: [column], time: "ts" },
      ],
      alerts: [],
      functions: [{ name: "dew", parameters: ["t"] }],
      patterns: [],
      builtin: ["ABS"],
      keywords: ["SELECT"],
    });
    expect(found.map(({ label, detail }) => [label, detail])).toEqual([
      ["air", "stream"],
      ["temp", "DOUBLE of air, DOUBLE of surface"],
      ["surface", "stream"],
      ["dew", "(t)"],
      ["abs", "built in"],
      ["SELECT", ""],
    ]);
  });
  it("has the words of the language before the registry answers", () => {
    expect(options(undefined).some(({ label }) => label === "SELECT")).toBe(true);
  });
});
