"""Random-schedule simulation of Tamis' fleet protocol: edges, registry, joiner and the topics between them.

    python -m tests.model.fleet_sim --runs 5000 --seed 1               every rule on; prints violations, of which none are expected
    python -m tests.model.fleet_sim --runs 5000 --seed 1 --off park    without a rule: its violations show that the check sees it
    python -m tests.model.fleet_sim --runs 20000 --table               each rule off in turn, until 10 runs are violated
    python -m tests.model.fleet_sim --runs 50000 --smallest --off park the shortest violating schedule, as a trace

A step is one atomic action of one process (read a tuple, send a record, commit, ...); a crash may fall between any two.
Topics keep order within a partition and none between partitions. At the end all that still lives is repaired and drained,
and the alarms are compared with the full join over all source tuples (`Sim.judge`).
"""

import argparse
import random
import sys
import time
from collections import Counter, namedtuple

INF = float("inf")
END = 10**6  # a source's last word: its watermark passes everything
FAR = 10**5  # the event time of a reading from the future, which no clock allows
STALL = 60  # max_stall, in steps
FETCH = 80  # steps that a fetch over a slow link takes
PATIENCE = 40  # steps without a reading after which an edge looks for the end of its source

RULES = {  # rule | what happens without it
    "own_state": "omission state is per shard, entry and key | shared by the shards of an edge",
    "fresh_entry": "a new or changed entry starts without brackets | takes over those of the entry that it replaces",
    "restart_served": "an entry that comes to serve a new definition starts anew | runs on",
    "flush_ended": "an entry that ends publishes what it holds | forgets it",
    "shard_activates": "a shard sets its own activation: greatest event time read + 1 | the registry sets one time for all",
    "durable_high": "the commit carries the greatest event time read | it is known since the last start only",
    "commit_first": "progress is sent only after a commit made when it was computed | at any time",
    "ack_after_commit": "a plan is acknowledged after a commit under it | as soon as it is obeyed",
    "takeover_plan": "a shard is taken up only with a plan as new as its commit's | with any plan",
    "wm_anew": "a restart rebuilds the watermark from the replay | starts from the commit's greatest event time",
    "max_ahead": "a reading further ahead of the clock than max_ahead is refused and moves nothing | is taken",
    "progress_behind": "progress = min(watermark, oldest held), sent behind the tuples | the watermark, sent ahead of them",
    "spool_uncommitted": "the commit of a shard that can move passes published tuples only | also spooled ones",
    "ordered_redelivery": "unacknowledged tuples come again in order and before new ones | in any order",
    "fetch_kept": "a fetch under way goes on however long it takes | begins anew where nothing came for a while",
    "refused_stays": "what a full disk refuses to spool stays with its shard | is done with",
    "reserve": "on a full disk there is room to commit and to delete what is sent | for nothing",
    "park": "records above the joiner's plan version wait for that plan | are taken at once",
    "greatest_version": "of a duplicate the greatest version counts | the first",
    "join_again": "a duplicate is stored once but joined again | is not joined again",
    "make_before_break": "the old definition of a replaced alert runs on beside the new one | ends as the new one begins",
    "least_version": "a combination counts for the definition in force at its least version | for all from then on",
    "publish_held": "a shard publishes what it holds before it takes up the plan that replaces an alert | holds it on",
    "settled_first": "it reads on only after a commit under that plan, made when all before it is safe | at once",
    "replay_version": "what a restart reads again counts under the commit's plan, and goes out whole | under the new one",
    "all_told": "an old definition ends when each shard has told progress under the new plan | has acknowledged it",
    "none_waits": "and no tuple from before that plan waits for a partner in the joiner | whether or not one does",
    "finals_taken": "and the joiner has taken the finals of all shards that are gone | whether or not it has",
    "listed_only": "a shard publishes only under a plan that lists it | at once",
    "final_in_band": "a shard leaves the frontier by a final record in each partition | by a plan without it",
    "final_versioned": "progress and finals of a version below the listing do not count | they do",
    "gone_follows": "a stream without shards takes its partners' frontier | keeps its own",
    "first_waits": "one that never had a shard, max_stall behind their newest tuple | at once",
    "every_plan": "the joiner reads every plan version | compaction may hide some",
    "fresh_version": "a restarted registry goes on above the greatest version in any partition | in the one that it reads",
}
OPTIONS = {
    "no_check": "the joiner counts tuples of every version for every definition in its plan",
    "run_on": "instead of publishing what it holds, an ended entry goes on deciding it",
}

Entry = namedtuple("Entry", "filt okey val L sides n")  # n: the newest definition that it serves
Plan = namedtuple("Plan", "version defs since retiring guess")  # since: {shard: version that lists it}
Rec = namedtuple("Rec", "kind shard ver A x")  # kind: T tuple, P progress, F final
Commit = namedtuple("Commit", "done high ver A read")  # what of a shard survives its edge
Shard = namedtuple("Shard", "stream name kind")  # 'kafka' can move; 'edge' belongs to one edge


class Tuple:
    """One reading. key: output partition; g: the omission key's other attribute; f: the filter's; late: behind the watermark."""

    __slots__ = ("shard", "off", "key", "t", "v", "u", "f", "g", "late")

    def __init__(self, *a):
        self.shard, self.off, self.key, self.t, self.v, self.u, self.f, self.g, self.late = a

    def __repr__(self):
        return f"{self.shard.name}#{self.off}(t={self.t} v={self.v})"


class Def(namedtuple("Def", "alert n left right lo hi filt val kind theta okey")):
    """A definition of an alert, new in plan version n: lo <= t_a - t_b <= hi and a + b > theta ('sum') or |a - b| > theta."""

    L = property(lambda d: d.hi - d.lo)
    span = property(lambda d: max(abs(d.lo), abs(d.hi)))
    streams = property(lambda d: (d.left, d.right))

    def alarm(self, a, b):
        if a.key != b.key or not self.lo <= a.t - b.t <= self.hi or (self.okey and a.g != b.g):
            return False
        if (self.filt[0] and not a.f) or (self.filt[1] and not b.f):
            return False
        x, y = getattr(a, self.val[0]), getattr(b, self.val[1])
        return x + y > self.theta if self.kind == "sum" else abs(x - y) > self.theta


def entries(defs, stream, served):
    """What a topic keeps for these definitions: for each filter, key and value the least L and the union of sides."""
    out = {}
    for d in defs:
        for side, s in enumerate(d.streams):
            if s == stream:
                k = (d.filt[side], d.okey, d.val[side])
                L, sides, n = out.get(k, (INF, "a", 0))
                out[k] = min(L, d.L), "ab" if d.kind == "diff" else sides, max(n, d.n) if served else 0
    return [Entry(*k, *v) for k, v in out.items()]


class Omission:
    """One entry and key: decides the tuples shown to it. `held` maps an undecided tuple to its max_delay deadline."""

    def __init__(self, e):
        self.e, self.seen, self.held = e, [], {}

    def bracket(self, y, sign, sent):
        """Nearest times left and right of y with a greater value, or an equal one that is published."""
        l, r, val = -INF, INF, self.e.val
        yv = sign * getattr(y, val)
        for s in self.seen:
            sv = sign * getattr(s, val)
            if s is not y and (sv > yv or (sv == yv and s in sent)):
                if l < s.t <= y.t:
                    l = s.t
                if y.t <= s.t < r:
                    r = s.t
        return l, r

    def settle(self, wm, now, sent, publish):
        L, again = self.e.L, True
        while again:
            again = False
            for y in [y for y in self.held if y in self.held]:
                if y not in self.held:
                    continue
                br = [self.bracket(y, 1 if s == "a" else -1, sent) for s in self.e.sides]
                if L and all(r - l <= L for l, r in br):  # dropped; its brackets take over its deadline
                    due = self.held.pop(y)
                    self.held.update(
                        {z: min(d, due) for z, d in self.held.items() if any(z.t in b for b in br)}
                    )
                elif (
                    not L
                    or self.held[y] <= now
                    or any(r - l > L and (y.t - l > L or wm > l + L) for l, r in br)
                ):
                    publish(y)  # a new extreme, overdue, or past all brackets
                    again = True


class Run:
    """One edge at work on one shard, from the shard's commit on. A crash loses all of it."""

    def __init__(self, sim, edge, shard):
        c = sim.commit[shard]
        self.sim, self.edge, self.shard, self.zombie = sim, edge, shard, False
        self.ents = {} if sim.on("own_state") else edge.shared.setdefault(shard.stream, {})
        self.sent = set() if sim.on("own_state") else edge.shared.setdefault("sent", set())
        self.read, self.out, self.snap, self.acked, self.old = set(), [], None, 0, []
        self.parting = False
        self.high = c.high if sim.on("durable_high") else -1
        self.wm = -INF  # rebuilt from the replay, unless nothing is read again
        if c.high >= 0 and (c.done == c.read or not sim.on("wm_anew")):
            self.wm = c.high - sim.D
        self.version, self.A = c.ver, c.A
        self.fetched, self.due, self.asked = 0, None, 0  # over a slow link: how far, and the fetch under way
        self.before = frozenset()  # offsets read before the plan was taken up, for the judge
        # Read before the commit, to be read again before a plan that replaces an alert is taken up.
        replaced = sim.on("replay_version") and self.replaced(edge.plan)
        self.again = c.read - c.done if replaced else frozenset()
        if self.again:
            self.entries = [e._replace(L=0) for e in entries(edge.plan.defs, shard.stream, False)]
        else:
            self.obey(edge.plan)

    def replaced(self, plan):
        """True if the plan retires a definition of this stream that the commit's plan had in force."""
        n1 = self.sim.commit[self.shard].ver
        return any(n > n1 and self.shard.stream in d.streams for d, n in plan.retiring.items())

    @property
    def settling(self):
        """True if nothing may be read before a commit under the plan."""
        c = self.sim.commit[self.shard]
        return self.sim.on("settled_first") and self.parting and c.ver < self.version

    def obey(self, plan):
        on, new = self.sim.on, entries(plan.defs, self.shard.stream, self.sim.on("restart_served"))
        self.parting = self.replaced(plan)
        if self.replaced(plan) and on("publish_held"):
            for x in self.held():
                self.publish(x)
        for k, om in list(self.ents.items()):
            if om.e not in new:
                del self.ents[k]
                if self.sim.opt("run_on"):
                    self.old.append(om)
                elif on("flush_ended"):
                    for x in list(om.held):
                        self.publish(x)
                heir = [e for e in new if e[:3] == om.e[:3]]
                if heir and not on("fresh_entry"):
                    self.ents[(heir[0],) + k[1:]] = o = Omission(heir[0])
                    o.seen = list(om.seen)
        self.entries = new
        if plan.version != self.version:
            self.version, self.A = plan.version, self.high + 1 if on("shard_activates") else plan.guess
            self.before = frozenset(self.read | set(self.sim.commit[self.shard].done))

    def omissions(self):
        return list(self.ents.values()) + self.old

    def held(self):
        return {x for om in self.omissions() for x in om.held if x.shard == self.shard}

    def publish(self, x):
        run = self if x.shard == self.shard else self.edge.runs.get(x.shard)
        for om in self.omissions():
            om.held.pop(x, None)
        if run:
            run.sent.add(x)
            run.out.append(((x.shard.stream, x.key), Rec("T", x.shard, run.version, run.A, x)))

    def settle(self):
        for om in self.omissions():
            om.settle(self.wm, self.sim.now, self.sent, self.publish)
        self.old = [om for om in self.old if om.held]

    def take(self, x):
        self.read.add(x.off)
        if x.t == FAR and self.sim.on("max_ahead"):
            return
        keep = [e for e in self.entries if x.key is not None and (x.f or not e.filt)]
        if x.key is None:
            self.wm = END
        elif x.t < self.wm:  # late: forwarded, and left out of all decisions
            if keep:
                self.publish(x)
        else:
            for om in self.old:
                om.seen.append(x)
            for e in keep:
                om = self.ents.setdefault((e, x.key, x.g if e.okey else None), Omission(e))
                om.seen.append(x)
                om.held[x] = self.sim.now + self.sim.max_delay
            self.wm = max(self.wm, x.t - self.sim.D)
        self.high = max(self.high, x.t if x.key is not None else -1)
        self.settle()

    def progress(self):
        vals = dict.fromkeys(range(self.sim.P), self.wm)
        for x in self.held() if self.sim.on("progress_behind") else ():
            vals[x.key] = min(vals[x.key], x.t)
        return self.version, self.A, vals

    def commit(self):
        c = self.sim.commit[self.shard]
        pend = {x.off for x in self.held()} | {rec.x.off for _, rec in self.out if rec.kind == "T"}
        done = c.done | {o for o in self.read if o not in pend}
        if self.shard.kind == "kafka":  # an offset: all before the first that is not done
            done = range(next(o for o in range(len(done) + 1) if o not in done))
        done, read = frozenset(done), frozenset(self.read) | c.read
        if self.settling and not self.before <= done:
            return
        self.sim.commit[self.shard] = Commit(done, self.high, self.version, self.A, read)
        self.sim.begun.setdefault((self.shard, self.version), self.before)
        self.snap = self.progress()


class Edge:
    def __init__(self, name, part):
        self.name, self.part, self.up, self.connected, self.dead = name, part, True, True, False
        self.full = False  # its disk
        self.plan, self.disk, self.pos, self.away = None, None, 0, 0
        self.runs, self.zombies, self.spool, self.shared = {}, [], {}, {}


class Joiner:
    """The group of one output partition. A batch works on a copy, which replaces state and offsets in one go."""

    def __init__(self, sim, p):
        self.sim, self.p, self.plan, self.parked, self.F = sim, p, None, [], [-INF] * sim.S
        self.had, self.newest = set(), [-INF] * sim.S  # streams that have had a shard; greatest event times
        self.since, self.prog, self.told, self.incl, self.off = {}, {}, {}, {}, Counter()
        self.store = [{} for _ in range(sim.S)]  # per stream: {tuple: greatest version}

    def clone(self):
        j = Joiner.__new__(Joiner)
        j.__dict__.update(
            {k: v.copy() if isinstance(v, (dict, list, set)) else v for k, v in self.__dict__.items()}
        )
        j.store = [d.copy() for d in self.store]
        return j

    def obey(self, plan, alarms):
        if self.plan and plan.version <= self.plan.version:
            return
        self.plan = plan
        for s, n in plan.since.items():
            if n > self.since.get(s, 0):
                self.since[s], self.prog[s], self.told[s] = n, -INF, 0
                self.incl[s, n] = max(self.F[s.stream], self.sim.pubF[self.p, s.stream])
                if s.stream not in self.had:
                    self.incl[s, n] = min(self.incl[s, n], self.sim.first_waits(self.p, s.stream))
        self.had |= {s.stream for s in self.since}
        if not self.sim.on("final_in_band"):
            self.since = {s: n for s, n in self.since.items() if s in plan.since}
        wait, self.parked = self.parked, []
        for rec in wait:
            self.take(rec, alarms)
        self.advance()

    def take(self, rec, alarms):
        on, s = self.sim.on, rec.shard
        if on("park") and rec.ver > (self.plan.version if self.plan else 0):
            self.parked.append(rec)
        elif rec.kind == "T":
            self.join(rec, alarms)
        elif s in self.since and (rec.ver >= self.since[s] or not on("final_versioned")):
            if rec.kind == "P":
                self.prog[s] = max(self.prog[s], rec.x)
                self.told[s] = max(self.told[s], rec.ver)
            else:
                del self.since[s]
            self.advance()

    def advance(self):
        for st in range(self.sim.S):
            ps = [self.prog[s] for s in self.since if s.stream == st]
            if ps:
                f = min(ps)
            elif not self.sim.on("gone_follows"):
                f = -INF
            elif st in self.had or not self.sim.on("first_waits"):
                f = max(self.F)
            else:  # the end is no time from which to measure
                newest = [max(x, f) if f < END else x for x, f in zip(self.newest, self.F)]
                f = max(min(f, x - self.sim.stall) for x, f in zip(newest, self.F))
            self.F[st] = max(self.F[st], f)

    def join(self, rec, alarms):
        x, mine = rec.x, self.store[rec.shard.stream]
        self.newest[rec.shard.stream] = max(self.newest[rec.shard.stream], x.t)
        again = x in mine
        mine[x] = max(mine.get(x, 0), rec.ver) if self.sim.on("greatest_version") else mine.get(x, rec.ver)
        if self.plan and (not again or self.sim.on("join_again")):
            for d in self.plan.defs:
                for side, s in enumerate(d.streams):
                    if s == x.shard.stream:
                        pairs = [(x, y) if side == 0 else (y, x) for y in self.store[d.streams[1 - side]]]
                        alarms += [(d, a, b) for a, b in pairs if d.alarm(a, b) and self.counts(d, a, b)]

    def counts(self, d, a, b):
        if self.sim.opt("no_check"):
            return True
        least, n2 = min(self.store[d.left][a], self.store[d.right][b]), self.plan.retiring.get(d)
        return d.n <= least and (not n2 or least < n2 or not self.sim.on("least_version"))

    def wait(self, d):
        """Tuples from before the plan that replaced the definition that may still find a partner."""
        return sum(
            d.n <= v < self.plan.retiring[d] and x.t + w >= self.F[d.streams[1 - side]]
            for side, w in ((0, -d.lo), (1, d.hi))
            for x, v in self.store[d.streams[side]].items()
        )

    def trim(self):
        for st in range(self.sim.S):
            reach = [
                (self.F[d.streams[1 - side]], -d.lo if side == 0 else d.hi)
                for d in (self.plan.defs if self.plan else ())
                for side in (0, 1)
                if d.streams[side] == st
            ]
            self.store[st] = {x: v for x, v in self.store[st].items() if any(x.t + w >= f for f, w in reach)}


class Sim:
    ACTIONS = {
        "emit": 7,
        "read": 14,
        "send": 16,
        "commit": 6,
        "progress": 6,
        "ack": 4,
        "switch": 5,
        "plan": 4,
        "start": 4,
        "timer": 2,
        "batch": 8,
        "registry": 3,
        "write": 5,
        "crash": 0.5,
        "repair": 2,
        "cut": 0.4,
        "move": 0.6,
        "wake": 1,
    }

    def __init__(self, seed, off=(), options=(), small=False, trace=False):
        r = self.r = random.Random(seed)
        self.off, self.options, self.small, self.trace = (
            frozenset(off),
            frozenset(options),
            small,
            [] if trace else None,
        )
        self.now, self.calm, self.stat = 0, False, Counter()
        self.P, self.S = (1, 2) if small else (r.choice((1, 1, 2)), r.choice((2, 2, 3)))
        self.D, self.max_delay, self.top = (
            r.randint(0, 1 if small else 3),
            r.choice((INF, INF, r.randint(0, 30))),
            r.choice((3, 9)),
        )
        self.plain, self.pace, self.skip_plans, self.sorted_batches = (
            small or r.random() < 0.6,
            r.choice((0.1, 0.3, 0.8)),
            r.random() < 0.3,
            r.random() < 0.5,
        )
        self.edges = [Edge(f"e{i}", r.randrange(self.P)) for i in range(2 if small else r.choice((2, 2, 3)))]
        self.owner = {}
        for st in range(self.S):
            kafka = r.random() < 0.6
            for i in range(r.choice((1, 1, 2))):
                e = r.choice(self.edges) if kafka else self.edges[i]
                self.owner[Shard(st, f"s{st}.{i if kafka else e.name}", "kafka" if kafka else "edge")] = e
        self.shards = list(self.owner)
        self.log = {s: self.make_log(s) for s in self.shards}
        if seed % 5 == 2:
            self.add_future(random.Random(f"{seed} future"))
        self.stall = random.Random(f"{seed} stall").choice((2, 10, 40))  # max_stall, in event time
        # In some schedules links are slow, in some others disks are full for a while.
        self.slow_links = seed % 7 == 1
        self.disks = random.Random(f"{seed} disks") if seed % 7 == 3 else None
        self.avail, self.maxread = dict.fromkeys(self.shards, 0), dict.fromkeys(self.shards, -1)
        self.commit = {s: Commit(frozenset(), -1, 0, 0, frozenset()) for s in self.shards}
        self.topic = {(st, p): [] for st in range(self.S) for p in range(self.P)}
        self.plans, self.acks, self.alarms = [[] for _ in range(self.P)], [], set()
        everywhere = [(p, s) for p in range(self.P) for s in range(self.S)]
        self.pubF, self.begun = dict.fromkeys(everywhere, -INF), {}
        self.joiners = [Joiner(self, p) for p in range(self.P)]
        self.slow = {
            (p, n): r.choice((0, 0, 0, 0.9)) for p in range(self.P) for n in ["plan", *range(self.S)]
        }
        # What the joiner published: plan version, the version under which each listed shard has told progress, and
        # by old definition how many tuples wait.
        self.taken = {p: (0, {}, {}) for p in range(self.P)}
        # the registry: its statements are durable, what it has still to write is not
        self.reg_up, self.version, self.pending, self.ops = True, 0, [], 0
        self.defs, self.retiring, self.replaced, self.dropped, self.every, self.history = (
            [],
            {},
            {},
            set(),
            [],
            {},
        )
        self.since = {s: 1 for s in self.shards if small or r.random() < 0.85}
        self.gone, self.lows = (
            {},
            [],
        )  # lows: (shard, partition, version, last progress, {delivered: version})
        for _ in range(r.choice((1, 2, 3))):
            self.define()
        self.publish_plan()

    on = lambda self, rule: rule not in self.off
    opt = lambda self, option: option in self.options

    def say(self, *a):
        if self.trace is not None:
            self.trace.append(f"{self.now:4} " + " ".join(map(str, a)))

    def make_log(self, s):
        r, out, top, base = self.r, [], -INF, self.r.randint(0, 4)
        for off in range(r.randint(1, 4) if self.small else r.randint(4, 24)):
            base += r.choice((0, 1, 1, 1, 2, 3))
            t = max(0, base - r.randint(0, self.D) - (self.D + r.randint(1, 6) if r.random() < 0.05 else 0))
            out.append(
                Tuple(
                    s,
                    off,
                    r.randrange(self.P),
                    t,
                    r.randint(0, self.top),
                    r.randint(0, self.top),
                    r.random() < 0.6,
                    r.random() < 0.3,
                    t < top - self.D,
                )
            )
            top = max(top, t)
        return out

    def add_future(self, r):
        """Some shards have a reading from the future."""
        for s in self.shards:
            if r.random() < 0.6:
                log, at = self.log[s], r.randint(0, len(self.log[s]) // 2)
                log.insert(at, Tuple(s, at, r.randrange(self.P), FAR, self.top, self.top, True, False, False))
                for off, x in enumerate(log):
                    x.off = off
                self.stat["future readings"] += 1

    # ---- registry
    def define(self, old=None):
        r, m, few = self.r, self.top, not self.plain and self.r.random() < 0.5
        lo, kind = r.randint(-6, 2), r.choice(("sum", "sum", "diff"))
        theta = r.randint(m * 3 // 4, m * 3 // 2) if kind == "sum" else r.randint(m // 2, m - 1)
        left, right = old.streams if old else r.sample(range(self.S), 2)
        filt, val, okey = (
            (few and r.random() < 0.4, few and r.random() < 0.4),
            (r.choice("vvu"), r.choice("vvu")) if few else "vv",
            few and r.random() < 0.3,
        )
        name = old.alert if old else f"q{len(self.every)}"
        d = Def(
            name,
            self.version + 1,
            left,
            right,
            lo,
            lo + r.choice((0, 1, 2, 3, 4, 6, 8)),
            filt,
            val,
            kind,
            theta,
            okey,
        )
        self.defs.append(d)
        self.every.append(d)
        self.say("registry: definition", d)
        return d

    def publish_plan(self):
        self.version += 1
        guess = max(
            [self.log[s][i - 1].t for s, i in self.avail.items() if i and self.log[s][i - 1].t < END],
            default=0,
        )
        self.history[self.version] = set(self.defs)
        pl = Plan(
            self.version,
            tuple(self.defs),
            dict(self.since),
            dict(self.retiring),
            guess + self.r.randint(0, 3),
        )
        self.pending = [("plan", p, pl) for p in range(self.P)]
        if self.on("final_in_band"):
            self.pending += [("final", (s.stream, p), s) for s in self.gone for p in range(self.P)]
        self.r.shuffle(self.pending)
        self.say(
            "registry: plan",
            self.version,
            [(d.alert, d.n) for d in self.defs],
            {s.name: n for s, n in self.since.items()},
        )

    def a_write(self):
        if self.reg_up and self.pending:
            kind, where, what = self.pending.pop()
            if kind == "plan":
                self.plans[where].append(what)
            else:
                self.note_low(what, where)
                self.topic[where].append(Rec("F", what, self.gone[what], 0, None))

    def note_low(self, s, part):
        """What the partition holds of a shard that is declared gone: all else of it is lost."""
        recs = [rec for rec in self.topic[part] if rec.shard == s]
        low = max([rec.x for rec in recs if rec.kind == "P"], default=-INF)
        self.lows.append(
            (
                s,
                part[1],
                self.gone[s],
                low,
                {rec.x: rec.ver for rec in sorted(recs, key=lambda q: q.ver) if rec.kind == "T"},
            )
        )

    def a_registry(self):
        r, x = self.r, self.r.random()
        if not self.reg_up:
            if x < 0.5 or self.calm:
                self.reg_up, last = True, [pl[-1].version if pl else 0 for pl in self.plans]
                self.version = max(last) if self.on("fresh_version") else r.choice(last)
                if self.on("fresh_version"):
                    self.publish_plan()
        elif self.pending:
            if x < 0.05 and not self.calm:
                self.reg_up, self.pending = False, []
                self.stat["registry crashes"] += 1
                self.say("registry: crash")
        elif (
            not self.contract()
            and (self.calm or (self.ops < 6 and r.random() < self.pace))
            and self.operate()
        ):
            self.ops += 1
            self.publish_plan()

    def operate(self):
        """List a shard, declare one gone, replace, drop or add an alert."""
        r, x, own, n = self.r, self.r.random(), self.owner, self.version + 1
        current = [d for d in self.defs if d not in self.retiring]
        lost = [
            s
            for s in self.since
            if own[s].dead
            or (not self.calm and self.now - own[s].away > STALL and not (own[s].up and own[s].connected))
        ]
        back = [
            s
            for s in self.shards
            if s not in self.since
            and own[s].up
            and own[s].connected
            and own[s].plan
            and own[s].plan.version >= self.gone.get(s, 0)
        ]
        if back and (x < 0.5 or self.calm):
            s = r.choice(back)
            self.since[s] = n
            self.gone.pop(s, None)
            self.stat["listed"] += 1
        elif (lost and (x < 0.7 or self.calm)) or (x < 0.04 and not self.calm and self.since):
            one = r.choice(lost or list(self.since))  # perhaps wrongly: it may be alive
            for s in list(self.since) if r.random() < 0.2 else [one]:  # nobody was heard, or one was not
                self.gone[s] = n
                del self.since[s]
                self.stat["declared gone"] += 1
                for p in range(self.P) if not self.on("final_in_band") else ():
                    self.note_low(s, (s.stream, p))
        elif self.calm:
            return False
        elif current and x < 0.75:
            d = r.choice(current)
            self.replaced[d] = n
            self.define(d)
            if self.on("make_before_break"):
                self.retiring[d] = n
            else:
                self.defs.remove(d)
            self.stat["replaced"] += 1
        elif len(current) > 1 and x < 0.82:
            q = r.choice(current).alert
            self.defs = [d for d in self.defs if d.alert != q]
            self.retiring = {d: m for d, m in self.retiring.items() if d.alert != q}
            self.dropped |= {d for d in self.every if d.alert == q}
            self.stat["dropped"] += 1
        elif len(current) < 4:
            self.define()
            self.stat["added"] += 1
        else:
            return False
        return True

    def contract(self):
        """End an old definition of a replaced alert once nothing can need it any more."""
        acks = {s: v for s, v, _ in self.acks}
        for d, n2 in self.retiring.items():
            mine = {s: max(n2, n) for s, n in self.since.items() if s.stream in d.streams}
            if (
                all(acks.get(s, 0) >= n for s, n in mine.items())
                and all(
                    version >= n2
                    and (all(told.get(s, 0) >= n for s, n in mine.items()) or not self.on("all_told"))
                    and (waiting.get(d) == 0 or not self.on("none_waits"))
                    for version, told, waiting in self.taken.values()
                )
                and (self.gone_taken(d) or not self.on("finals_taken"))
            ):
                self.defs.remove(d)
                del self.retiring[d]
                self.publish_plan()
                return True

    def gone_taken(self, d):
        """True if the joiner has taken all that it will ever have of the shards that are gone."""
        gone = [(s, n) for s, n in self.gone.items() if s.stream in d.streams]
        return all(
            n <= version and s not in told for version, told, _ in self.taken.values() for s, n in gone
        )

    # ---- edges
    def a_emit(self):
        live = [s for s in self.shards if self.avail[s] < len(self.log[s])]
        if live:
            due = lambda s: (
                self.log[s][self.avail[s]].t % FAR
            )  # a reading from the future comes among the others
            self.avail[min(live, key=lambda s: due(s) + self.r.randint(0, 12))] += 1

    def pick(self, zombies=True):
        runs = [x for e in self.edges if e.up for x in list(e.runs.values()) + (e.zombies if zombies else [])]
        return self.r.choice(runs) if runs else None

    def a_plan(self, e=None):
        e = e or self.r.choice(self.edges)
        log = self.plans[e.part]
        if e.up and e.connected and e.pos < len(log):
            e.pos = len(log) if self.skip_plans or self.calm else e.pos + 1
            if e.plan is None or log[e.pos - 1].version > e.plan.version:
                e.plan = e.disk = log[e.pos - 1]
                self.say(e.name, "has plan", e.plan.version)

    def a_start(self):
        for s, e in self.owner.items():
            if (
                s not in e.runs
                and e.up
                and e.plan
                and (s in e.plan.since or not self.on("listed_only"))
                and (e.plan.version >= self.commit[s].ver or not self.on("takeover_plan"))
            ):
                run = e.runs[s] = Run(self, e, s)
                self.say(
                    e.name,
                    "takes up",
                    s.name,
                    "version",
                    run.version,
                    "A",
                    run.A,
                    "done",
                    sorted(self.commit[s].done),
                )

    def a_switch(self, run=None):
        run = run or self.pick()
        if run and run.edge.plan.version > run.version:
            again = not run.again <= run.read
            if run.shard not in run.edge.plan.since and self.on("listed_only"):
                self.stop(run)  # starts again from its commit when it is listed again
            elif not again:
                run.obey(run.edge.plan)
                self.say(run.edge.name, run.shard.name, "obeys", run.version, "from", run.A)

    def stop(self, run):
        run.edge.runs = {s: x for s, x in run.edge.runs.items() if x is not run}
        run.edge.zombies = [x for x in run.edge.zombies if x is not run]
        for om in run.omissions():  # matters where the state is shared
            om.held = {x: d for x, d in om.held.items() if x.shard != run.shard}

    def a_read(self, run=None):
        run = run or self.pick()
        if run and run.settling:
            return False
        s, done = (run.shard, self.commit[run.shard].done) if run else (None, ())
        todo = [o for o in range(self.here(run)) if o not in run.read and o not in done] if run else []
        if not todo:
            return False
        o = todo[0]
        if not self.on("ordered_redelivery") and s.kind == "edge" and self.r.random() < 0.5:
            o = next((o for o in todo if o > self.maxread[s]), o)
        self.maxread[s], before = max(self.maxread[s], o), len(run.out)
        run.take(self.log[s][o])
        self.say(
            run.edge.name,
            "reads",
            self.log[s][o],
            "late" if self.log[s][o].late else "",
            "publishes",
            [rec.x for _, rec in run.out[before:]],
            "holds",
            sorted(run.held(), key=lambda x: x.off),
        )
        return True

    def here(self, run):
        """Before which offset a shard's readings are at its edge: over a slow link they come by fetches."""
        avail, on = self.avail[run.shard], self.on
        if not self.slow_links or run.shard.kind != "kafka":
            return avail
        if not run.edge.connected:
            run.due = None
        elif run.due is not None and self.now >= run.due:
            run.fetched, run.due = avail, None
        elif run.due is None and run.fetched < avail:
            run.due, run.asked = self.now + FETCH, self.now
            self.stat["slow fetches"] += 1
        elif run.due is not None and self.now - run.asked > PATIENCE and not on("fetch_kept"):
            run.due, run.asked = self.now + FETCH, self.now
        return run.fetched

    def a_timer(self):
        run = self.pick()
        if run:
            run.settle()

    def a_send(self, run=None):
        run = run or self.pick()
        if not run:
            return False
        e, s = run.edge, run.shard
        if not e.connected:
            if run.out and (s.kind == "edge" or not self.on("spool_uncommitted")):
                if not e.full:
                    e.spool.setdefault(s, []).append(run.out.pop(0))
                elif not self.on("refused_stays"):
                    run.out.pop(0)
            return False
        q = e.spool.get(s) or run.out
        if not q:
            return False
        part = self.r.choice([part for part, _ in q])
        i = next(i for i, (pt, _) in enumerate(q) if pt == part)
        self.topic[part].append(q[i][1])
        self.say(
            e.name,
            "sends",
            "as zombie" if run.zombie else "",
            q[i][1].kind,
            f"v{q[i][1].ver}",
            s.name,
            q[i][1].x,
        )
        if q is not run.out and e.full and not self.on("reserve"):
            return False
        if q is run.out or self.calm or self.r.random() < 0.9:  # a crash may come before the spool forgets it
            del q[i]
        e.full = e.full and any(e.spool.values())  # what filled the disk is the spool
        return True

    def a_commit(self, run=None):
        run = run or self.pick(zombies=False)  # the source refuses a zombie's commit
        if run and (run.shard.kind == "kafka" or not run.edge.full or self.on("reserve")):
            run.commit()
            self.say(run.edge.name, "commits", run.shard.name, self.commit[run.shard])

    def a_progress(self, run=None):
        run = run or self.pick()
        if run:
            snap, run.snap = run.snap if self.on("commit_first") else run.progress(), None
            ver, A, vals = snap or (0, 0, {})
            recs = [
                ((run.shard.stream, p), Rec("P", run.shard, ver, A, v)) for p, v in vals.items() if v > -INF
            ]
            run.out = run.out + recs if self.on("progress_behind") else recs + run.out

    def a_ack(self, run=None):
        run = run or self.pick(zombies=False)
        if (
            run
            and run.edge.connected
            and run.acked < run.version
            and (self.commit[run.shard].ver == run.version or not self.on("ack_after_commit"))
        ):
            run.acked = run.version
            self.acks.append((run.shard, run.version, run.A))
            self.say(run.edge.name, "acks", run.shard.name, "version", run.version, "from", run.A)

    # ---- faults
    def a_crash(self):
        e = self.r.choice(self.edges)
        if e.up:
            e.up, e.runs, e.zombies, e.shared, e.away = False, {}, [], {}, self.now
            if self.r.random() < 0.3:  # its disk's plan is old or gone (never its spool)
                e.disk = self.r.choice([None] + self.plans[e.part])
            e.dead = self.r.random() < 0.04 and sum(not x.dead for x in self.edges) > 1
            self.stat["edge crashes"] += 1
            self.say(e.name, "dies" if e.dead else "crashes")

    def a_repair(self):
        e = self.r.choice(self.edges)
        if not e.up and not e.dead:
            e.up, e.plan, e.pos = True, e.disk, 0
            self.say(e.name, "restarts with plan", e.plan and e.plan.version)
        elif not e.connected:
            e.connected = True
            self.say(e.name, "connected")

    def a_cut(self):
        e = self.r.choice(self.edges)
        if e.connected:
            e.connected, e.away = False, self.now
            self.stat["cut off"] += 1
            self.say(e.name, "cut off")

    def a_move(self):
        movable = [s for s in self.shards if s.kind == "kafka"]
        s, new = self.r.choice(movable or [None]), self.r.choice(self.edges)
        if s and new is not self.owner[s] and not new.dead:
            old, self.owner[s] = self.owner[s], new
            run = old.runs.get(s)
            if run:
                if self.r.random() < 0.5:
                    self.stop(run)
                else:  # the old owner works on for a while, unaware
                    del old.runs[s]
                    run.zombie = True
                    old.zombies.append(run)
            self.stat["moves"] += 1
            self.say(s.name, "moves from", old.name, "to", new.name)

    def fill_disks(self):
        """In some schedules disks become full, mostly of what is spooled, and have room again."""
        for e in self.edges if self.disks else ():
            if self.disks.random() < (0.03 if e.full else 0.1 if any(e.spool.values()) else 0.005):
                e.full = not e.full
                self.stat["full disks"] += e.full
                self.say(e.name, "has a full disk" if e.full else "has room on its disk")

    def a_wake(self):
        for run in [x for e in self.edges for x in e.zombies]:
            self.stop(run)

    # ---- joiner
    def first_waits(self, p, stream):
        """How far the frontier of a stream that never had a shard may be: `stall` behind all that the others sent."""
        others = [recs for (st, q), recs in self.topic.items() if q == p and st != stream]
        times = [rec.x.t if rec.kind == "T" else rec.x for recs in others for rec in recs if rec.kind != "F"]
        return max([t for t in times if t < END], default=-INF) - self.stall

    def a_batch(self, p=None):
        r = self.r
        p = r.randrange(self.P) if p is None else p
        j, alarms, queues = self.joiners[p].clone(), [], []
        for name, log in [("plan", self.plans[p])] + [(st, self.topic[st, p]) for st in range(self.S)]:
            left = len(log) - j.off[name]
            n = left if self.calm else r.choice((0, left, r.randint(0, left)))
            if not self.calm and r.random() < self.slow[p, name]:
                n = 0
            got = [(name, x) for x in log[j.off[name] : j.off[name] + n]]
            j.off[name] += n
            queues.append(
                got[-1:] if name == "plan" and self.skip_plans and not self.on("every_plan") else got
            )
        if self.sorted_batches:  # plans, then tuples, then progress and finals
            order = queues[0] + sorted((x for q in queues[1:] for x in q), key=lambda x: x[1].kind != "T")
        else:  # any interleaving of the partitions
            tags, its = [i for i, q in enumerate(queues) for _ in q], [iter(q) for q in queues]
            r.shuffle(tags)
            order = [next(its[i]) for i in tags]
        for name, x in order:
            (j.obey if name == "plan" else j.take)(x, alarms)
            if not self.sorted_batches and r.random() < 0.3:
                j.trim()
        j.trim()
        self.stat["parked"] += len(j.parked)
        self.stat["greatest state"] = max(self.stat["greatest state"], sum(map(len, j.store)))
        crash = not self.calm and r.random() < 0.15
        cut = r.randint(0, len(alarms) + 1) if crash else len(alarms) + 1
        self.alarms.update(alarms[:cut])
        if cut > len(alarms):  # the frontier is published after the alarms
            for st in range(self.S):
                self.pubF[p, st] = max(self.pubF[p, st], j.F[st])
            if j.plan:
                told = {s: j.told[s] for s in j.since}
                self.taken[p] = j.plan.version, told, {d: j.wait(d) for d in j.plan.retiring}
        if crash:
            self.stat["joiner crashes"] += 1
        else:
            self.joiners[p] = j
        if order:
            self.say(
                "joiner",
                "crashes in" if crash else "",
                [f"plan {x.version}" if n == "plan" else f"{x.kind} {x.shard.name} {x.x}" for n, x in order],
                "alarms",
                [(d.alert, d.n, a, b) for d, a, b in alarms[:cut]],
                "F",
                j.F,
            )

    # ---- a whole run
    def run(self):
        weights = [w * self.r.choice((0.2, 1, 1, 3)) for w in self.ACTIONS.values()]
        acts = [getattr(self, "a_" + n) for n in self.ACTIONS]
        steps = 120 if self.small else 12 * sum(map(len, self.log.values())) + 100
        for act in self.r.choices(acts, weights, k=steps):
            self.now += 1
            self.fill_disks()
            act()
        stuck = self.heal()
        return self.judge() + stuck

    def heal(self):
        """Repair what is not dead, let the sources end, drain; what waits even then is stuck."""
        self.say("heal")
        self.calm, alive = True, [e for e in self.edges if not e.dead]
        self.a_wake()
        for e in alive:
            if not e.up:
                e.up, e.plan, e.pos = True, e.disk, 0
            e.connected, e.full = True, e.full and any(e.spool.values())
        for s in self.shards:
            if self.owner[s].dead and s.kind == "kafka":
                self.owner[s] = self.r.choice(alive)
            self.log[s].append(Tuple(s, len(self.log[s]), None, END, 0, 0, False, 0, False))
            self.avail[s] = len(self.log[s])
        for _ in range(40):
            self.now += 50
            for _ in range(3):
                self.a_registry()
                while self.pending:
                    self.a_write()
            for e in alive:
                self.a_plan(e)
            self.a_start()
            for run in [x for e in alive for x in list(e.runs.values())]:
                self.a_switch(run)
                if run.edge.runs.get(run.shard) is run:
                    while self.a_read(run) or self.a_send(run):
                        pass
                    run.settle()
                    while self.a_send(run):
                        pass
                    self.a_commit(run)
                    self.a_progress(run)
                    self.a_ack(run)
                    while self.a_send(run):
                        pass
            for p in range(self.P):
                self.a_batch(p)
            # One whose streams have no shard left waits for one to come back, or for the first to come.
            listed = {s.stream for s in self.since}
            had = set.intersection(*(j.had for j in self.joiners))
            waits = [
                (d.alert, d.n) for d in self.retiring if listed & set(d.streams) and had >= set(d.streams)
            ]
            why = [("STUCK", f"old definitions {waits}")] if waits else []
            why += [
                (
                    "STUCK",
                    f"joiner {j.p}: frontiers {j.F}, parked {len(j.parked)}, state {sum(map(len, j.store))}",
                )
                for j in self.joiners
                if self.since
                and (
                    min([j.F[st] for st in j.had], default=-INF) < END
                    or j.parked
                    or (len(had) == self.S and any(j.store))
                )
            ]
            if not why:
                break
        return why

    def judge(self):
        """Compare with the full join. A shard promises from its acknowledged activation on, and not what it lost when gone.
        Of an old definition it promises the combinations with a tuple that it read before it took up the new one, and
        the old definition must raise no alarm of others.
        """
        acts, lost = {}, {}
        for s, v, A in self.acks:
            acts.setdefault(s, []).append((v, A))
        A = lambda s, n, d=None: min(
            (a for v, a in acts.get(s, ()) if v >= n and (not d or d in self.history[v])), default=INF
        )

        def past(x, n, d=None):  # read after the shard had taken up plan n
            later = [v for s, v in self.begun if s == x.shard and v >= n and (not d or d in self.history[v])]
            return bool(later) and x.off not in self.begun[x.shard, min(later)]

        oldest = {}
        for rec in (rec for recs in self.topic.values() for rec in recs if rec.kind == "T"):
            oldest[rec.x] = min(rec.ver, oldest.get(rec.x, INF))
        longest = max(d.L for d in self.every)
        for j in self.joiners:
            for s in self.shards:
                listed = sorted(n for x, n in j.incl if x is s)
                if listed:  # before it was first listed it may be behind the frontier
                    lost.setdefault((s, j.p), []).append((-INF, 0, {}, j.incl[s, listed[0]]))
                for x, p, v, low, had in self.lows:
                    if x is s and p == j.p:  # from its last progress on, until its next listing is active
                        n = next((n for n in listed if n > v), None)
                        lost.setdefault((s, p), []).append((low - longest, n, had, j.incl.get((s, n))))
        raised, bad = {}, []
        for d, a, b in self.alarms:
            raised.setdefault(d, []).append((a, b))
            if not d.alarm(a, b):
                bad.append(("EXTRA", d, a, b))
            if min(oldest[a], oldest[b]) >= self.replaced.get(d, INF):
                bad.append(("OLD", d, a, b))
            self.stat["alarms"] += 1
            self.stat["alarms with a tuple before its activation"] += a.t < A(a.shard, d.n) or b.t < A(
                b.shard, d.n
            )
        for d in self.every:
            if d in self.dropped:
                continue  # DROP ends the promise
            n2 = self.replaced.get(d, INF)
            left, right = [
                [
                    x
                    for s in self.shards
                    if s.stream == st
                    for x in self.log[s]
                    if x.key is not None
                    and x.t != FAR
                    and not x.late
                    and (x.t >= A(s, d.n, d) or past(x, d.n, d))
                    and all(
                        x.t < lo or had.get(x, 0) >= d.n or (n is not None and x.t >= max(incl, A(s, n, d)))
                        for lo, n, had, incl in lost.get((s, x.key), ())
                    )
                ]
                for st in d.streams
            ]
            for a in left:
                for b in right:  # an old definition's, unless both are the new one's
                    if d.alarm(a, b) and not (past(a, n2) and past(b, n2)):
                        self.stat["promised"] += 1
                        if not any(
                            x.key == a.key and abs(x.t - a.t) <= d.L and abs(y.t - b.t) <= d.L
                            for x, y in raised.get(d, ())
                        ):
                            bad.append(("MISS", d, a, b))
        return bad


def series(runs, seed, off, options, small=False, stop=None):
    hit, kinds, first, stat, i = 0, Counter(), [], Counter(), 0
    for i in range(1, runs + 1):
        sim = Sim(seed * 1_000_003 + i, off, options, small)
        bad = sim.run()
        for k, v in sim.stat.items():
            stat[k] = max(stat[k], v) if k.startswith("greatest") else stat[k] + v
        if bad:
            hit += 1
            kinds.update({b[0] for b in bad})
            first.append((seed * 1_000_003 + i, bad))
        if stop and hit >= stop:
            break
    return i, hit, dict(kinds), first, dict(stat)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--runs", type=int, default=2000)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument(
        "--off", nargs="*", default=[], choices=list(RULES), metavar="RULE", help="; ".join(RULES)
    )
    ap.add_argument(
        "--option", nargs="*", default=[], choices=list(OPTIONS), metavar="OPTION", help="; ".join(OPTIONS)
    )
    ap.add_argument("--table", action="store_true", help="each rule off in turn")
    ap.add_argument("--small", action="store_true", help="tiny inputs")
    ap.add_argument(
        "--smallest", action="store_true", help="tiny inputs; print the shortest violating schedule"
    )
    ap.add_argument(
        "--trace", type=int, metavar="SEED", help="print the schedule of a seed that a violation names"
    )
    a = ap.parse_args()
    if a.smallest:
        found = series(a.runs, a.seed, a.off, a.option, True, 200)[3]
        sims = [Sim(n, a.off, a.option, True, True) for n, _ in found]
        a.trace, a.small = (
            min(((len(s.run()) and len(s.trace), n) for s, (n, _) in zip(sims, found)), default=(0, None))[1],
            True,
        )
    if a.trace is not None:
        sim = Sim(a.trace, a.off, a.option, a.small, True)
        bad = sim.run()
        return print("D", sim.D, "max_delay", sim.max_delay, *sim.trace, *bad, sep="\n")
    t0 = time.time()
    for rule, text in RULES.items() if a.table else ():
        n, hit, kinds, first, _ = series(a.runs, a.seed, [rule], a.option, a.small, 10)
        print(f"{rule:18} off: {hit:3} of {n:6} runs violated {kinds} | {text}", flush=True)
    n, hit, kinds, first, stat = series(a.runs, a.seed, a.off, a.option, a.small)
    print(
        f"{n} runs, {hit} with violations {kinds}; off {a.off}, options {a.option}; {time.time() - t0:.0f} s\n{stat}"
    )
    for n, bad in first[:5]:
        print("seed", n, *bad[:3], sep="\n   ")
    sys.exit(bool(hit))


if __name__ == "__main__":
    main()
