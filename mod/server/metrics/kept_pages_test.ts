import assert from "@assert";
import { FakeClock } from "../../base/fake_clock.ts";
import { KeptPages } from "./kept_pages.ts";

Deno.test("a page is made once of a collection, anew of another, and let go when nobody asks", async () => {
  const clock = new FakeClock();
  const pages = new KeptPages(clock);
  let made = 0;
  const get = (of: object | undefined, name = "a") => pages.get(name, of, () => `page ${++made}`);
  const [one, two] = [{}, {}];
  const [first, same] = await Promise.all([get(one), get(one)]);
  assert.equal(first, same);
  assert.equal(new TextDecoder().decode(first), "page 1");
  assert.notEqual(await get(one, "b"), first);
  assert.notEqual(await get(two), first);
  assert.equal(made, 3);
  await clock.advance(1500);
  assert.equal(clock.pending, 0);
  await get(two);
  assert.equal(made, 4);
  // What could not be collected has no identity.
  await get(undefined);
  await get(undefined);
  assert.equal(made, 6);
  await clock.advance(1500);
});

Deno.test("a page that cannot be made is tried again", async () => {
  const clock = new FakeClock();
  const pages = new KeptPages(clock);
  const of = {};
  await assert.rejects(pages.get("a", of, () => Promise.reject(new Error("no"))), /no/);
  assert.equal(clock.pending, 0);
  assert.equal(new TextDecoder().decode(await pages.get("a", of, () => "yes")), "yes");
  await clock.advance(1500);
});
