/** Silences: those that there are, and a form for another one. */
import { useState } from "preact/hooks";
import { Problem, remove, sendDocument } from "../api/client";
import type { MadeSilence, Names, Silence } from "../api/documents";
import { useLive } from "../api/live";
import { useRights } from "../api/rights";
import { ProblemMessage } from "../components/ProblemMessage";
import { Reasons } from "../components/Reasons";
import { Section } from "../components/Section";
import { SilenceForm } from "../components/SilenceForm";
import { State } from "../components/State";
import { Table } from "../components/Table";
import { Time } from "../components/Time";
import { conditions, held } from "../text/silences";
import { iso } from "../text/time";

export function Silences({ alert, keyText }: { alert: string; keyText: string }) {
  const silences = useLive<Silence[]>("/v1/silences");
  const { data: names } = useLive<Names>("/v1/names", ["alerts", "plan"]);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [done, setDone] = useState("");
  const [warnings, setWarnings] = useState<string[]>([]);
  const { operate } = useRights();
  const change = async (work: Promise<string>): Promise<boolean> => {
    setProblem(null);
    setDone("");
    setWarnings([]);
    try {
      setDone(await work);
      return true;
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      setProblem(error);
      return false;
    } finally {
      silences.again();
    }
  };
  return (
    <>
      <div class="title">
        <h1 tabIndex={-1}>Silences</h1>
        <p class="muted">While a silence covers an episode, people are not notified that it opens.</p>
      </div>
      <p role="status">{done}</p>
      {warnings.map((warning) => (
        <p key={warning} class="warning" role="alert">
          <strong>Warning:</strong> {warning}
        </p>
      ))}
      <ProblemMessage problem={problem} />
      <Section title="New silence" note="An episode has to meet all conditions.">
        <SilenceForm
          alerts={names?.alerts ?? []}
          alert={alert}
          keyText={keyText}
          onSend={(body) =>
            change(
              sendDocument<MadeSilence>("/v1/silences", body).then((made) => {
                setWarnings(made.warnings);
                return `The silence lasts until ${iso(made.until)}.`;
              }),
            )
          }
        />
      </Section>
      <Section title="All silences" note="One that is over is shown for a day.">
        <ProblemMessage problem={silences.problem} />
        {(silences.data || !silences.problem) && (
          <Table
            caption="Silences"
            rows={silences.data}
            rowKey={({ id }) => id}
            empty="There is no silence: people are notified of every episode that the configuration of sinks routes to them."
            columns={[
              { heading: "Covers", head: true, cell: (one) => <Reasons why={conditions(one)} /> },
              { heading: "State", cell: ({ state }) => <State state={state} /> },
              { heading: "From", cell: ({ from }) => <Time at={from} seconds /> },
              { heading: "Until", cell: ({ until }) => <Time at={until} seconds /> },
              { heading: "Holds back now", cell: (one) => held(one) },
              { heading: "By", cell: ({ by }) => by || "–" },
              { heading: "Comment", wide: true, cell: ({ comment }) => comment || "–" },
              {
                heading: "End",
                cell: (one) =>
                  one.state !== "over" && (
                    <button
                      type="button"
                      class="quiet"
                      disabled={!operate}
                      aria-label={`End the silence of ${conditions(one).join(", ")}`}
                      onClick={() => void change(remove(`/v1/silences/${one.id}`).then(() => "The silence has ended."))}
                    >
                      End
                    </button>
                  ),
              },
            ]}
          />
        )}
      </Section>
    </>
  );
}
