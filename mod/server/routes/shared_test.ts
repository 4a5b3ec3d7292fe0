import assert from "@assert";
import { turn } from "../../base/fake_clock.ts";
import { Shared } from "./shared.ts";

function scene() {
  const begun: PromiseWithResolvers<number>[] = [];
  const shared = new Shared(() => {
    const one = Promise.withResolvers<number>();
    begun.push(one);
    return one.promise;
  });
  const settle = async () => {
    for (let i = 0; i < 5; i++) await turn();
  };
  return { begun, shared, settle };
}

Deno.test("all who come while work is under way share the next, never that which was begun before them", async () => {
  const { begun, shared, settle } = scene();
  const first = shared.ask();
  const others = Array.from({ length: 200 }, () => shared.ask());
  await settle();
  assert.equal(begun.length, 1);
  begun[0]?.resolve(1);
  assert.equal(await first, 1);
  await settle();
  assert.equal(begun.length, 2);
  const late = shared.ask();
  begun[1]?.resolve(2);
  assert.deepEqual(new Set(await Promise.all(others)), new Set([2]));
  await settle();
  assert.equal(begun.length, 3);
  begun[2]?.resolve(3);
  assert.equal(await late, 3);
  await settle();
  assert(shared.idle);
  const alone = shared.ask();
  assert.equal(begun.length, 4);
  begun[3]?.resolve(4);
  assert.equal(await alone, 4);
});

Deno.test("a failure is told to those who share it, and the next ones are asked for anew", async () => {
  const { begun, shared, settle } = scene();
  const first = assert.rejects(shared.ask(), /no/);
  const second = shared.ask();
  begun[0]?.reject(new Error("no"));
  await first;
  await settle();
  begun[1]?.resolve(2);
  assert.equal(await second, 2);
});
