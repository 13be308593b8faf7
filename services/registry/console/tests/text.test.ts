import { describe, expect, it } from "vitest";
import { parseJson, showJson } from "../src/api/json";
import { attention } from "../src/text/attention";
import { count, percent, short, shown, whole } from "../src/text/numbers";
import { links, parseRoute } from "../src/text/route";
import { aligned, seriesOf } from "../src/text/series";
import { ended, quoted, replacing } from "../src/text/sql";
import { clock, duration, iso, roughly } from "../src/text/time";
import { namedRows, sent, seriesOfRows, span, summary } from "../src/text/trial";

describe("numbers keep every digit", () => {
  it("beyond 2^53 where the browser tells how they were written", () => {
    const text = '{"bound": 123456789012345678901}';
    const told = JSON.parse("1", (_, __, context?: { source?: string }) => context?.source) === "1";
    const bound = (parseJson(text) as { bound: bigint }).bound;
    expect(bound).toBe(told ? 123456789012345678901n : 123456789012345680000);
  });
  it("in text", () => {
    expect(whole(19860000)).toBe("19,860,000");
    expect(whole(123456789012345678901n)).toBe("123,456,789,012,345,678,901");
    expect(count(1, "shard")).toBe("1 shard");
    expect(count(0, "shard")).toBe("0 shards");
    expect(shown(null)).toBe("NULL");
    expect(shown(undefined)).toBe("");
    expect(showJson({ a: [1n, "x"] })).toBe('{"a": [1, "x"]}');
  });
  it("but not where a glance is enough", () => {
    expect([short(11.879999999999999), short(-0.5), short(1234567)]).toEqual(["11.88", "-0.5", "1234570"]);
  });
  it("as shares, which are 100 % only if nothing is missing", () => {
    expect(percent(0.9983579638752053)).toBe("99.8 %");
    expect(percent(0.99999)).toBe("almost 100 %");
    expect(percent(1)).toBe("100 %");
  });
});

describe("times", () => {
  it("are ISO in UTC with the digits that they have", () => {
    expect(iso(1700000000000000)).toBe("2023-11-14T22:13:20Z");
    expect(iso(1700000000120000)).toBe("2023-11-14T22:13:20.12Z");
    expect(iso(-1)).toBe("1969-12-31T23:59:59.999999Z");
    expect(iso(-(2n ** 62n))).toBe("-4611686018427387904");
  });
  it("as lengths are seconds", () => expect(duration(60000001)).toBe("60.000001 s"));
  it("as spans have the unit that suits them", () => {
    expect(roughly(0)).toBe("0 s");
    expect(roughly(299_000_000)).toBe("4.98 min");
    expect(roughly(7_200_000_000n)).toBe("2 h");
    expect(roughly(40 * 86_400e6)).toBe("40 days");
  });
  it("as labels of an axis have the day only if there are several", () => {
    expect(clock([1700000000, 1700000000.5])).toEqual(["22:13:20", "22:13:20.5"]);
    expect(clock([1700000000, 1700010000])).toEqual(["11-14 22:13", "11-15 01:00"]);
  });
});

describe("addresses", () => {
  it("are found again from their links", () => {
    expect(parseRoute("")).toEqual({ page: "fleet" });
    expect(parseRoute(links.fleet)).toEqual({ page: "fleet" });
    for (const name of ["hot", "a b", "ü/%", "x?y"]) {
      expect(parseRoute(links.alert(name))).toEqual({ page: "alert", name });
      expect(parseRoute(links.stream(name))).toEqual({ page: "stream", name });
      expect(parseRoute(links.replace(name))).toEqual({ page: "new", replace: name });
    }
    expect(parseRoute(links.new)).toEqual({ page: "new", replace: null });
    expect(parseRoute("#/alerts/")).toEqual({ page: "unknown", path: "alerts/" });
    expect(parseRoute("#/alerts/%")).toEqual({ page: "alert", name: "%" });
  });
});

describe("SQL", () => {
  it("of an alert becomes the statement that replaces it", () => {
    expect(replacing("CREATE ALERT a AS SELECT 1")).toBe("CREATE OR REPLACE ALERT a AS SELECT 1");
    expect(replacing("create or replace alert a AS x")).toBe("create or replace alert a AS x");
  });
  it("ends once", () => {
    expect(ended("a; ")).toBe("a; ");
    expect(ended("a\n")).toBe("a;\n");
  });
  it("has names in quotes where they need them", () => {
    expect(quoted("hot_1")).toBe("hot_1");
    expect(quoted('Hot"x')).toBe('"Hot""x"');
  });
});

describe("series of readings", () => {
  const readings: [string, Record<string, number | string>][] = [
    ["a", { ts: 2_000_000, temp: 5, k: "x" }],
    ["s", { at: 1_000_000, v: 1 }],
    ["a", { ts: 1_000_000, temp: 4, k: "x" }],
    ["a", { ts: 2_000_000, temp: 5, k: "x" }],
    ["unknown", { ts: 1, temp: 4 }],
  ];
  it("have a point for each reading, in the order of time", () => {
    expect(seriesOf(readings, { a: "ts", s: "at" })).toEqual([
      { name: "a.temp", points: [[1, 4], [2, 5]] },
      { name: "s.v", points: [[1, 1]] },
    ]);
  });
  it("share their times", () => {
    expect(aligned(seriesOf(readings, { a: "ts", s: "at" }))).toEqual([[1, 2], [4, 5], [1, null]]);
  });
});

describe("what needs attention", () => {
  const shard = { shard: "air:e/s", stream: "air", edge: "e", plan: 1, activation: null };
  const alert = { plan: 1, streams: ["air"], bound: null, live: 0, unproven: false, activations: {}, retiring: {}, sql: "" };
  it("is each reason once, the worst first", () => {
    const away = "shard air:e/s has said nothing for 30 s";
    const found = attention(
      [
        { ...alert, name: "slow", state: "starting", why: ["its plan is being written"] },
        { ...alert, name: "hot", state: "degraded", why: [away] },
        { ...alert, name: "off", state: "paused", why: ["RESUME ALERT starts it again"] },
      ],
      [],
      [{ name: "e", state: "away", why: [away], failing: {}, shards: [{ ...shard, state: "away", why: away }] }],
    );
    expect(found).toEqual([
      { state: "away", reason: away, about: [{ kind: "edge", name: "e" }, { kind: "alert", name: "hot" }] },
      { state: "starting", reason: "its plan is being written", about: [{ kind: "alert", name: "slow" }] },
    ]);
  });
  it("names the sources that fail, though their shards are active", () => {
    const why = ["source mqtt fails: connection refused"];
    const failing = { mqtt: "connection refused" };
    const edges = [{ name: "e", state: "active", why, failing, shards: [{ ...shard, state: "active", why: "" }] }];
    expect(attention([], [], edges)).toEqual([
      { state: "failing", reason: why[0], about: [{ kind: "edge", name: "e" }] },
    ]);
  });
  it("is nothing in a fleet that runs", () => {
    const edges = [{ name: "e", state: "active", why: [], failing: {}, shards: [{ ...shard, state: "active", why: "" }] }];
    expect(attention([{ ...alert, name: "hot", state: "running", why: [] }], [], edges)).toEqual([]);
  });
});

describe("a trial", () => {
  const input = { rows: 300, retained: 120, omitted: 180, refused: 0, from: 0, to: 299_000_000, complete: true };
  const result = {
    query: "close",
    columns: ["k", "ts", "v", "other"],
    times: ["ts", "other"],
    rows: [
      ["a", 5_000_000, 39.5, 4_000_000],
      ["a", 1_000_000, 38, 2_000_000],
    ],
    row_count: 2,
    truncated: false,
    inputs: { air: input, surface: { ...input, rows: 1 } },
    note: "",
    notices: [],
  };
  it("has its rows by name, and a chart of numbers that aren't times", () => {
    const rows = namedRows(result);
    expect(rows[0]).toEqual({ k: "a", ts: 5_000_000, v: 39.5, other: 4_000_000 });
    expect(seriesOfRows(result, rows)).toEqual([
      {
        name: "close.v",
        points: [
          [1, 38],
          [5, 39.5],
        ],
      },
    ]);
    expect(seriesOfRows({ ...result, times: [] }, rows)).toEqual([]);
  });
  it("says what was looked at in words", () => {
    expect(summary(result, "alarm")).toBe("close: 2 alarms from 301 readings.");
    expect([sent(input), sent({ ...input, rows: 0 })]).toEqual(["120 (40 %)", "0"]);
    expect([span(input), span({ ...input, from: null, to: null })]).toEqual(["4.98 min", null]);
  });
});
