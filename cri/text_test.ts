import assert from "@assert";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { ImageSpecSchema } from "./gen/runtime_pb.ts";
import { readTextFast } from "./text.ts";

Deno.test("text: ASCII the fast way, other text as before, however often it is switched on", () => {
  const bytes = (text: string) => new TextEncoder().encode(text);
  const read = (field: Uint8Array) =>
    fromBinary(ImageSpecSchema, Uint8Array.of(0x0a, field.length, ...field), { readUnknownFields: false }).image;
  for (let times = 0; times < 2; times++) {
    readTextFast();
    for (const text of ["plain", "grüße 漢字 🙂", "\ufeffmark", ""]) {
      assert.equal(read(bytes(text)), text);
      assert.deepEqual(
        toBinary(ImageSpecSchema, fromBinary(ImageSpecSchema, Uint8Array.of(0x0a, bytes(text).length, ...bytes(text)))),
        text === "" ? new Uint8Array() : Uint8Array.of(0x0a, bytes(text).length, ...bytes(text)),
      );
    }
    // Proto3 wants UTF-8; bytes that are none are an error, as without this.
    assert.throws(() => read(Uint8Array.of(0xff, 0xfe)));
  }
});
