import assert from "@assert";
import { FakeClock } from "../base/fake_clock.ts";
import { HeapCare } from "./heap_care.ts";

function made() {
  const clock = new FakeClock();
  let collections = 0;
  const care = new HeapCare({ clock, collect: () => collections++ });
  const work = (times: number) => {
    for (let i = 0; i < times; i++) care.worked();
  };
  return { clock, care, work, collections: () => collections };
}

Deno.test("heap care: garbage is collected once after much work, when nothing was done for a while", async () => {
  const { clock, work, collections } = made();
  work(60);
  await clock.advance(1_900);
  assert.equal(collections(), 0, "not while work may go on");
  work(1);
  await clock.advance(2_000);
  assert.equal(collections(), 0, "there was work meanwhile");
  await clock.advance(2_000);
  assert.equal(collections(), 1);
  await clock.advance(600_000);
  assert.equal(collections(), 1, "nothing was done since");
});

Deno.test("heap care: little work is left alone until it has become much", async () => {
  const { clock, work, collections } = made();
  work(49);
  await clock.advance(600_000);
  assert.equal(collections(), 0);
  work(1);
  await clock.advance(2_000);
  assert.equal(collections(), 1);
  work(49);
  await clock.advance(600_000);
  assert.equal(collections(), 1, "it is counted anew");
});

Deno.test("heap care: nothing is collected after the end", async () => {
  const { clock, care, work, collections } = made();
  work(60);
  care[Symbol.dispose]();
  await clock.advance(600_000);
  assert.equal(collections(), 0);
});
