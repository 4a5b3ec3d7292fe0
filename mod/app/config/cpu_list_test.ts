import assert from "@assert";
import { KubeletError } from "../../base/errors.ts";
import { parseCpuList } from "./cpu_list.ts";

const good: [text: string, cpus: number[]][] = [
  ["", []],
  [" 3 ", [3]],
  ["0-3", [0, 1, 2, 3]],
  ["8,0-1,1", [0, 1, 8]],
  ["5-5", [5]],
];
for (const [text, cpus] of good) {
  Deno.test(`CPU list ${JSON.stringify(text)}`, () => assert.deepEqual(parseCpuList(text), cpus));
}

for (const text of ["a", "1-", "-1", "3-1", "1,,2", "0-99999", "1 2", "0-1-2", "9999999999"]) {
  Deno.test(`CPU list ${JSON.stringify(text)} is refused`, () => {
    assert.throws(
      () => parseCpuList(text),
      (thrown: unknown) => thrown instanceof KubeletError && thrown.code === "BadConfig",
    );
  });
}
