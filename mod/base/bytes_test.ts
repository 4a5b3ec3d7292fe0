import assert from "@assert";
import { concatBytes } from "./bytes.ts";

Deno.test("bytes: parts in order, none, and empty ones", () => {
  const of = (...bytes: number[]) => Uint8Array.from(bytes);
  assert.deepEqual(concatBytes([of(1, 2), of(), of(3)]), of(1, 2, 3));
  assert.deepEqual(concatBytes([]), of());
  const one = of(1);
  concatBytes([one])[0] = 9;
  assert.deepEqual(one, of(1), "a copy");
});
