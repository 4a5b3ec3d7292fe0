import assert from "@assert";
import { FakeClock } from "../../../base/fake_clock.ts";
import { FakeHost } from "../../../base/fake_host.ts";
import type { JournalRecord } from "../../../base/journal.ts";
import type { LocalPod, LocalState } from "../../../server/local/types.ts";
import { type AskAgent, NoAgent } from "../ask_agent.ts";
import { explainPodNamed } from "./command.ts";

const clock = new FakeClock();
const web: LocalPod = {
  pod: {
    metadata: { name: "web-n", namespace: "default", uid: "u-web" },
    spec: { containers: [{ name: "c", resources: {} }] },
  },
  status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] },
};
const state: LocalState = {
  version: "v1",
  pid: 1,
  nodeName: "n",
  startedAt: 0,
  sourcesReady: true,
  manifestProblems: [],
  unhealthy: [],
};
const record = (uid: string, name: string, secondsAgo: number, reason: string): JournalRecord => ({
  seq: 1,
  at: clock.now() - secondsAgo * 1000,
  action: "StopContainer",
  reason,
  message: `of ${secondsAgo}`,
  pod: { namespace: "default", name, uid },
});
const file = (...records: JournalRecord[]) =>
  records.map((r) => `${JSON.stringify({ ...r, at: new Date(r.at).toISOString() })}\n`).join("");

function agent(more: Partial<LocalState> = {}, records: JournalRecord[] = []): AskAgent {
  return {
    state: () => Promise.resolve({ ...state, ...more }),
    pods: () => Promise.resolve({ pods: [web], left: 0 }),
    records: () => Promise.resolve({ records, left: 0 }),
    images: away,
  };
}
const away = () => Promise.reject(new NoAgent("Network", "no agent runs"));
const noAgent: AskAgent = { state: away, pods: away, records: away, images: away };

const explain = (word: string, of: AskAgent, journal = "") =>
  explainPodNamed({
    word,
    rootDir: "/r",
    agent: of,
    host: new FakeHost({ files: { "/r/journal.jsonl": journal } }),
    clock,
  });

Deno.test("a pod of the agent: its records, and those from before the agent's start", async () => {
  const text = await explain(
    "web",
    agent({}, [record("u-web", "web-n", 5, "R")]),
    file(record("u-web", "web-n", 50, "R")),
  );
  assert.match(text, /^Pod default\/web-n \(uid u-web\): Running/);
  assert.match(text, /50s ago[^]*of 50\n +5s ago[^]*of 5$/);
});

Deno.test("while a static pod's old instance is ending, its name means the new one, and the old one is told", async () => {
  const metadata = { ...web.pod.metadata, uid: "u-old" };
  const old: LocalPod = { ...web, pod: { ...web.pod, metadata }, leaving: true };
  const both = { ...agent(), pods: () => Promise.resolve({ pods: [old, web], left: 0 }) };
  assert.match(
    await explain("web", both),
    /^Pod default\/web-n \(uid u-web\)[^]*Another pod of this name is ending: uid u-old \(kubelet explain u-old\)$/,
  );
  assert.match(await explain("u-old", both), /^Pod default\/web-n \(uid u-old\)/);
});

Deno.test("what is wrong with the agent itself comes first", async () => {
  const text = await explain("web", agent({ runtimeError: "container runtime is down", networkError: "no cni" }));
  assert.match(
    text,
    /^The runtime has a problem: container runtime is down[^]*network has a problem: no cni[^]*Pod default/,
  );
});

Deno.test("a pod that is gone is told from the file, which is said", async () => {
  const journal = file(record("u-old", "old-n", 90, "SourceRemoved"), record("u-older", "old-n", 900, "SourceRemoved"));
  const text = await explain("old", agent(), journal);
  assert.match(text, /^The agent has no such pod now\. This is from its journal file \/r\/journal\.jsonl\./);
  assert.match(text, /\(uid u-old\)[^]*The pod is gone \(1m30s ago\): its manifest was removed/);
  assert.match(text, /Another pod of this name: uid u-older, last 15m ago$/);
});

Deno.test("without an agent the file is read, by the manifest's name too", async () => {
  const text = await explain("web", noAgent, file(record("u-web", "web-n", 9, "R")));
  assert.match(
    text,
    /^The agent does not answer \(no agent runs\), so only its journal file is looked at\.\n\nPod default\/web-n/,
  );
});

Deno.test("a pod that nobody knows, with a manifest that cannot be used", async () => {
  const problems = [{ where: "/m/nope.yaml", problem: "spec.containers is missing" }];
  await assert.rejects(
    explain("nope", agent({ manifestProblems: problems })),
    /knows a pod "nope"; there are: web-n\n\/m\/nope\.yaml cannot be used: spec\.containers is missing/,
  );
  await assert.rejects(
    explain("nope", noAgent),
    /the journal file in \/r knows no pod "nope"\. The agent does not answer/,
  );
});
