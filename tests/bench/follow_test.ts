import assert from "@assert";
import { lostLines } from "./follow.ts";

const line = (number: number) => `${String(number).padStart(9, "0")} ${"0".repeat(989)}\n`;
const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => line(from + i)).join("");

Deno.test("bench: every line that is lost, doubled, cut or misplaced is counted", async () => {
  const table: [what: string, text: string, expected: number, lost: number][] = [
    ["all", range(0, 50), 50, 0],
    ["none", "", 7, 7],
    ["a hole", range(0, 10) + range(13, 20), 20, 3],
    ["the end", range(0, 10), 12, 2],
    ["twice", range(0, 10) + range(8, 10), 10, 2],
    ["half of the last", range(0, 9) + line(9).slice(0, 500), 10, 2],
    ["a cut one", range(0, 3) + `${line(3).slice(0, 500)}\n` + range(4, 6), 6, 2],
  ];
  const path = await Deno.makeTempFile();
  try {
    for (const [what, text, expected, lost] of table) {
      await Deno.writeTextFile(path, text);
      assert.equal(await lostLines(path, expected), lost, what);
    }
  } finally {
    await Deno.remove(path);
  }
});
