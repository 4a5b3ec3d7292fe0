import type { SnapshotContainer } from "../../cri/fake/snapshot.ts";
import type { Told } from "./kill_run.ts";

/** Milliseconds that a kill may put something off: the time without an agent, its start, and a relist. */
const slackMs = 4000;

/** What differs between a run in which the agent was killed and one in which it was not, as far as it may not. */
export function differences(quiet: Told, killed: Told): string[] {
  return [
    ...killed.problems,
    ...compareLives(livesOf(quiet), livesOf(killed)),
    ...compareSandboxes(quiet, killed),
    ...compareWords(quiet, killed),
  ];
}

/** The instances of each container that have run, oldest first. */
function livesOf(told: Told): Map<string, SnapshotContainer[]> {
  const lives = new Map<string, SnapshotContainer[]>();
  for (const one of told.containers.values()) {
    if (one.startedAt === 0) continue;
    const key = `${one.podName} ${one.uid.slice(0, 8)} ${one.name}`;
    lives.set(key, [...lives.get(key) ?? [], one]);
  }
  for (const list of lives.values()) list.sort((a, b) => a.startedAt - b.startedAt);
  return lives;
}

function compareLives(
  quiet: ReadonlyMap<string, readonly SnapshotContainer[]>,
  killed: ReadonlyMap<string, readonly SnapshotContainer[]>,
): string[] {
  const problems: string[] = [];
  for (const [key, before] of quiet) {
    const after = killed.get(key) ?? [];
    const counts = (list: readonly SnapshotContainer[]) => list.map((c) => c.attempt).join(", ");
    if (counts(before) !== counts(after)) {
      problems.push(`${key}: the restart counts are ${counts(after)}, not ${counts(before)}`);
      continue;
    }
    for (let i = 1; i < before.length; i++) {
      // One that was removed as soon as it had ended was never seen to have ended.
      if (!before[i - 1]?.finishedAt || !after[i - 1]?.finishedAt) continue;
      const pause = (list: readonly SnapshotContainer[]) => (list[i]?.startedAt ?? 0) - (list[i - 1]?.finishedAt ?? 0);
      const was = pause(before), is = pause(after);
      if (is < was - slackMs || is > was + slackMs) {
        problems.push(`${key}: restart ${i} came ${is} ms after its end, not ${was} ms`);
      }
    }
  }
  for (const key of killed.keys()) if (!quiet.has(key)) problems.push(`${key}: ran only with the kill`);
  return problems;
}

function compareSandboxes(quiet: Told, killed: Told): string[] {
  const count = (told: Told) => {
    const counts = new Map<string, number>();
    for (const { uid } of told.sandboxes.values()) counts.set(uid, (counts.get(uid) ?? 0) + 1);
    return counts;
  };
  const after = count(killed);
  return [...count(quiet)].filter(([uid, number]) => after.get(uid) !== number)
    .map(([uid, number]) => `${uid}: ${after.get(uid) ?? 0} sandboxes, not ${number}`);
}

/** What is said with the kill may leave out what was said without it, but says nothing else and ends in the same way. */
function compareWords(quiet: Told, killed: Told): string[] {
  const problems: string[] = [];
  for (const [what, before] of quiet.said) {
    const after = killed.said.get(what) ?? [];
    let from = 0;
    const flip = after.find((word) => {
      const at = before.indexOf(word, from);
      if (at >= 0) from = at;
      return at < 0;
    });
    if (flip !== undefined || after.at(-1) !== before.at(-1)) {
      problems.push(`${what}: ${after.join(" → ")}, not ${before.join(" → ")}`);
    }
  }
  return problems;
}
