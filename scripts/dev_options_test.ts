import assert from "@assert";
import { devOptions } from "./dev_options.ts";
import { UsageError } from "./lib/script.ts";

Deno.test("dev: options and their defaults", () => {
  const plain = devOptions([], "/here");
  assert.equal(plain.name, "dev");
  assert.equal(plain.root, "/var/lib/denolet-dev");
  assert.equal(plain.containerd, "debian");
  assert.match(plain.manifests, /\/examples\/pods$/);
  const all = devOptions(
    [
      "--once",
      "--keep",
      "--manifests",
      "mine",
      "--containerd",
      "v2",
      "--name",
      "x",
      "--root",
      "/a/b/",
      "--timeout",
      "60",
      "--",
      "-v",
      "4",
    ],
    "/here",
  );
  assert.deepEqual(all, {
    once: true,
    keep: true,
    help: false,
    manifests: "/here/mine",
    containerd: "v2",
    name: "x",
    root: "/a/b",
    timeout: 60_000,
    flags: ["-v", "4"],
  });
});

Deno.test("dev: a command line that cannot be used is refused by name", () => {
  const table: [string[], RegExp][] = [
    [["--bogus"], /--bogus/],
    [["pods/"], /unknown argument pods\//],
    [["pods/", "--", "-v"], /unknown argument pods\//],
    [["--containerd", "3"], /--containerd 3/],
    [["--name", "Über"], /--name Über/],
    [["--manifests"], /manifests/],
    [["--timeout", "soon"], /--timeout soon/],
    [["--timeout", "0"], /--timeout 0/],
  ];
  for (const [args, expected] of table) {
    assert.throws(
      () => devOptions(args, "/"),
      (error: unknown) => error instanceof UsageError && expected.test(error.message),
    );
  }
});
