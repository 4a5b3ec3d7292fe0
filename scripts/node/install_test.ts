import assert from "@assert";
import { isRecent } from "./go_toolchain.ts";
import { ensureInstalled, InstallError, missingPackages, packages } from "./install.ts";

Deno.test("install: nothing is done and nothing said when all is there", async () => {
  const lines: string[] = [];
  await ensureInstalled({ isThere: () => Promise.resolve(true), log: (line) => lines.push(line), uid: 1000 });
  assert.deepEqual(lines, []);
});

Deno.test("install: without root it says what is missing and how to get it", async () => {
  const isThere = (path: string) => Promise.resolve(!path.includes("cni") && path !== "/usr/bin/ctr");
  const refused = ensureInstalled({ isThere, uid: 1000 });
  await assert.rejects(refused, (error: unknown) => {
    if (!(error instanceof InstallError)) return false;
    assert.match(error.message, /missing Debian packages: containerd containernetworking-plugins\./);
    assert.match(error.message, /apt-get install -y --no-install-recommends containerd/);
    return true;
  });
});

Deno.test("install: a package is there when one of each of its places is", async () => {
  const some = [{ name: "p", files: [["/a", "/b"], ["/c"]] }];
  const given = (...there: string[]) => missingPackages(some, (path) => Promise.resolve(there.includes(path)));
  assert.deepEqual(await given("/b", "/c"), []);
  assert.deepEqual(await given("/a", "/b"), ["p"]);
  assert.deepEqual(await given(), ["p"]);
  assert.equal(new Set(packages.map((one) => one.name)).size, packages.length);
});

Deno.test("go: the versions that can fetch a newer one themselves", () => {
  const table: [string, boolean][] = [
    ["go version go1.19.8 linux/amd64", false],
    ["go version go1.20 linux/amd64", false],
    ["go version go1.21.0 linux/amd64", true],
    ["go version go1.26.6 linux/arm64", true],
    ["go version go2.0 linux/amd64", true],
    ["something else", false],
  ];
  for (const [text, recent] of table) assert.equal(isRecent(text), recent, text);
});
