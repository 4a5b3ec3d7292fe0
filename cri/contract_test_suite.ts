import { containerCases } from "./contract/containers.ts";
import { otherCases } from "./contract/others.ts";
import { sandboxCases } from "./contract/sandboxes.ts";
import { type Case, type Harness, Scene } from "./contract/scene.ts";

/**
 * The behaviour that the agent relies on, in cases that the fake and the real containerd 1.6 and 2 must pass alike.
 * Where the two differ the case says how (`scene.harness.flavour`), and the fake differs with them.
 */
export const contractCases: readonly Case[] = [...sandboxCases, ...containerCases, ...otherCases];

/** Runs every case as a step of `t`, each in a pod of its own. */
export async function runContract(t: Deno.TestContext, harness: Harness): Promise<void> {
  for (const { name, run } of contractCases) {
    await t.step(name, async () => {
      await using scene = new Scene(harness);
      await run(scene);
    });
  }
}
