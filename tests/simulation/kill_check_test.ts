import assert from "@assert";
import { differences } from "./kill_check.ts";
import { type KillPoint, play, type Scenario, type Told } from "./kill_run.ts";
import { scenarios } from "./kill_scenarios.ts";
import { rootDir } from "./world.ts";

function scenario(name: RegExp): Scenario {
  const found = scenarios.find((one) => name.test(one.name));
  if (!found) throw new Error(`no scenario ${name}`);
  return found;
}

/** What is found at the kill points that `at` chooses when files are lost with the agent. */
async function losing(which: Scenario, lose: string[], at: (quiet: Told) => KillPoint[]): Promise<string> {
  const quiet = await play(which, { seed: 1 });
  const found = [];
  for (const kill of at(quiet)) found.push(...differences(quiet, await play(which, { seed: 1, kills: [kill], lose })));
  return found.join("\n");
}

const starts = ({ calls }: Told) =>
  calls.flatMap(({ name }, call) => name === "startContainer" ? [{ call: call + 3, when: "after" as const }] : []);

Deno.test("an agent that forgets its back-off is found out", async () => {
  const found = await losing(scenario(/crashes again/), [`${rootDir}/restart_backoff.json`], starts);
  assert.match(found, /setup: restart 2 came \d+ ms after its end, not 10000 ms/);
});

Deno.test("an agent that forgets the pods' statuses is found out", async () => {
  const found = await losing(scenario(/sidecar and probes starts/), [`${rootDir}/pod_status`], starts);
  assert.match(found, /main ready: true → false → true, not true|ready: false → true → false → true, not false → true/);
});

Deno.test("each kind of difference is told", async () => {
  const quiet = await play(scenario(/removed while another/), { seed: 1 });
  assert.deepEqual(differences(quiet, quiet), []);
  const [first] = quiet.containers.values();
  const [box] = quiet.sandboxes.values();
  const [said] = quiet.said;
  if (!first || !box || !said) throw new Error("nothing was seen");
  const [word, list] = said;
  const one = (change: Partial<Told>) => differences(quiet, { ...quiet, ...change }).join("\n");
  assert.match(one({ problems: ["left: x"] }), /left: x/);
  const again = { ...first, id: "again", attempt: 1, startedAt: first.startedAt + 1 };
  assert.match(one({ containers: new Map([...quiet.containers, ["again", again]]) }), /restart counts are 0, 1, not 0/);
  const other = { ...first, id: "other", name: "other" };
  assert.match(one({ containers: new Map([...quiet.containers, ["o", other]]) }), /ran only with the kill/);
  assert.match(one({ sandboxes: new Map([...quiet.sandboxes, ["b", { ...box, id: "b" }]]) }), /2 sandboxes, not 1/);
  assert.match(one({ said: new Map([...quiet.said, [word, [...list, "Failed", ...list]]]) }), /Failed → .*, not /);
});
