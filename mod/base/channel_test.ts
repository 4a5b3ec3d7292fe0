import assert from "@assert";
import { Channel } from "./channel.ts";
import { isAborted } from "./errors.ts";

Deno.test("values come out in order", async () => {
  const channel = new Channel<number>();
  channel.push(1);
  channel.push(2);
  assert.equal(await channel.take(), 1);
  assert.equal(await channel.take(), 2);
});

Deno.test("a keyed value replaces the waiting one and keeps its place", async () => {
  const channel = new Channel<string>();
  channel.latest("a", "a1");
  channel.push("b");
  channel.latest("a", "a2");
  assert.deepEqual([await channel.take(), await channel.take()], ["a2", "b"]);
  assert.equal(channel.size, 0);
});

Deno.test("a waiting consumer gets a later value", async () => {
  const channel = new Channel<number>();
  const taken = channel.take();
  channel.push(7);
  assert.equal(await taken, 7);
});

Deno.test("take rejects with Aborted, values ends quietly", async () => {
  const channel = new Channel<number>();
  const abort = new AbortController();
  const taken = channel.take(abort.signal);
  abort.abort();
  await assert.rejects(taken, (e: unknown) => isAborted(e));
  const got: number[] = [];
  channel.push(1);
  for await (const value of channel.values(abort.signal)) got.push(value);
  assert.deepEqual(got, []);
});

Deno.test("closing lets the consumer finish what is queued", async () => {
  const channel = new Channel<number>();
  channel.push(1);
  channel.close();
  channel.push(2);
  const got: number[] = [];
  for await (const value of channel.values()) got.push(value);
  assert.deepEqual(got, [1]);
});
