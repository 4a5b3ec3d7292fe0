import { systemClock } from "../mod/base/clock.ts";
import { clientsOf } from "./cluster/clients.ts";
import { ControlPlane } from "./cluster/control_plane.ts";
import { ensureControlPlane } from "./cluster/programs.ts";
import { complain, print } from "./lib/print.ts";
import { optionsOf, runScript, UsageError } from "./lib/script.ts";
import { freePort } from "./node/agent_node.ts";
import { startContainerd } from "./node/containerd.ts";
import { ensureContainerd2 } from "./node/containerd2.ts";
import { ensureInstalled } from "./node/install.ts";
import { differences, sorted, told } from "./parity/differences.ts";
import { intended } from "./parity/intended.ts";
import type { Json } from "./parity/plain.ts";
import { runPods } from "./parity/run.ts";
import type { Scenario } from "./parity/scenario.ts";
import { objects, scenarios } from "./parity/scenarios.ts";
import { type Side, withSide } from "./parity/sides.ts";

const usage = `deno task parity [OPTIONS]
Runs the same pods on the real kubelet and on ours, one after the other, on one API server and one containerd, and prints
every difference in what they write (Pods, Nodes, Events, Leases) and serve (/configz, /pods, /stats/summary, names of
metrics), but for times, ids, generated names, addresses and measured values. Exit code 1 when there is one that
scripts/parity/intended.ts does not list with its reason. Needs root; five to ten minutes.

  --only NAME        only this pod; may be given several times
  --program PATH     our executable (default: the sources)
  --containerd V     v2 (default) or debian
  --reference FILE   what the real kubelet did in a run before, instead of running it; of the same pods
  --ours FILE        the same of ours; with both, nothing is run
  --save DIR         keeps what was seen as DIR/reference.json and DIR/ours.json, with their logs
  --within SECONDS   how long a step of a pod may take (default: 180)
  --all              prints the intended differences too`;

const nodeName = "parity";

async function main(args: readonly string[]): Promise<number> {
  const values = optionsOf(args, {
    only: { type: "string", multiple: true, default: [] },
    program: { type: "string" },
    containerd: { type: "string", default: "v2" },
    reference: { type: "string" },
    ours: { type: "string" },
    save: { type: "string" },
    within: { type: "string", default: "180" },
    all: { type: "boolean", default: false },
  });
  if (values.containerd !== "v2" && values.containerd !== "debian") {
    throw new UsageError(`--containerd ${values.containerd}: must be debian or v2`);
  }
  const withinMs = Number(values.within) * 1000;
  if (!(withinMs > 0)) throw new UsageError(`--within ${values.within}: must be seconds`);
  const pods = scenarios(nodeName).filter(({ name }) => values.only.length === 0 || values.only.includes(name));
  const unknown = values.only.filter((name) => !pods.some((one) => one.name === name));
  if (unknown.length > 0) throw new UsageError(`--only ${unknown.join(", ")}: no such pod`);

  const seen: Partial<Record<Side, Json>> = {};
  for (const side of ["reference", "ours"] as const) {
    const path = values[side];
    if (path !== undefined) seen[side] = JSON.parse(await Deno.readTextFile(path));
  }
  const sides = (["reference", "ours"] as const).filter((side) => seen[side] === undefined);
  if (sides.length > 0) await runSides(sides, seen, { ...values, containerd: values.containerd, withinMs, pods });
  return report(seen.reference ?? null, seen.ours ?? null, values.all);
}

interface RunWanted {
  readonly containerd: "v2" | "debian";
  readonly withinMs: number;
  readonly pods: readonly Scenario[];
  readonly program?: string | undefined;
  readonly save?: string | undefined;
}

/** Runs the pods on the kubelets that were not run before; `seen` gets what they did. */
async function runSides(sides: readonly Side[], seen: Partial<Record<Side, Json>>, wanted: RunWanted): Promise<void> {
  const { withinMs, pods } = wanted;
  const started = systemClock.now();
  const log = (line: string) => complain(`${((systemClock.now() - started) / 1000).toFixed(0).padStart(4)} s  ${line}`);
  await ensureInstalled();
  const binDir = wanted.containerd === "v2" ? await ensureContainerd2({ log }) : "/usr/bin";
  await using plane = await ControlPlane.start({ name: nodeName, programs: await ensureControlPlane({ log }) });
  using clients = await clientsOf(plane.adminKubeconfig);
  await using containerd = await startContainerd({ name: nodeName, version: wanted.containerd, binDir });
  await containerd.importImages();
  for (const [path, object] of objects) {
    const { status, text } = await plane.raw(path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(object),
    });
    if (status !== 201) throw new Error(`${path}: ${status} ${text}`);
  }
  if (wanted.save !== undefined) await Deno.mkdir(wanted.save, { recursive: true });
  const options = {
    save: wanted.save,
    plane,
    admin: clients.main,
    containerd,
    nodeName,
    port: freePort(),
    ...(wanted.program === undefined ? {} : { program: wanted.program }),
  };
  for (const side of sides) {
    const say = (line: string) => log(`${side}: ${line}`);
    const tree = await withSide(
      side,
      { ...options, log: say },
      (agent) => runPods({ ...options, agent, scenarios: pods, withinMs, log: say }),
    );
    seen[side] = tree;
    if (wanted.save !== undefined) {
      await Deno.writeTextFile(`${wanted.save}/${side}.json`, `${JSON.stringify(tree, null, 1)}\n`);
    }
  }
}

function report(reference: Json, ours: Json, all: boolean): number {
  const { open, intended: meant, unused } = sorted(differences(reference, ours), intended);
  if (all) {
    for (const { difference, why } of meant) print(`intended: ${told(difference)}\n    because: ${why}`);
    for (const { at } of unused) print(`not seen: ${at}`);
  }
  for (const difference of open) print(told(difference));
  print(`${open.length} differences, and ${meant.length} that are intended`);
  return open.length === 0 ? 0 : 1;
}

if (import.meta.main) await runScript({ name: "parity", usage, main, failed: 2 });
