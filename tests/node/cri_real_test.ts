import { type Harness } from "../../cri/contract/scene.ts";
import { runContract } from "../../cri/contract_test_suite.ts";
import type { Flavour } from "../../cri/fake/state.ts";
import { createImageClient, createRuntimeClient } from "../../cri/grpc.ts";
import { systemClock } from "../../mod/base/clock.ts";
import { removeCgroup } from "../../scripts/node/cgroups.ts";
import { startContainerd } from "../../scripts/node/containerd.ts";
import { ensureContainerd2 } from "../../scripts/node/containerd2.ts";

/** Runs the contract suite against a private containerd with a socket, network and state of its own. Needs root. */
async function real(t: Deno.TestContext, flavour: Flavour): Promise<void> {
  const name = `cri${flavour === "2" ? "2" : "1"}`;
  await using containerd = await startContainerd({
    name,
    version: flavour === "2" ? "v2" : "debian",
    ...(flavour === "2" ? { binDir: await ensureContainerd2() } : {}),
    bridge: "dlcri0",
    subnet: "10.79.0.0/24",
  });
  await containerd.importImages();
  const directory = await Deno.makeTempDir({ prefix: "denolet-contract-" });
  const { endpoint } = containerd;
  using runtime = createRuntimeClient({ endpoint, timeoutMs: 60_000 });
  using images = createImageClient({ endpoint, timeoutMs: 60_000 });
  const harness: Harness = {
    runtime,
    images,
    flavour,
    directory,
    now: () => Date.now(),
    pass: (ms) => systemClock.sleep(ms),
    settle: (call) => call,
    async restart(ms) {
      await containerd.kill("SIGKILL");
      await systemClock.sleep(ms);
      await containerd.start();
    },
  };
  try {
    await runContract(t, harness);
  } finally {
    await Deno.remove(directory, { recursive: true });
    await removeCgroup("/denolet-contract");
  }
}

Deno.test("containerd 1.6 keeps the contract", (t) => real(t, "1.6"));
Deno.test("containerd 2 keeps the contract", (t) => real(t, "2"));
