import type { Clock } from "../../base/clock.ts";
import { Deadline } from "../../base/deadline.ts";
import { KubeletError } from "../../base/errors.ts";
import type { Informer, KubeObject } from "./types.ts";

/**
 * Waits until an informer has read its first list, for `ms` milliseconds at most. Rejects with a Network error of the
 * given text when it has not by then, and with Aborted when the caller's signal aborts.
 */
export async function awaitFirstList(
  informer: Pick<Informer<KubeObject>, "synced" | "whenSynced">,
  options: { clock: Clock; ms: number; signal: AbortSignal; late: string },
): Promise<void> {
  if (informer.synced) return;
  const { clock, ms, signal, late } = options;
  using deadline = new Deadline({ clock, signal, ms, what: "no first list" });
  try {
    await informer.whenSynced(deadline.signal);
  } catch (thrown) {
    if (!deadline.over) throw thrown;
    throw new KubeletError("Network", late, { cause: thrown });
  }
}
