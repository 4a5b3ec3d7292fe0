import assert from "@assert";
import { KubeletError } from "./errors.ts";
import { FakeClock, turn } from "./fake_clock.ts";
import { Scope } from "./scope.ts";

Deno.test("closing a scope aborts its tasks and waits for them", async () => {
  const clock = new FakeClock();
  const seen: string[] = [];
  const scope = new Scope("s");
  scope.spawn("sleeper", async (signal) => {
    try {
      await clock.sleep(1000, signal);
    } finally {
      seen.push("cleaned up");
    }
  });
  await scope.close();
  assert.deepEqual(seen, ["cleaned up"]);
  assert.equal(clock.pending, 0);
});

Deno.test("a failing task reaches the owner with its name", async () => {
  const failures: string[] = [];
  const scope = new Scope("root", { onFailure: (error, task) => failures.push(`${task}: ${error.message}`) });
  scope.spawn("bad", () => Promise.reject(new KubeletError("Internal", "broke")));
  scope.child("inner").spawn("worse", () => Promise.reject(new Error("broke too")));
  await turn();
  await scope.close();
  assert.deepEqual(failures, ["root/bad: broke", "root/inner/worse: broke too"]);
});

Deno.test("without an owner, close throws what failed", async () => {
  const scope = new Scope("root");
  scope.spawn("bad", () => Promise.reject(new Error("broke")));
  await turn();
  await assert.rejects(scope.close(), AggregateError);
});

Deno.test("a child is closed with its parent, and leaves no listener when it closes first", async () => {
  const parent = new Scope("p");
  const child = parent.child("c");
  let aborted = false;
  child.spawn("t", (signal) =>
    new Promise((resolve) =>
      signal.addEventListener("abort", () => {
        aborted = true;
        resolve();
      })
    ));
  await parent.close();
  assert.equal(aborted, true);
  const other = new Scope("p2");
  await other.child("c2").close();
  assert.equal(other.size, 0);
  await other.close();
});

Deno.test("a scope below an aborted signal starts aborted", async () => {
  const scope = new Scope("late", { signal: AbortSignal.abort() });
  let ran = false;
  scope.spawn("t", (signal) => {
    ran = signal.aborted;
    return Promise.resolve();
  });
  await scope.close();
  assert.equal(ran, true);
});

Deno.test("settled waits without aborting", async () => {
  const clock = new FakeClock();
  const scope = new Scope("s");
  let done = false;
  scope.spawn("t", async () => {
    await clock.sleep(10);
    done = true;
  });
  const settled = scope.settled();
  await clock.advance(10);
  await settled;
  assert.equal(done, true);
  await scope.close();
});

Deno.test("what a task throws after it was called off is not a failure, whatever its words", async () => {
  const failures: string[] = [];
  const scope = new Scope("s", { onFailure: (error) => failures.push(error.message) });
  scope.spawn("cut short", async (signal) => {
    await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    throw new KubeletError("Host", "read: interrupted");
  });
  await scope.close();
  assert.deepEqual(failures, []);
});
