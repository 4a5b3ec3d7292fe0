import assert from "@assert";
import { fnv1a128, fnv1a32, fnv1a64 } from "./hash.ts";

// Published check values of FNV-1a.
const cases: [string, number, bigint, bigint][] = [
  ["", 0x811c9dc5, 0xcbf29ce484222325n, 0x6c62272e07bb014262b821756295c58dn],
  ["a", 0xe40c292c, 0xaf63dc4c8601ec8cn, 0xd228cb696f1a8caf78912b704e4a8964n],
  ["foobar", 0xbf9cf968, 0x85944171f73967e8n, 0x343e1662793c64bf6f0d3597ba446f18n],
];

for (const [text, h32, h64, h128] of cases) {
  Deno.test(`FNV-1a of ${JSON.stringify(text)}`, () => {
    assert.deepEqual([fnv1a32(text), fnv1a64(text), fnv1a128(text)], [h32, h64, h128]);
  });
}
