import { containerCases } from "./contract/containers.ts";
import { otherCases } from "./contract/others.ts";
import { sandboxCases } from "./contract/sandboxes.ts";
import { type Case, type Harness, Scene } from "./contract/scene.ts";

/**
 * The behaviour that the agent relies on, in cases that the fake and the real containerd 1.6 and 2 must pass alike.
 * Where the two differ the case says how (`scene.harness.flavour`), and the fake differs with them.
 *
 * What may surprise, as seen on 1.6.20 and 2.4.2:
 * - A container that ends while containerd 2 is away is told as 255, `Unknown`, finished when containerd came back; its
 *   real exit code is lost. 1.6 keeps it.
 * - StopContainer and StopPodSandbox of what is not there: NotFound in 1.6, done in 2. Removal is done in both.
 * - 1.6 says NotFound to CreateContainer in a sandbox that exists but has stopped: the sandbox is not gone.
 * - 2 says Unavailable to PodSandboxStats of a stopped sandbox: the runtime is not down. In 1.6 one stopped sandbox
 *   fails the whole ListPodSandboxStats.
 * - A name that is taken: Unknown in 1.6, FailedPrecondition in 2; never AlreadyExists. A stopped sandbox keeps its name.
 * - A start in a stopped sandbox, or of a program that is not there, turns a created container into an exited one: 128,
 *   `StartError`, `startedAt` 0. No event tells of it.
 * - A start that is refused (running, exited) changes nothing.
 * - A sandbox on the node's network must not be given a host name: runc refuses it.
 * - Lists come in no order: sort by creation. `imageRef` in a list is always the image's id, in a status the digest
 *   where the image has one; an imported image has none. `imageId` is empty in 1.6.
 * - A status names the image by its first tag now, not by what the container was made with, while the image is there.
 * - OOMKilled may be told a moment after the exit (`Error` first), for it is another event; on a busy machine it may never be.
 * - UpdateContainerResources succeeds, and is remembered, on exited containers.
 * - ExecSync of a command that cannot be run fails with Unknown; it has no exit code. Over its limit: DeadlineExceeded.
 * - An empty id is Unknown, not NotFound; the beginning of an id stands for it where only one has it, in filters too.
 * - 2's Status may carry a false condition (`ContainerdHasNoDeprecationWarnings`) on a node that is ready.
 * - 2 answers PodSandboxStatus with `info` also when `verbose` is not set.
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
