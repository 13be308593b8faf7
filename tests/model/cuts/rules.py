"""The rules of the protocol of cuts. Each can be switched off; `BROKEN` says what a process then does."""

from __future__ import annotations

# Rule: what holds | what happens without it.
_TEXTS = {
    # One chain of cuts.
    "commit_first": "records of a cut are sent once the commit with the cut is durable | when it is drawn",
    "one_pending": "the next cut is drawn when Kafka has all records of the last | at any time",
    "done_back": "the commit's done is the first reading that Kafka doesn't have | the offset of the cut",
    "skip_sent": "a restart leaves out what the last cut sent (offset < c, time < W) | sends it again",
    "same_cut": "a restart sends the commit's cut again, as it was | draws another with its number",
    "replay_first": "it does so when it has read again all before the cut's offset | at once",
    "cut_after_replay": "a restart draws a cut, or changes queries, behind the last cut's offset | before it",
    "floor_W": "W never falls, also over a restart | begins anew with the watermark",
    "number": "the place of a record is the number of its cut | the cut's offset",
    "fixed_parts": "the commit says into how many parts a cut is divided | drawn whenever it is sent",
    "part_order": "the parts of a cut have places of their own | the same place",
    "progress_cut": "progress is W of the last cut that was sent | the watermark",
    "progress_behind": "progress is sent after the cut's records | before them",
    "spool_first": "spooled records are sent before what a restart makes again | after it",
    "spool_uncommitted": "a spooled record of a shard that can move isn't done | is done",
    # Commits of a shard that moves.
    "fenced": "a commit of a run that has lost its shard is refused | replaces the new owner's",
    "unknown_ends": "a run whose commit has no answer leaves the group, so a late one is refused | goes on",
    # Plans.
    "full_at_change": "changed queries are taken up after a full cut that Kafka has | with open panes",
    "version_of_cut": "a cut's records carry the version under which it was drawn | the version when sent",
    "takeover_plan": "a shard is taken up with a plan as new as its commit's | with any plan",
    "anew_forgets": "a shard forgets W and watermark when time begins anew | keeps W",
    # Joiner.
    "drop_taken": "the joiner drops places not above the greatest taken | takes all",
    "one_checkpoint": "taken places, panes and topic offsets are one checkpoint | offsets are stored later",
    "park": "the joiner keeps a record until it has the plan that the record needs | takes it at once",
    "form": "this is the plan by whose queries it was built | the plan of its version",
    "final_versioned": "progress below the version that lists a shard doesn't count | counts",
    # Several chains on a shard.
    "own_done": "a chain leaves out readings before its own done | sends what is read again for other chains",
    "least_W": "a restart's watermark begins at the least W of its chains | at the greatest",
    "change_waits": "reading stops for a change when all chains have built their cuts | before",
    # Raw tuples before and after cuts.
    "begins_caught_up": "a chain begins in place of raw tuples at the source's end | anywhere",
    "raw_fence": "a fence is in Kafka before: the joiner drops raw tuples from before its number | no fence",
    "fence_at_arrival": "a raw tuple is compared with the fence when it arrives | when its plan is known",
    "begin_settled": "the chain's first commit is made when Kafka has all raw tuples | at any time",
    "begin_waits": "reading waits until the chain's first commit is durable | goes on",
    "full_before_raw": "raw tuples follow a full cut that Kafka has | follow open panes",
    # Sources that lose readings.
    "gap_builds": "a cut is built when reading goes on behind its offset | waits for readings that are gone",
    "anew_c": "of a source made anew, offsets sent begin again at 0 | stay",
    "anew_cut": "the pending cut keeps its source, and is built when that ends | has the new one's readings",
    "anew_place": "and the place of the pending cut stays | moves with the source's beginning",
}  # fmt: skip

RULES = {rule: text.split(" | ")[0] for rule, text in _TEXTS.items()}
BROKEN = {rule: text.split(" | ")[1] for rule, text in _TEXTS.items()}
