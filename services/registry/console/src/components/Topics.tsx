/** The topics of a stream: what edges publish to each, who reads it, and what the joiner keeps of it. */
import type { ComponentChildren } from "preact";
import type { JoinerDocument, SharedTopic, TopicEntry, TopicReader } from "../api/documents";
import { useLive } from "../api/live";
import { whole } from "../text/numbers";
import { links } from "../text/route";
import { omission, readerOmission, readerText } from "../text/topics";
import { ProblemMessage } from "./ProblemMessage";
import { Reached } from "./Reached";
import { Section } from "./Section";
import { Table } from "./Table";

export function Topics({ stream }: { stream: string }) {
  const topics = useLive<SharedTopic[]>(`/v1/streams/${encodeURIComponent(stream)}/topics`, ["streams", "alerts", "plan"]);
  const joiner = useLive<JoinerDocument>("/v1/joiner", ["plan"]);
  return (
    <Section title="Topics" note="What edges publish, and who reads it. Readers with similar needs share a topic.">
      <ProblemMessage problem={topics.problem} />
      {topics.data?.length === 0 && <p class="empty">The stream has no topic, because nothing reads it.</p>}
      {topics.data === undefined && topics.problem === null && <p class="muted">Loading …</p>}
      {topics.data?.map((topic) => (
        <Topic key={topic.topic} topic={topic} joiner={joiner.data} />
      ))}
    </Section>
  );
}

function Topic({ topic, joiner }: { topic: SharedTopic; joiner: JoinerDocument | undefined }) {
  const kept = joiner?.topics.find((one) => one.topic === topic.topic);
  return (
    <article class="explanation" aria-label={`Topic ${topic.topic}`}>
      <h3>
        <code>{topic.topic}</code>
      </h3>
      <dl class="facts">
        {topic.derived !== null && (
          <Fact name="Derived stream">
            <a href={links.stream(topic.derived)}>{topic.derived}</a>
          </Fact>
        )}
        <Fact name="Record key">{topic.key.join(", ") || "none: all tuples are in partition 0"}</Fact>
        <Fact name="Columns">{topic.columns.join(", ") || "key and time only"}</Fact>
        {kept && (
          <Fact name="Kept by the joiner">
            {whole(kept.tuples)} live tuples, complete up to <Reached at={kept.frontier} />
          </Fact>
        )}
        <Fact name="Edges publish">
          {topic.entries.length === 0 && "nothing"}
          {topic.entries.map((entry) => (
            <Entry key={JSON.stringify(entry, (_, value) => (typeof value === "bigint" ? `${value}` : value))} entry={entry} />
          ))}
        </Fact>
      </dl>
      <Table<TopicReader>
        caption={`Readers of ${topic.topic}`}
        rows={topic.readers}
        rowKey={({ kind, name, plan, source }) => `${kind} ${name} ${plan} ${source}`}
        empty="No alert reads this topic, and no subscriber."
        columns={[
          {
            heading: "Reader",
            head: true,
            cell: (reader) =>
              reader.kind === "alert" ? <a href={links.alert(reader.name)}>{readerText(reader)}</a> : readerText(reader),
          },
          { heading: "Filter", wide: true, cell: ({ filter }) => (filter === null ? "every tuple" : <code>{filter}</code>) },
          { heading: "Omission interval", cell: readerOmission },
        ]}
      />
    </article>
  );
}

function Entry({ entry }: { entry: TopicEntry }) {
  const rule = omission(entry);
  return (
    <div>
      {entry.filter === null ? "every reading" : <code>{entry.filter}</code>}
      {rule !== null && (
        <>
          {"; value "}
          <code>{entry.value}</code>. {rule}
        </>
      )}
    </div>
  );
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
