/** Episodes of an alert: which are silenced, and who looks after them. */
import { useEffect, useState } from "preact/hooks";
import { remove, Problem, sendDocument } from "../api/client";
import type { Acknowledgement, Episode, Records, Silence, TopicRecord, Whole } from "../api/documents";
import { onEvent } from "../api/events";
import { useLive } from "../api/live";
import { useRights } from "../api/rights";
import { token } from "../api/token";
import { keyShown } from "../text/keys";
import { whole } from "../text/numbers";
import { links } from "../text/route";
import { covers, keyText, opening } from "../text/silences";
import { iso } from "../text/time";
import { Confirm } from "./Confirm";
import { Lacking } from "./Lacking";
import { ProblemMessage } from "./ProblemMessage";
import { RowText } from "./RowText";
import { Section } from "./Section";
import { State } from "./State";
import { Table } from "./Table";
import { Time } from "./Time";

interface Properties {
  name: string;
  /** The columns of the alert's rows that are times. */
  times: string[];
  /** The positions of the values in its keys that are times. */
  keyTimes: number[];
}

export function Episodes({ name, times, keyTimes }: Properties) {
  const path = `/v1/alerts/${encodeURIComponent(name)}/episodes?limit=50`;
  const episodes = useLive<Records<Episode>>(path, ["episode"], name);
  const silences = useLive<Silence[]>("/v1/silences");
  const acknowledgements = useLive<Acknowledgement[]>("/v1/acknowledgements");
  const [asking, setAsking] = useState<Episode | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [done, setDone] = useState("");
  const change = async (work: Promise<unknown>, text: string): Promise<void> => {
    setProblem(null);
    setDone("");
    try {
      await work;
      setDone(text);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      setProblem(error);
    }
    acknowledgements.again();
  };
  const named = ({ key }: Episode): string => keyShown(key, keyTimes) || "–";
  const looked = new Map(acknowledgements.data?.map((one) => [one.episode, one]));
  return (
    <Section title="Episodes" note="Alarms of one key that follow each other closely. Open ones first, and the newest of these first.">
      <Announced name={name} keyTimes={keyTimes} />
      <Lacking right="operate" />
      <p role="status" class="muted">
        {done}
      </p>
      <ProblemMessage problem={problem} />
      {episodes.problem ? (
        <ProblemMessage problem={episodes.problem} />
      ) : (
        <Table
          caption="Episodes"
          rows={episodes.data && inOrder(newestOfEach(episodes.data.records))}
          rowKey={({ episode }) => episode}
          empty="No episode is in the topic, which keeps a week. One opens with the first alarm of a key."
          columns={[
            { heading: "Key", head: true, cell: named },
            {
              heading: "State",
              cell: (episode) => (
                <EpisodeState
                  episode={episode}
                  opened={openedAt(episodes.data?.records ?? [], episode)}
                  silences={silences.data ?? []}
                />
              ),
            },
            { heading: "First alarm (event time)", cell: ({ start }) => <Time at={start} /> },
            { heading: "Latest alarm (event time)", cell: ({ end }) => <Time at={end} /> },
            { heading: "Alarms", number: true, cell: ({ alarms }) => whole(alarms) },
            { heading: "Severity", cell: ({ severity }) => severity ?? "–" },
            { heading: "First row", wide: true, cell: ({ row }) => <RowText row={row} times={times} /> },
            {
              heading: "Looked after",
              wide: true,
              cell: (episode) => (
                <LookedAfter
                  episode={episode}
                  named={named(episode)}
                  acknowledgement={looked.get(episode.episode)}
                  onAcknowledge={() => setAsking(episode)}
                  onTakeBack={() =>
                    void change(
                      remove(`/v1/episodes/${episode.episode}/acknowledgement`),
                      `The acknowledgement of key ${named(episode)} is taken back.`,
                    )
                  }
                />
              ),
            },
          ]}
        />
      )}
      {asking && (
        <Acknowledge
          named={named(asking)}
          onCancel={() => setAsking(null)}
          onConfirm={(body) => {
            setAsking(null);
            void change(
              sendDocument(`/v1/episodes/${asking.episode}/acknowledgement`, body),
              `The episode of key ${named(asking)} is acknowledged.`,
            );
          }}
        />
      )}
    </Section>
  );
}

/** The newest record of each episode. */
function newestOfEach(records: TopicRecord<Episode>[]): Episode[] {
  const found = new Map<string, Episode>();
  for (const { value } of records) if (!found.has(value.episode)) found.set(value.episode, value);
  return [...found.values()];
}

/** Open episodes first; each part in the order of their first alarms, the newest first. */
function inOrder(episodes: Episode[]): Episode[] {
  const rank = ({ event }: Episode): number => (event === "closed" ? 1 : 0);
  return episodes.sort((a, b) => rank(a) - rank(b) || Number(BigInt(b.start) - BigInt(a.start)));
}

/** When the opening of an episode was written; undefined if its record isn't among these. */
function openedAt(records: TopicRecord<Episode>[], { episode }: Episode): Whole | undefined {
  return records.find(({ value }) => value.episode === episode && value.event === "opened")?.time;
}

interface EpisodeStateProperties {
  episode: Episode;
  opened: Whole | undefined;
  silences: Silence[];
}

const OPENING = {
  held: "its opening is held back",
  sent: "its opening was sent before, so its close will be sent, too",
};

function EpisodeState({ episode, opened, silences }: EpisodeStateProperties) {
  const open = episode.event !== "closed";
  const silence = open ? silences.find((one) => covers(one, episode)) : undefined;
  const what = silence && opening(episode, opened, silences);
  return (
    <>
      <State state={open ? "open" : episode.event} />
      {silence && (
        <div>
          <a href={links.silences}>
            <State state="silenced" />
          </a>{" "}
          until <Time at={silence.until} />
          {what && <>; {OPENING[what]}</>}
        </div>
      )}
    </>
  );
}

interface LookedAfterProperties {
  episode: Episode;
  /** Its key. */
  named: string;
  acknowledgement: Acknowledgement | undefined;
  onAcknowledge: () => void;
  onTakeBack: () => void;
}

function LookedAfter({ episode, named, acknowledgement, onAcknowledge, onTakeBack }: LookedAfterProperties) {
  const { operate } = useRights();
  const of = ` the episode of key ${named}`;
  return (
    <>
      {acknowledgement && (
        <p>
          by {acknowledgement.by || "somebody"}
          {acknowledgement.comment && <>: {acknowledgement.comment}</>}
        </p>
      )}
      {operate && episode.event !== "closed" && (
        <div class="actions">
          {acknowledgement ? (
            <button type="button" class="quiet" aria-label={`Take back the acknowledgement of${of}`} onClick={onTakeBack}>
              Take back
            </button>
          ) : (
            <button type="button" class="quiet" aria-label={`Acknowledge${of}`} onClick={onAcknowledge}>
              Acknowledge
            </button>
          )}
          <a class="button quiet" href={links.silence(episode.alert, keyText(episode.key))} aria-label={`Silence key ${named}`}>
            Silence
          </a>
        </div>
      )}
    </>
  );
}

interface AcknowledgeProperties {
  /** The key of the episode. */
  named: string;
  onConfirm: (body: { by: string; comment: string }) => void;
  onCancel: () => void;
}

function Acknowledge({ named, onConfirm, onCancel }: AcknowledgeProperties) {
  const [by, setBy] = useState("");
  const [comment, setComment] = useState("");
  return (
    <Confirm
      title={`Acknowledge the episode of key ${named}?`}
      action="Acknowledge"
      danger={false}
      onCancel={onCancel}
      onConfirm={() => onConfirm({ by: by.trim(), comment: comment.trim() })}
    >
      <p>Others see that you look after it. Notifications go on.</p>
      {token() === null && <Field name="Your name" longest={100} value={by} onInput={setBy} />}
      <Field name="Comment" longest={1000} value={comment} onInput={setComment} />
    </Confirm>
  );
}

interface FieldProperties {
  name: string;
  longest: number;
  value: string;
  onInput: (text: string) => void;
}

function Field({ name, longest, value, onInput }: FieldProperties) {
  return (
    <label class="field">
      {name}
      <input type="text" maxLength={longest} value={value} onInput={(event) => onInput(event.currentTarget.value)} />
    </label>
  );
}

/** Tells screen readers of a new episode. */
function Announced({ name, keyTimes }: { name: string; keyTimes: number[] }) {
  const [text, setText] = useState("");
  useEffect(
    () =>
      onEvent((kind, data) => {
        if (kind !== "episode") return;
        const episode = data as Episode;
        if (episode.alert === name && episode.event === "opened") {
          setText(`New episode of key ${keyShown(episode.key, keyTimes)} at ${iso(episode.start)}`);
        }
      }),
    [name, keyTimes.join()],
  );
  return (
    <p class="hidden" aria-live="polite">
      {text}
    </p>
  );
}
