import { KubeletError, messageOf } from "../../mod/base/errors.ts";
import type { Host } from "../../mod/base/host.ts";

/** Ids are 32 bits wide. */
const allIds = 2 ** 32;
/** The user whose subordinate ids are the pods'. */
const user = "kubelet";
const getsubids = "/usr/bin/getsubids";

/** The node's ids for pods: `count` ranges of `length` ids each, the first at `first`. */
export interface IdRanges {
  readonly first: number;
  readonly length: number;
  readonly count: number;
}

/** Every id but those of the first range, which is the node's own (with root in it). */
export function defaultIds(idsPerPod: number): { first: number; total: number } {
  return { first: idsPerPod, total: allIds - idsPerPod };
}

/** What `getsubids kubelet` prints: one line, `0: kubelet <first> <count>`. Throws BadConfig. */
export function parseSubIds(text: string): { first: number; total: number } {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const shown = JSON.stringify(text.slice(0, 200));
  if (lines.length !== 1) {
    throw new KubeletError("BadConfig", `getsubids ${user} printed ${shown}: there must be exactly one range of ids`);
  }
  const [, , first = "", total = "", ...more] = (lines[0] ?? "").trim().split(/\s+/);
  const fits = (digits: string) => /^\d{1,10}$/.test(digits) && Number(digits) < allIds;
  if (!fits(first) || !fits(total) || more.length > 0) {
    throw new KubeletError("BadConfig", `getsubids ${user} printed ${shown}: not "0: ${user} FIRST COUNT"`);
  }
  return { first: Number(first), total: Number(total) };
}

/** Cuts the ids into ranges, one for each pod. Throws BadConfig when they do not divide, or do not last for maxPods. */
export function divideIds(
  { first, total }: { first: number; total: number },
  { idsPerPod, maxPods }: { idsPerPod: number; maxPods: number },
): IdRanges {
  const refuse = (what: string): never => {
    throw new KubeletError(
      "BadConfig",
      `ids of user namespaces: ${what}; mend the lines of user ${user} in /etc/subuid and /etc/subgid, or ` +
        "userNamespaces.idsPerPod",
    );
  };
  if (!Number.isSafeInteger(idsPerPod) || idsPerPod < 65_536 || idsPerPod % 65_536 !== 0) {
    refuse(`${idsPerPod} ids for each pod are no multiple of 65536`);
  }
  if (first % idsPerPod !== 0) refuse(`the first id ${first} is no multiple of ${idsPerPod}`);
  // The first range holds the node's root: who has it has the node.
  if (first < idsPerPod) refuse(`the first id ${first} is below ${idsPerPod}`);
  if (total % idsPerPod !== 0) refuse(`their number ${total} is no multiple of ${idsPerPod}`);
  if (first + total > allIds) refuse(`${total} ids from ${first} on go beyond 32 bits`);
  const count = total / idsPerPod;
  if (count < maxPods) refuse(`${total} ids are not enough for ${maxPods} pods of ${idsPerPod} ids`);
  return { first, length: idsPerPod, count };
}

/**
 * The ids for pods (features.md C35): those of `getsubids` when there are a user `kubelet` and that program, else all
 * above the first range. Rejects with BadConfig when what is configured cannot be used.
 */
export async function nodeIds(
  host: Pick<Host, "readText" | "stat" | "run">,
  options: { idsPerPod: number; maxPods: number },
): Promise<IdRanges> {
  let ids = defaultIds(options.idsPerPod);
  if (await hasUser(host) && await host.stat(getsubids)) {
    const [uids, gids] = await Promise.all([ask(host, [user]), ask(host, ["-g", user])]);
    if (uids !== gids) {
      throw new KubeletError("BadConfig", `/etc/subuid and /etc/subgid must give user ${user} the same ids`);
    }
    ids = parseSubIds(uids);
  }
  return divideIds(ids, options);
}

async function hasUser(host: Pick<Host, "readText" | "stat">): Promise<boolean> {
  if (!await host.stat("/etc/passwd")) return false;
  return (await host.readText("/etc/passwd")).split("\n").some((line) => line.startsWith(`${user}:`));
}

async function ask(host: Pick<Host, "run">, args: string[]): Promise<string> {
  try {
    const { code, stdout, stderr } = await host.run(getsubids, args);
    if (code !== 0) throw new Error(stderr.trim() || `exit code ${code}`);
    return stdout;
  } catch (thrown) {
    throw new KubeletError("BadConfig", `getsubids ${args.join(" ")} failed: ${messageOf(thrown)}`, { cause: thrown });
  }
}
