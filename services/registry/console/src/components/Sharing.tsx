/** The topics that serve an alert, with the other readers for which edges publish more than it needs. */
import type { SourceTopic } from "../api/documents";
import { links } from "../text/route";
import { needy, readerOmission, readerText } from "../text/topics";
import { Section } from "./Section";
import { Table } from "./Table";

export function Sharing({ alert, sharing }: { alert: string; sharing: SourceTopic[] }) {
  return (
    <Section title="Topics" note="Where the alert reads its streams. Edges publish to a topic what one of its readers needs.">
      <Table<SourceTopic>
        caption="Topics of the alert"
        rows={sharing}
        rowKey={({ source, topic }) => `${source} ${topic}`}
        empty="The alert reads no topic."
        columns={[
          {
            heading: "Stream",
            head: true,
            cell: ({ source, stream }) => (
              <>
                <a href={links.stream(stream)}>{stream}</a>
                {source !== null && source !== stream && ` as ${source}`}
              </>
            ),
          },
          { heading: "Topic", cell: ({ topic }) => <code>{topic}</code> },
          { heading: "Readers", number: true, cell: ({ readers }) => readers.length },
          {
            heading: "Others that need every reading",
            wide: true,
            cell: ({ readers }) => <Needy alert={alert} readers={readers} />,
          },
        ]}
      />
    </Section>
  );
}

function Needy({ alert, readers }: { alert: string; readers: SourceTopic["readers"] }) {
  const found = needy(readers, alert);
  if (found.length === 0) return <span class="muted">none</span>;
  return (
    <ul class="inline">
      {found.map((reader) => (
        <li key={`${reader.kind} ${reader.name} ${reader.plan} ${reader.source}`}>
          {reader.kind === "alert" ? <a href={links.alert(reader.name)}>{readerText(reader)}</a> : readerText(reader)}{" "}
          {readerOmission(reader)}
          {reader.filter !== null && (
            <>
              {" "}
              of <code>{reader.filter}</code>
            </>
          )}
        </li>
      ))}
    </ul>
  );
}
