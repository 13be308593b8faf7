/** Types of the documents of the registry's HTTP API, as far as the console reads them. Times are microseconds. */

/** A whole number. Numbers beyond 2^53 are read as bigint, so that every digit is shown. */
export type Whole = number | bigint;

export interface Activation {
  plan: number;
  event_time: Whole;
}

export interface AlertDocument {
  name: string;
  state: string;
  why: string[];
  plan: number;
  streams: string[];
  bound: Whole | null;
  live: Whole;
  unproven: boolean;
  activations: Record<string, Activation>;
  retiring: Record<string, string>;
  history?: { from: unknown; event_time: Whole | null; shards: Record<string, unknown> };
  /** Of a single alert: the columns of its rows that are times. */
  times?: string[];
  /** Of a single alert: the positions of the values in the keys of its alarms that are times. */
  key_times?: number[];
  /** Of a single alert: the topic of each of its sources, with all readers of the topic. */
  sharing?: SourceTopic[];
  sql: string;
}

export interface SourceTopic {
  source: string | null;
  stream: string;
  topic: string;
  readers: TopicReader[];
}

export interface ShardDocument {
  shard: string;
  stream: string;
  edge: string;
  state: string;
  why: string;
  /** What is doubtful about its newest readings. */
  doubts: string[];
  plan: number | null;
  activation: Whole | null;
  watermark: Whole | null;
  /** Null as long as the edge is of an older release. */
  tuples: Decisions<Whole> | null;
  rates: Decisions<number> | null;
  /** Readings of the last minutes; null if not known. */
  recent: { seconds: number; tuples: Decisions<number> } | null;
}

/** Readings by the decision of the edge. */
export type Decisions<T> = Partial<Record<string, T>>;

export interface SubscriberDocument {
  id: string;
  consumer: string;
  topic: string;
  filter: string | null;
  plan: number;
  seconds: number;
  expires_in: number;
}

export interface StreamDocument {
  name: string;
  kind: string;
  why: string[];
  plan: number;
  topics: string[];
  alerts: string[];
  subscribers: SubscriberDocument[];
  tuples: Decisions<Whole> | null;
  rates: Decisions<number> | null;
  retained: number | null;
  shards: ShardDocument[];
  sql: string;
}

/** A rule by which edges publish to a topic; `interval` 0 is no omission. */
export interface TopicEntry {
  filter: string | null;
  key: string[];
  value: string | null;
  sides: "both" | "above" | "below" | null;
  interval: Whole;
  /** 0: edges decide at once, and omit nothing. */
  max_delay: Whole | null;
}

export interface TopicReader {
  kind: "alert" | "subscriber";
  name: string;
  plan: number;
  retiring: boolean;
  source: string | null;
  filter: string | null;
  interval: Whole;
  max_delay: Whole | null;
  /** Why it needs every tuple that passes its filter; null if some may be omitted. */
  needs_all: string | null;
}

export interface SharedTopic {
  topic: string;
  derived: string | null;
  key: string[];
  columns: string[];
  entries: TopicEntry[];
  readers: TopicReader[];
}

export interface JoinerPartition {
  partition: number;
  plan: number;
  time: Whole;
  frontier: Whole | null;
  behind: Whole | null;
  tuples: Whole;
  bytes: Whole;
  parked: Whole;
}

export interface JoinerTopic {
  topic: string;
  stream: string;
  frontier: Whole | null;
  behind: Whole | null;
  tuples: Whole;
  bytes: Whole;
  slowest: { shard: string; watermark: Whole } | null;
  why: string[];
}

export interface JoinerDefinition {
  /** As `alert@version`. */
  definition: string;
  alert: string;
  live: Whole;
  bound: Whole | null;
  bytes: Whole;
  alarms: Whole;
  missed: Whole;
}

export interface JoinerDocument {
  state: string;
  why: string[];
  /** Seconds since its newest report. */
  reported_ago: number | null;
  /** Missing in answers of an older registry. */
  process?: string | null;
  plan: number;
  partitions: JoinerPartition[];
  topics: JoinerTopic[];
  definitions: JoinerDefinition[];
  late: Whole;
  parked: Whole;
  dead: Record<string, Whole>;
}

/**
 * A sink of notifications; `oldest`: when the oldest notification that waits was written. `unread`: events of episodes
 * that its queue has not read yet.
 */
export interface SinkDocument {
  name: string;
  state: string;
  why: string[];
  waiting: number;
  unread: number;
  oldest: Whole | null;
  error: string | null;
}

export interface EdgeDocument {
  name: string;
  state: string;
  why: string[];
  /** Sources that can't be read, with the reasons. */
  failing: Record<string, string>;
  shards: ShardDocument[];
}

export interface PlanDocument {
  version: number;
  newest: boolean;
  definitions: string[];
  retiring: string[];
  topics: string[];
  shards: number;
  made: Whole;
  /** First lines of statements, shards that came or went, and further reasons. */
  why: string[];
}

export interface ExplainedSource {
  alias: string;
  stream: string;
  key: string[];
  predicate: string | null;
  value: string | null;
  omission: { interval: Whole | null; sides: string | null; certificate: string | null; reason: string };
  most_omitted?: number;
  selectivity?: { share: number; estimated_from: string };
  advice?: string[];
  /** Without it, the omission says what is sent. `text`: sentences for people. */
  sent?: { form: string; text: string[] };
  sharing?: { topic: string; reason: string };
}

export interface Memory {
  verdict: string;
  bound: Whole | null;
  formula: string | null;
  reason: string;
  repairs: string[];
}

/** The alert in service that a query would replace: differences, and how the new definition takes over. */
export interface Replacement {
  plan: number;
  changes: string[];
  transition: string[];
}

export interface ExplainedQuery {
  name: string;
  kind: string;
  accepted: boolean;
  streams: ExplainedSource[];
  memory: Memory;
  warnings?: string[];
  history?: string;
  replaces?: Replacement;
}

/** A column's value in a reading or a row. */
export type Value = string | number | bigint | boolean | null | Value[] | { [name: string]: Value };
export type Reading = Record<string, Value>;

export interface Alarm {
  alert: string;
  id: string;
  key: Value[];
  event_time: Whole;
  row: Reading;
  tuples: Record<string, Reading>;
  arrived?: Whole;
  late?: boolean;
  incomplete?: boolean;
  withdrawn?: boolean;
}

export interface Episode {
  alert: string;
  key: Value[];
  episode: string;
  event: string;
  start: Whole;
  end: Whole;
  alarms: Whole;
  row: Reading;
  severity: string | null;
  labels: Record<string, string>;
}

/** A silence that was just made. `warnings`: severities and labels that no alert has. */
export interface MadeSilence extends Silence {
  warnings: string[];
}

/** An episode has to meet all conditions; null, or no label, is met by every episode. */
export interface Silence {
  id: string;
  alerts: string[] | null;
  severities: string[] | null;
  labels: Record<string, string[]>;
  keys: Value[][] | null;
  from: Whole;
  until: Whole;
  by: string;
  comment: string;
  made: Whole;
  state: string;
  /** Openings that it holds back now, one for each sink, and the open episodes of these. */
  held_notifications: number;
  held_episodes: number;
}

export interface Acknowledgement {
  episode: string;
  by: string;
  comment: string;
  made: Whole;
  until: Whole;
}

/** A record of a topic. */
export interface TopicRecord<T> {
  partition: number;
  offset: Whole;
  time: Whole;
  value: T;
}

/** The newest records of topics. `complete`: all that the topics still keep was looked through. */
export interface Records<T> {
  records: TopicRecord<T>[];
  complete: boolean;
  read: number;
  unreadable: number;
}

export interface DeadLetter {
  partition: number;
  offset: Whole;
  time: Whole;
  reason: string;
  error: string | null;
  service: string | null;
  source: string | null;
  source_partition: number | null;
  source_offset: Whole | null;
  /** Missing in answers of an older registry. */
  edge?: string | null;
  sink: string | null;
  bytes: number;
  text: string | null;
  base64: string | null;
}

export interface DeadLetters {
  records: DeadLetter[];
  reasons: Record<string, number>;
  complete: boolean;
  read: number;
}

/** The readings of a stream in a trial; `from` and `to` are event times. */
export interface TrialInput {
  rows: number;
  retained: number;
  omitted: number;
  refused: number;
  from: Whole | null;
  to: Whole | null;
  complete: boolean;
}

/** The rows of a query on the newest readings, in the order of `columns`. `times`: the columns that are times. */
export interface TrialResult {
  query: string;
  columns: string[];
  times: string[];
  rows: Value[][];
  row_count: number;
  truncated: boolean;
  inputs: Record<string, TrialInput>;
  note: string;
  notices: string[];
}

export interface Names {
  streams: { name: string; kind: string; columns: { name: string; type: string; key: boolean }[]; time: string | null }[];
  alerts: string[];
  functions: { name: string; parameters: string[] }[];
  patterns: string[];
  builtin: string[];
  keywords: string[];
}

/** The result of one statement. */
export interface Outcome {
  statement: string;
  result: string;
  kind?: string;
  name?: string;
  notices?: string[];
}

/** A mistake in SQL; line and column begin with 1. */
export interface Mistake {
  line: number | null;
  column: number | null;
  what: string;
  hint: string | null;
}

/** A problem document (RFC 9457). */
export interface ProblemDocument {
  type?: string;
  title?: string;
  detail?: string;
  hint?: string | null;
  errors?: Mistake[];
  repairs?: string[];
  query?: ExplainedQuery;
}
