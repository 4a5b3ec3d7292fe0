import assert from "@assert";
import { isAborted } from "../../mod/base/errors.ts";
import { turn } from "../../mod/base/fake_clock.ts";
import { HangGuard } from "./hang_guard.ts";

const { signal } = new AbortController();
const forever = () => new Promise<void>(() => {});

Deno.test("operations of one pod that hang take four places only; other pods go on", async () => {
  const guard = new HangGuard();
  let begun = 0;
  const hang = () => {
    begun++;
    return forever();
  };
  for (let i = 0; i < 40; i++) void guard.run("u1", signal, hang);
  await turn();
  assert.equal(begun, 4);
  assert.equal(await guard.run("u2", signal, () => Promise.resolve("done")), "done");
});

Deno.test("with many pods that hang, fewer operations are under way than the process has threads", async () => {
  const guard = new HangGuard();
  let begun = 0;
  for (let i = 0; i < 100; i++) {
    void guard.run(`u${i}`, signal, () => {
      begun++;
      return forever();
    });
  }
  await turn();
  assert.equal(begun, 20);
});

Deno.test("one that waits can be called off, and what ends makes room", async () => {
  const guard = new HangGuard();
  const gate = Promise.withResolvers<void>();
  const first = [1, 2, 3, 4].map(() => guard.run("u1", signal, () => gate.promise));
  const leave = new AbortController();
  const calledOff = guard.run("u1", leave.signal, () => Promise.resolve());
  const waiting = guard.run("u1", signal, () => Promise.resolve("in"));
  await turn();
  leave.abort();
  await assert.rejects(calledOff, isAborted);
  gate.resolve();
  await Promise.all(first);
  assert.equal(await waiting, "in");
});
