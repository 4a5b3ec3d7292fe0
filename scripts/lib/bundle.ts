import { run } from "./command.ts";
import { repository } from "./files.ts";

/**
 * Where a text has a character beyond ASCII, with some text around it; undefined when it has none. V8 keeps a source
 * text with a single such character with two bytes for each of its characters, in its own heap.
 */
export function beyondAscii(text: string): string | undefined {
  const at = text.search(/[\u0080-\uffff]/);
  return at < 0 ? undefined : text.slice(Math.max(0, at - 30), at + 30);
}

/**
 * Makes one file of a program and all that it imports. Throws when the file is not plain ASCII: the bundler escapes what
 * stands in strings, but not what stands in regular expressions.
 *
 * `--keep-names` would leave the bundle without a working `require` (Deno 2.9.3): names in stack traces are short ones.
 */
export async function bundle(entry: string, to: string): Promise<void> {
  await run([Deno.execPath(), "bundle", "--quiet", "--no-lock", "--minify", "--output", to, entry], {
    cwd: repository,
  });
  const found = beyondAscii(await Deno.readTextFile(to));
  if (found !== undefined) {
    throw new Error(`${to}: the bundle of ${entry} must be plain ASCII; write an escape for what is here: ${found}`);
  }
}
