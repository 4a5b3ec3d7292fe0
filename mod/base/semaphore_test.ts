import assert from "@assert";
import { isAborted } from "./errors.ts";
import { turn } from "./fake_clock.ts";
import { Semaphore } from "./semaphore.ts";

Deno.test("no more than the limit hold a place, and waiters go in order", async () => {
  const semaphore = new Semaphore(2);
  const order: number[] = [];
  const gates = [1, 2, 3, 4].map(() => Promise.withResolvers<void>());
  let most = 0, now = 0;
  const all = gates.map((gate, i) =>
    semaphore.use(async () => {
      order.push(i);
      most = Math.max(most, ++now);
      await gate.promise;
      now--;
    })
  );
  await turn();
  assert.deepEqual([order, semaphore.waiting], [[0, 1], 2]);
  for (const gate of gates) gate.resolve();
  await Promise.all(all);
  assert.deepEqual([order, most, semaphore.waiting], [[0, 1, 2, 3], 2, 0]);
});

Deno.test("an aborted waiter leaves the queue, and disposing twice frees one place", async () => {
  const semaphore = new Semaphore(1);
  const held = await semaphore.acquire();
  const abort = new AbortController();
  const waiting = semaphore.acquire(abort.signal);
  abort.abort();
  await assert.rejects(waiting, (e: unknown) => isAborted(e));
  held[Symbol.dispose]();
  held[Symbol.dispose]();
  using _a = await semaphore.acquire();
  const second = semaphore.acquire();
  await turn();
  assert.equal(semaphore.waiting, 1);
  void second;
});
