import assert from "@assert";
import { parseReference } from "./reference.ts";

const hex = "0123456789abcdef".repeat(4);

Deno.test("names are read and get their default tag", () => {
  const cases: [string, string, string | undefined][] = [
    ["busybox", "busybox:latest", "latest"],
    ["busybox:1.36", "busybox:1.36", "1.36"],
    ["library/busybox", "library/busybox:latest", "latest"],
    ["localhost/x", "localhost/x:latest", "latest"],
    ["my.host:5000/a/b-c_d__e.f:V1.2-x", "my.host:5000/a/b-c_d__e.f:V1.2-x", "V1.2-x"],
    ["my.host:5000/a", "my.host:5000/a:latest", "latest"],
    ["[fd00::1]:5000/a", "[fd00::1]:5000/a:latest", "latest"],
    ["HOST/a", "HOST/a:latest", "latest"],
    [`a@sha256:${hex}`, `a@sha256:${hex}`, undefined],
    [`a:1@sha256:${hex}`, `a:1@sha256:${hex}`, "1"],
  ];
  for (const [text, image, tag] of cases) {
    const got = parseReference(text);
    assert.equal(got.image, image);
    assert.equal(got.tag, tag);
  }
});

Deno.test("what is no name is refused with the reason", () => {
  const cases: [string, RegExp][] = [
    ["", /^Error: invalid reference format$/],
    [" busybox", /invalid reference format$/],
    ["busybox ", /invalid reference format$/],
    ["a//b", /invalid reference format$/],
    ["a:", /invalid reference format$/],
    ["a:b:c", /invalid reference format$/],
    ["-a", /invalid reference format$/],
    ["https://x/y", /invalid reference format$/],
    ["BusyBox", /repository name \(library\/BusyBox\) must be lowercase/],
    ["x.y/Foo:1", /repository name \(Foo\) must be lowercase/],
    ["a b/c", /invalid reference format$/],
    [hex, /cannot specify 64-byte hexadecimal strings/],
    [`a@sha256:${hex.slice(1)}`, /invalid checksum digest length/],
    [`a@md5:${hex}`, /unsupported digest algorithm/],
    [`a@sha256:${hex.replace("a", "A")}`, /must be lowercase|invalid checksum digest format/],
    [`a:${"t".repeat(129)}`, /invalid reference format$/],
    ["a".repeat(256), /must not be more than 255 characters/],
    ["a".repeat(250), /must not be more than 255 characters/],
    ["a/".repeat(100_000), /the name is too long/],
    ["a\u0000b", /invalid reference format$/],
  ];
  for (const [text, want] of cases) assert.throws(() => parseReference(text), want, text.slice(0, 40));
});
