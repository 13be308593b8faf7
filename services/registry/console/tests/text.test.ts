import { describe, expect, it } from "vitest";
import { parseJson, showJson } from "../src/api/json";
import { attention } from "../src/text/attention";
import { decided, received, withoutCounts } from "../src/text/decisions";
import { END_OF_TIME, heldBack, reached, slowestFirst } from "../src/text/joiner";
import { latencyOf } from "../src/text/latency";
import { bytes, count, percent, perSecond, short, shown, whole } from "../src/text/numbers";
import { links, parseRoute } from "../src/text/route";
import { aligned, seriesOf, timesOf } from "../src/text/series";
import { ended, quoted, replacing } from "../src/text/sql";
import { clock, duration, iso, roughly } from "../src/text/time";
import { needy, omission, readerOmission, readerText } from "../src/text/topics";
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
  it("as rates and sizes with three digits", () => {
    expect([0, 0.12345, 12.34, 12345.6].map(perSecond)).toEqual(["0 /s", "0.123 /s", "12.3 /s", "12,300 /s"]);
    expect([9_999, 12_340, 1_234_567, 3e9].map(bytes)).toEqual(["9,999 B", "12.3 kB", "1.23 MB", "3 GB"]);
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
    expect(clock([1700000000, 1702000000])).toEqual(["11-14", "12-08"]);
  });
  it("as labels of an axis have the year over long spans, so that no label is there twice", () => {
    expect(clock([1700000000, 1707000000])).toEqual(["2023-11-14", "2024-02-03"]);
    expect(clock([1680000000, 1698000000])).toEqual(["2023-03-28", "2023-10-22"]);
    expect(clock([1704060000, 1704070000])).toEqual(["12-31 22:00", "01-01 00:46"]);
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
    expect(seriesOf(readings, { a: ["ts"], s: ["at"] })).toEqual([
      { name: "a.temp", points: [[1, 4], [2, 5]] },
      { name: "s.v", points: [[1, 1]] },
    ]);
  });
  it("share their times", () => {
    expect(aligned(seriesOf(readings, { a: ["ts"], s: ["at"] }))).toEqual([[1, 2], [4, 5], [1, null]]);
  });
  it("have no other times, which are no numbers to people", () => {
    const timed: [string, Record<string, number>][] = [["a", { ts: 2_000_000, seen: 1_700_000_000_000_000, temp: 5 }]];
    expect(seriesOf(timed, { a: ["ts", "seen"] }).map(({ name }) => name)).toEqual(["a.temp"]);
  });
  it("are over the event time of their stream", () => {
    const column = (name: string, type: string) => ({ name, type, key: false });
    const columns = [column("seen", "TIMESTAMP"), column("ts", "TIMESTAMP"), column("temp", "DOUBLE")];
    const names = {
      streams: [
        { name: "air", kind: "raw", columns, time: "ts" },
        { name: "warm", kind: "derived", columns, time: null },
      ],
      alerts: [], functions: [], patterns: [], builtin: [], keywords: [],
    };
    expect(timesOf(names, "air")).toEqual(["ts", "seen"]);
    expect(timesOf(names, "warm")).toEqual(["seen", "ts"]);
    expect([timesOf(names, "none"), timesOf(undefined, "air")]).toEqual([[], []]);
  });
});

describe("what needs attention", () => {
  const told = { doubts: [], activation: null, watermark: null, tuples: null, rates: null, recent: null };
  const shard = { shard: "air:e/s", stream: "air", edge: "e", plan: 1, ...told };
  const alert = { plan: 1, streams: ["air"], bound: null, live: 0, unproven: false, activations: {}, retiring: {}, sql: "" };
  it("is each reason once, the worst first", () => {
    const away = "shard air:e/s has said nothing since 2026-03-01T08:29:58Z";
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
  it("names what is doubtful about readings, after all else", () => {
    const doubts = ["no value for temp"];
    const shards = [
      { ...shard, state: "active", why: "", doubts },
      { ...shard, shard: "air:e/http", state: "unused", why: "never had a reading" },
    ];
    const edges = [{ name: "e", state: "active", why: [], failing: {}, shards }];
    const starting = { ...alert, name: "slow", state: "starting", why: ["its plan is being written"] };
    expect(attention([starting], [], edges)).toEqual([
      { state: "starting", reason: "its plan is being written", about: [{ kind: "alert", name: "slow" }] },
      { state: "doubtful", reason: "shard air:e/s: no value for temp", about: [{ kind: "edge", name: "e" }] },
    ]);
  });
  it("names dead letters and late readings of the last minutes, with the page of dead letters", () => {
    const grown = (tuples: Record<string, number>) => {
      const one = { ...shard, state: "active", why: "", recent: { seconds: 420, tuples } };
      return attention([], [], [{ name: "e", state: "active", why: [], failing: {}, shards: [one] }]);
    };
    expect(grown({ published: 96, omitted: 0, late: 1, dead: 3 })).toEqual([
      {
        state: "dead letters",
        reason: "shard air:e/s: 3 of 100 readings (3 %) became dead letters in the last 7 min",
        about: [{ kind: "stream", name: "air" }, { kind: "page", name: "dead letters" }],
      },
      {
        state: "late",
        reason: "shard air:e/s: 1 of 100 readings (1 %) came late in the last 7 min",
        about: [{ kind: "stream", name: "air" }],
      },
    ]);
    expect(grown({ published: 100, omitted: 0, late: 0, dead: 0 })).toEqual([]);
    expect(grown({ published: 9_999, late: 1 })).toEqual([]);
  });
  it("names an edge without shards if it is away or has a source that fails", () => {
    const edge = { name: "e", shards: [] };
    const waits = "edge e has no shard: none of its sources has had a reading yet";
    expect(attention([], [], [{ ...edge, state: "waiting", why: [waits], failing: {} }])).toEqual([]);
    const failing = { mqtt: "refused" };
    const reason = "source mqtt fails: refused";
    expect(attention([], [], [{ ...edge, state: "waiting", why: [waits, reason], failing }])).toEqual([
      { state: "failing", reason, about: [{ kind: "edge", name: "e" }] },
    ]);
    const away = "edge e has said nothing since 2026-03-01T08:29:58Z";
    expect(attention([], [], [{ ...edge, state: "away", why: [away], failing: {} }])).toEqual([
      { state: "away", reason: away, about: [{ kind: "edge", name: "e" }] },
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

describe("readings by decision", () => {
  it("have a row each, those of later releases too", () => {
    const rows = decided({ published: 5, dead: 1, shed: 2 }, { published: 0.5, shed: 0.25 }) ?? [];
    expect(rows.map(({ decision, rate, tuples }) => [decision, rate, tuples])).toEqual([
      ["published", 0.5, 5], ["omitted", 0, 0], ["filtered", 0, 0], ["aggregated", 0, 0], ["late", 0, 0],
      ["dead", 0, 1], ["shed", 0.25, 2],
    ]);
    expect(decided(null, null)).toBeUndefined();
    expect(decided({}, null)?.every(({ rate }) => rate === null)).toBe(true);
    expect([received({ published: 1, omitted: 2.5 }), received(null)]).toEqual([3.5, null]);
  });
});

describe("a stream without counts", () => {
  const stream = {
    name: "air", kind: "raw", why: [], plan: 1, topics: [], alerts: [], subscribers: [], tuples: null, rates: null,
    retained: null, sql: "",
  };
  const shard = {
    shard: "air:e/s", stream: "air", edge: "e", why: "", doubts: [], plan: 1, activation: null, watermark: null,
    tuples: null, rates: null, recent: null,
  };
  const said = (...states: string[]) => withoutCounts({ ...stream, shards: states.map((state) => ({ ...shard, state })) });
  it("says why", () => {
    expect(said()).toContain("No edge has announced");
    expect(said("gone", "gone")).toBe("No shard of the stream is active now (gone). Counts begin anew when one comes back.");
    expect(said("gone", "active")).toContain("older release");
  });
});

describe("topics", () => {
  const entry = { filter: null, key: ["k"], value: "v", sides: "above" as const, interval: 60_000_000, max_delay: null };
  it("say in words what is omitted", () => {
    expect(omission(entry)).toBe(
      "A reading is omitted if its value lies between two higher ones of the same k that are at most 60 s apart.",
    );
    expect(omission({ ...entry, value: null, sides: null, interval: 0 })).toBeNull();
    expect(omission({ ...entry, key: [], sides: "both" })).toContain("two lower ones that are");
    expect(omission({ ...entry, max_delay: 5_000_000 })).toContain("A reading is omitted");
    expect(omission({ ...entry, max_delay: 0 })).toContain("Nothing is omitted: with max_delay = 0");
  });
  const reader = {
    kind: "alert" as const, name: "hot", plan: 3, retiring: false, source: "a", filter: null, interval: 0,
    max_delay: null, needs_all: "it has no omission",
  };
  it("say for which readers nothing is omitted", () => {
    const wet = { ...reader, name: "wet", interval: 60_000_000, needs_all: null };
    const fast = { ...wet, name: "fast", max_delay: 0, needs_all: "max_delay = 0" };
    expect([wet, fast].map(readerOmission)).toEqual(["60 s", "omits nothing: max_delay = 0"]);
    expect(needy([wet, fast, reader], "wet").map(({ name }) => name)).toEqual(["fast", "hot"]);
    expect(needy([wet, fast], "fast")).toEqual([]);
    expect(needy([{ ...reader, kind: "subscriber" }], "hot")).toHaveLength(1);
  });
  it("name their readers", () => {
    expect(readerText(reader)).toBe("alert hot (a)");
    expect(readerText({ ...reader, retiring: true })).toBe("alert hot (a), replaced definition of plan 3");
    expect(readerText({ ...reader, kind: "subscriber", source: null })).toBe("subscriber hot");
  });
});

describe("the joiner", () => {
  const partition = { plan: 3, time: 0, behind: 0, tuples: 0, bytes: 0, parked: 0 };
  const topic = { stream: "air", behind: 0, tuples: 0, bytes: 0, slowest: null, why: [] };
  const empty = { state: "running", why: [], reported_ago: 1, plan: 3, partitions: [], topics: [], definitions: [], late: 0, parked: 0, dead: {} };
  it("has come as far as its slowest partition", () => {
    const partitions = [5_000_000, 2_000_000, 9_000_000].map((frontier, n) => ({ ...partition, partition: n, frontier }));
    const joiner = { ...empty, partitions };
    expect(reached(joiner)).toBe(2_000_000);
    expect(slowestFirst(partitions).map((one) => one.partition)).toEqual([1, 0, 2]);
    expect(heldBack(joiner)).toEqual(["Partition 1 has come least far: 7 s behind partition 2."]);
    const fresh = { ...joiner, partitions: [...partitions, { ...partition, partition: 3, frontier: null }] };
    expect(reached(fresh)).toBeNull();
    expect(heldBack(fresh)).toEqual(["Partition 3 has not joined anything yet, others have."]);
    expect([reached(empty), heldBack(empty)]).toEqual([null, []]);
  });
  it("is held back by the topic that has come least far, and by its slowest shard", () => {
    const slowest = { shard: "air:e/s", watermark: 1_700_000_000_000_000 };
    const topics = [
      { ...topic, topic: "b", frontier: 1_700_000_001_000_000 },
      { ...topic, topic: "a", frontier: 1_700_000_000_000_000, slowest, why: ["shard air:e/s is away"] },
    ];
    expect(heldBack({ ...empty, topics })).toEqual([
      "Topic a of stream air has come least far: it is complete up to 2023-11-14T22:13:20Z.",
      "Its slowest shard is air:e/s, with the watermark 2023-11-14T22:13:20Z.",
      "It waits: shard air:e/s is away.",
    ]);
    const hourly = { ...topic, topic: "h", frontier: 1_699_999_000_000_000 };
    const slow = topics.map((one) => ({ ...one, behind: 2_000_000 }));
    expect(heldBack({ ...empty, topics: [{ ...hourly, slowest }, ...slow] })[0]).toMatch(/^Topic a /);
    expect(heldBack({ ...empty, topics: [{ ...hourly, slowest, behind: 3_000_000 }, ...slow] })[0]).toMatch(/^Topic h /);
    const gone = { ...topic, topic: "g", frontier: 1_600_000_000_000_000 };
    expect(heldBack({ ...empty, topics: [gone, ...topics] })[0]).toMatch(/^Topic a /);
    const [none] = heldBack({ ...empty, topics: [...topics, { ...topic, topic: "c", frontier: null }] });
    expect(none).toBe("Topic c of stream air has come least far: it has no event time yet.");
  });
  it("is held back by nothing once the sources have ended", () => {
    const ended = { ...topic, topic: "a", frontier: END_OF_TIME };
    expect(heldBack({ ...empty, topics: [ended] })).toEqual(["All sources have ended."]);
    const partitions = [END_OF_TIME, 2_000_000].map((frontier, n) => ({ ...partition, partition: n, frontier }));
    expect(heldBack({ ...empty, partitions })).toEqual(["Partition 1 has come least far."]);
  });
  it("needs attention where it is behind", () => {
    const found = attention([], [], [], { ...empty, state: "behind", why: ["partition 1 uses plan 2"] });
    expect(found).toEqual([{ state: "behind", reason: "partition 1 uses plan 2", about: [{ kind: "joiner", name: "joiner" }] }]);
    expect(attention([], [], [], { ...empty, state: "unknown", why: ["nothing yet"] })).toEqual([]);
  });
});

describe("what is silent", () => {
  const told = { doubts: [], activation: null, watermark: null, tuples: null, rates: null, recent: null };
  const gone = { shard: "air:e/s", stream: "air", edge: "e", plan: 1, state: "gone", why: "shard air:e/s is gone", ...told };
  const edges = [{ name: "e", state: "gone", why: [gone.why], failing: {}, shards: [gone] }];
  const why = "the joiner has reported nothing since 2026-03-01T08:29:58Z";
  const topic = { topic: "a", stream: "air", frontier: 5, behind: 0, tuples: 0, bytes: 0, slowest: null, why: [] };
  const joiner = {
    state: "silent", why: [why], reported_ago: 20, plan: 3, partitions: [], topics: [topic], definitions: [], late: 0,
    parked: 0, dead: {},
  };
  const alert = {
    name: "hot", plan: 1, streams: ["air"], bound: null, live: 0, unproven: false, activations: {}, retiring: {}, sql: "",
    state: "degraded", why: [why, gone.why],
  };
  it("is above shards that are gone, once for the joiner and its alerts", () => {
    const found = attention([alert], [], edges, joiner);
    expect(found.map(({ state, reason }) => [state, reason])).toEqual([["silent", why], ["gone", gone.why]]);
    expect(found[0]?.about).toEqual([{ kind: "joiner", name: "joiner" }, { kind: "alert", name: "hot" }]);
  });
  it("is held back by nothing else", () => {
    expect(heldBack(joiner)).toEqual([]);
  });
  it("may be the alerts service, once for all its sinks", () => {
    const sink = { waiting: 0, unread: 0, oldest: null, error: null };
    const silent = "the alerts service has reported nothing since 2026-03-01T08:29:58Z";
    const found = attention([], [], edges, undefined, [
      { ...sink, name: "log", state: "silent", why: [silent] },
      { ...sink, name: "pager", state: "silent", why: [silent] },
    ]);
    expect(found[0]).toEqual({
      state: "silent", reason: silent, about: [{ kind: "sink", name: "log" }, { kind: "sink", name: "pager" }],
    });
    expect(attention([], [], [], undefined, [{ ...sink, name: "log", state: "delivering", why: [] }])).toEqual([]);
    const failing = { ...sink, name: "pager", state: "failing", why: ["sink pager: 3 notifications wait"] };
    expect(attention([], [], [], undefined, [failing])[0]?.state).toBe("failing");
  });
});

describe("latency", () => {
  const alarm = { alert: "a", id: "1", key: [], event_time: 0, row: {}, tuples: {} };
  const record = (time: number, arrived?: number) => ({
    partition: 0, offset: 0, time, value: arrived === undefined ? alarm : { ...alarm, arrived },
  });
  it("is that of the alarms which say when their readings arrived", () => {
    expect(latencyOf([record(900, 100), record(300, 100), record(1000, 500), record(7)])).toEqual({
      median: 500, most: 800, alarms: 3,
    });
    expect(latencyOf([record(7)])).toBeNull();
  });
});
