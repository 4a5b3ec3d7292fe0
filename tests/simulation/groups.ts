import assert from "@assert";
import { report } from "./main.ts";
import { runSeed } from "./run.ts";

/** Runs seeds `first` to `first + count - 1` as a test of their own; a failing one tells its trace and its replay. */
export function testSeeds(first: number, count: number, { cluster = false }: { cluster?: boolean } = {}): void {
  Deno.test(`simulation: seeds ${first} to ${first + count - 1}${cluster ? " in a cluster" : ""}`, async () => {
    for (let seed = first; seed < first + count; seed++) {
      const result = await runSeed({ seed, steps: 20, cluster });
      assert.equal(result.broken, undefined, report(result, 20));
    }
  });
}
