/** An alert: its state, explanation and plan, episodes and alarms, and the commands that change it. */
import type { AlertDocument, ExplainedSource } from "../api/documents";
import { useExplained } from "../api/explained";
import { useLive } from "../api/live";
import { Alarms } from "../components/Alarms";
import { Bound } from "../components/Bound";
import { Commands } from "../components/Commands";
import { Explanation } from "../components/Explanation";
import { JoinerState } from "../components/JoinerState";
import { Links } from "../components/Links";
import { PhysicalPlan } from "../components/PhysicalPlan";
import { ProblemMessage } from "../components/ProblemMessage";
import { Reasons } from "../components/Reasons";
import { Section } from "../components/Section";
import { Sharing } from "../components/Sharing";
import { Since } from "../components/Since";
import { State } from "../components/State";
import { Table } from "../components/Table";
import { Time } from "../components/Time";

const NO_SOURCES: ExplainedSource[] = [];

export function Alert({ name }: { name: string }) {
  const path = `/v1/alerts/${encodeURIComponent(name)}`;
  const { data: alert, problem, again } = useLive<AlertDocument>(path, ["alerts", "plan"]);
  const explained = useExplained(alert?.sql);
  const query = explained.queries.find((one) => one.name === alert?.name) ?? explained.queries[0];
  return (
    <>
      <div class="title">
        <h1 tabIndex={-1}>Alert {name}</h1>
        {alert && <State state={alert.state} />}
        {alert && <Commands alert={alert} onDone={again} />}
      </div>
      <ProblemMessage problem={problem} />
      {alert && (
        <>
          <Facts alert={alert} />
          <Alarms name={name} sources={query?.streams ?? NO_SOURCES} times={alert.times ?? []} keyTimes={alert.key_times ?? []} />
          <div class="columns">
            <Section title="Explanation">
              <ProblemMessage problem={explained.problem} />
              {explained.mistakes.map(({ what }) => (
                <p key={what} class="problem">
                  {what}
                </p>
              ))}
              {query && <Explanation query={query} />}
              {explained.busy && !query && <p class="muted">Loading …</p>}
            </Section>
            <Section title="SQL">
              <pre class="sql">{alert.sql}</pre>
            </Section>
          </div>
          <PhysicalPlan alert={alert.name} />
          {alert.sharing && <Sharing alert={alert.name} sharing={alert.sharing} />}
          <JoinerState alert={alert.name} />
          <Section title="Active from" note="The event time from which each shard serves the alert.">
            <Table
              caption="Activations"
              rows={Object.entries(alert.activations)}
              rowKey={([shard]) => shard}
              empty={unserved(alert)}
              columns={[
                { heading: "Shard", head: true, cell: ([shard]) => shard },
                { heading: "Plan", number: true, cell: ([, { plan }]) => plan },
                { heading: "Event time", cell: ([, activation]) => <Since at={activation.event_time} /> },
              ]}
            />
          </Section>
        </>
      )}
    </>
  );
}

/** Why no shard serves an alert. Shards that are gone serve none, whatever they did before. */
function unserved({ state }: AlertDocument): string {
  if (state === "paused") return "The alert is paused, so no shard serves it.";
  if (state === "starting") return "No shard serves this alert yet.";
  return "No shard is listed now: the shards of its streams are gone or have ended. They come back with their next reading.";
}

function Facts({ alert }: { alert: AlertDocument }) {
  const retiring = Object.entries(alert.retiring);
  return (
    <>
      {alert.why.length > 0 && (
        <div class="panel why">
          <strong>Why {alert.state}:</strong> <Reasons why={alert.why} />
        </div>
      )}
      <dl class="figures">
        <div>
          <dt>Live state</dt>
          <dd>
            <Bound live={alert.live} bound={alert.bound} bar />
          </dd>
        </div>
        <div>
          <dt>Streams</dt>
          <dd>
            <Links names={alert.streams} to="stream" />
          </dd>
        </div>
        <div>
          <dt>Plan</dt>
          <dd>{alert.plan}</dd>
        </div>
        {alert.history?.event_time != null && (
          <div>
            <dt>History from</dt>
            <dd>
              <Time at={alert.history.event_time} />
            </dd>
          </div>
        )}
        {alert.unproven && (
          <div>
            <dt>Certificate</dt>
            <dd>
              <span class="state warn">
                <span class="sign" aria-hidden="true" />
                not proved
              </span>
            </dd>
          </div>
        )}
      </dl>
      {retiring.length > 0 && (
        <p>
          Old definitions that still run:{" "}
          {retiring.map(([id, why]) => (
            <span key={id}>
              <code>{id}</code> ({why}){" "}
            </span>
          ))}
        </p>
      )}
    </>
  );
}
