import type { Observer } from "./support.ts";

/** Everything by which one sees that a container was touched: its id, start, attempt and state; of each pod. */
export async function lives(seen: Observer, names: readonly string[]): Promise<readonly object[]> {
  const all: object[] = [];
  for (const name of names) {
    for (const { id } of await seen.sandboxes(name)) all.push({ name, sandbox: id });
    for (const { id } of await seen.containers(name)) {
      const { status } = await seen.detail(id);
      const { startedAt, finishedAt, state, metadata } = status;
      all.push({ name, id, startedAt, finishedAt, state, metadata });
    }
  }
  return all;
}
