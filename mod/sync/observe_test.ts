import assert from "@assert";
import type { ObservedContainer, ObservedSandbox } from "../pod/observed.ts";
import { newestFirst } from "./observe.ts";

const container = (id: string, restartCount: number, createdAt: number) =>
  ({ id, restartCount, createdAt }) as ObservedContainer;
const sandbox = (id: string, attempt: number, createdAt: number) => ({ id, attempt, createdAt }) as ObservedSandbox;

const orders: [string, (ObservedContainer | ObservedSandbox)[], string[]][] = [
  ["by attempt", [container("a", 0, 10), container("b", 1, 20)], ["b", "a"]],
  ["a clock that was set back makes nothing older", [container("a", 0, 900), container("b", 1, 20)], ["b", "a"]],
  ["sandboxes too", [sandbox("a", 3, 900), sandbox("b", 4, 20)], ["b", "a"]],
  ["of one attempt by time", [container("a", 0, 10), container("b", 0, 20)], ["b", "a"]],
];

for (const [what, list, want] of orders) {
  Deno.test(`newest first: ${what}`, () => assert.deepEqual(list.sort(newestFirst).map(({ id }) => id), want));
}
