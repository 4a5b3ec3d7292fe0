import assert from "@assert";
import { parts, readOptions } from "./options.ts";

Deno.test("bench: all parts run but the long one, unless parts are named", () => {
  assert.deepEqual([...readOptions([])?.only ?? []], parts.filter((part) => part !== "memory"));
  assert.deepEqual([...readOptions(["--only", "memory", "--only", "one"])?.only ?? []], ["memory", "one"]);
  assert.equal(readOptions(["--program", "dist/kubelet"])?.program, "dist/kubelet");
  assert.equal(readOptions(["-h"]), undefined);
});

Deno.test("bench: wrong options are refused by name", () => {
  const table: [string[], RegExp][] = [
    [["--pods", "0"], /--pods: want 1 to 1000/],
    [["--churn", "many"], /--churn: want 1 to/],
    [["--only", "two"], /--only two: want one, burst/],
    [["--containerd", "3"], /--containerd: want debian or v2/],
    [["--bogus"], /bogus/],
  ];
  for (const [args, message] of table) assert.throws(() => readOptions(args), message);
});
