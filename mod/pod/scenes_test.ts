/**
 * Plays the scenes of testdata/*.txt: each step's answer must be the one in the file. With SCENES_REWRITE=1 in the
 * environment the files are written anew with the answers given; read the difference before you keep it.
 */
import assert from "@assert";
import { parseScene, play } from "./testdata/scene.ts";
import type { World } from "./testdata/model.ts";
import { statusCommands } from "./testdata/status_scene.ts";

const folder = new URL("testdata/", import.meta.url);
const rewrite = Deno.env.get("SCENES_REWRITE") === "1";
const commands = statusCommands;

/** The scene's text with the answers put in. */
function withAnswers(text: string, answers: readonly (readonly string[])[]): string {
  const blocks = text.trimEnd().split(/\n\n+/);
  let next = 0;
  return blocks.map((block) => {
    const lines = block.split("\n");
    if (lines.every((l) => l.startsWith("#"))) return block;
    const cut = lines.indexOf("----");
    return [...cut < 0 ? lines : lines.slice(0, cut), "----", ...answers[next++] ?? []].join("\n");
  }).join("\n\n") + "\n";
}

for (const { name } of [...Deno.readDirSync(folder)].sort((a, b) => a.name < b.name ? -1 : 1)) {
  if (!name.endsWith(".txt")) continue;
  Deno.test(`scene ${name}`, async () => {
    const text = Deno.readTextFileSync(new URL(name, folder));
    const steps = parseScene(rewrite ? withAnswers(text, []) : text);
    const state: { world?: World } = {};
    const answers: (readonly string[])[] = [];
    for (const step of steps) {
      const answer = await play(state, step, commands);
      answers.push(answer);
      if (!rewrite) assert.deepEqual(answer, step.want, `${name} line ${step.line}: ${step.command}`);
    }
    if (rewrite) Deno.writeTextFileSync(new URL(name, folder), withAnswers(text, answers));
    assert.ok(steps.length > 0, `${name} has no steps`);
  });
}
