/** What the joiner keeps for an alert: each definition's live state beside its bound. */
import type { JoinerDefinition, JoinerDocument } from "../api/documents";
import { useLive } from "../api/live";
import { bytes, whole } from "../text/numbers";
import { Bound } from "./Bound";
import { ProblemMessage } from "./ProblemMessage";
import { Section } from "./Section";
import { Table } from "./Table";

export function JoinerState({ alert }: { alert: string }) {
  const { data, problem } = useLive<JoinerDocument>("/v1/joiner", ["alerts", "plan"]);
  return (
    <Section title="In the joiner" note="A replaced definition runs beside its successor for a while.">
      <ProblemMessage problem={problem} />
      {(data || !problem) && (
        <Table<JoinerDefinition>
          caption="Definitions in the joiner"
          rows={data?.definitions.filter((one) => one.alert === alert)}
          rowKey={({ definition }) => definition}
          empty="The joiner evaluates no definition of this alert."
          columns={[
            { heading: "Definition", head: true, cell: ({ definition }) => definition },
            { heading: "Live state", number: true, cell: ({ live, bound }) => <Bound live={live} bound={bound} /> },
            { heading: "Memory", number: true, cell: (one) => bytes(one.bytes) },
            { heading: "Alarms of the alert", number: true, cell: ({ alarms }) => whole(alarms) },
            { heading: "Tuples that came too late", number: true, cell: ({ missed }) => whole(missed) },
          ]}
        />
      )}
    </Section>
  );
}
