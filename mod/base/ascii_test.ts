import assert from "@assert";
import { asciiText } from "./ascii.ts";

Deno.test("ASCII: short texts are read as they are; anything else is not read", () => {
  const bytes = (text: string) => new TextEncoder().encode(text);
  for (const text of ["", "a", "x".repeat(256), "a\u007f\u0000b\n"]) assert.equal(asciiText(bytes(text)), text);
  for (const text of ["x".repeat(257), "ä", "abc\u0080", "\ufeffabc"]) assert.equal(asciiText(bytes(text)), undefined);
  assert.equal(asciiText(bytes("xabcx").subarray(1, 4)), "abc", "a part of an array is read from its own beginning");
});
