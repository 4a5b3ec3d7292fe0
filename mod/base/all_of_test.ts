import assert from "@assert";
import { allOf } from "./all_of.ts";
import { FakeClock } from "./fake_clock.ts";

Deno.test("the values come in the order given", async () => {
  const [text, number] = await allOf([Promise.resolve("a"), Promise.resolve(1)]);
  assert.deepEqual([text, number], ["a", 1]);
});

Deno.test("a failure waits for the rest to end", async () => {
  const clock = new FakeClock(0);
  const fail = async (ms: number, message: string) => {
    await clock.sleep(ms);
    throw new Error(message);
  };
  let endedAt: number | undefined;
  const all = allOf([fail(10, "first in order"), fail(5, "first in time"), clock.sleep(30)])
    .catch((e: Error) => e.message).then((message) => {
      endedAt = clock.now();
      return message;
    });
  await clock.advance(100);
  assert.deepEqual([await all, endedAt], ["first in order", 30]);
});
