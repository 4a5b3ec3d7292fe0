import assert from "@assert";
import { jitter, randomHex, seeded } from "./random.ts";

Deno.test("a seed decides everything", () => {
  const draw = (seed: number) => Array.from({ length: 5 }, seeded(seed));
  assert.deepEqual(draw(1), draw(1));
  assert.notDeepEqual(draw(1), draw(2));
  assert.ok(draw(3).every((x) => x >= 0 && x < 1));
});

Deno.test("jitter stays between the value and its spread", () => {
  assert.equal(jitter(() => 0, 100, 0.5), 100);
  assert.ok(jitter(() => 0.999, 100, 0.5) < 150);
});

Deno.test("random hex has two digits a byte", () => {
  assert.match(randomHex(seeded(1), 4), /^[0-9a-f]{8}$/);
  assert.equal(randomHex(() => 0, 2), "0000");
});
