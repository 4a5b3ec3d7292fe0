import { KubeletError, messageOf } from "../../mod/base/errors.ts";
import { ApiError } from "../../mod/kube/api/types.ts";
import { type Payload, writeAtomically } from "./atomic_writer.ts";
import { giveVolume, makeDirectory, makeTmpfs, type MemoryVolumes, mountedType } from "./empty_dir.ts";
import { nestedMountPoints } from "./nested.ts";
import type { SetUpContext } from "./plugin.ts";
import type { MountedVolume } from "./types.ts";

/** Where a volume's files live: in memory within these bounds, or on the node's disk. */
export type Medium = { readonly memory: MemoryVolumes } | "disk";

function mountedAs({ volume, dir }: SetUpContext): MountedVolume {
  return { name: volume.name, hostPath: dir, readOnly: true, selinuxRelabel: true };
}

/** Shows a payload in a volume, as secret, configMap, projected and downwardAPI volumes do. */
export async function showPayload(context: SetUpContext, payload: Payload, medium: Medium): Promise<MountedVolume> {
  const { host, clock, dir, pod, podUid, volume, log } = context;
  let fresh: boolean;
  if (medium === "disk") {
    fresh = !await isShown(context, medium);
    if (fresh) await makeDirectory(context);
  } else fresh = await makeTmpfs(context, medium.memory);
  const gid = pod.spec.securityContext?.fsGroup;
  if (fresh) await giveVolume(context, true);
  for (const nested of nestedMountPoints(pod, volume.name)) await host.mkdir(`${dir}/${nested}`, { mode: 0o755 });
  if (await writeAtomically({ host, clock, target: dir, payload, gid })) {
    log.detail(4, "volume contents written", { podUid, volume: volume.name, files: payload.size });
  }
  return mountedAs(context);
}

/** True when the volume shows contents that an earlier set-up has finished. */
async function isShown(context: SetUpContext, medium: Medium): Promise<boolean> {
  if (await context.host.stat(`${context.dir}/..data`) === undefined) return false;
  return medium === "disk" || await mountedType(context) === "tmpfs";
}

/**
 * Gathers a payload and shows it. While the API server cannot be asked, what the volume shows already stays: a pod must
 * be able to restart its containers then. Rejects with what `gather` rejects with.
 */
export async function showGathered(
  context: SetUpContext,
  gather: () => Promise<Payload>,
  medium: Medium,
): Promise<MountedVolume> {
  let payload: Payload;
  try {
    payload = await gather();
  } catch (thrown) {
    if (context.signal.aborted || !nobodyKnows(thrown) || !await isShown(context, medium)) throw thrown;
    const { log, volume, podUid } = context;
    log.warn("the volume keeps its contents: the API server cannot be asked for newer ones", {
      volume: volume.name,
      podUid,
      error: messageOf(thrown),
    });
    return mountedAs(context);
  }
  return await showPayload(context, payload, medium);
}

/** True when a read failed without saying anything about the object: the server is away, not itself, or does not know us. */
function nobodyKnows(thrown: unknown): boolean {
  if (thrown instanceof AggregateError) return thrown.errors.every(nobodyKnows);
  if (thrown instanceof ApiError) return thrown.status === 401 || thrown.status === 429 || thrown.status >= 500;
  return thrown instanceof KubeletError && (thrown.code === "Network" || thrown.code === "Timeout");
}
