/**
 * What a line of an agent's log says to somebody who edits manifests: errors, and all that is odd about a manifest;
 * undefined for the rest.
 */
export function worthSaying(line: string): string | undefined {
  if (!/^E|^W[^"]*"Manifest/.test(line)) return undefined;
  const path = valueOf(line, "path");
  const text = valueOf(line, "problem") ?? valueOf(line, "warning");
  const keptPath = valueOf(line, "keptPath");
  if (path !== undefined && keptPath !== undefined) {
    return `${path}: its pod is left out, as ${keptPath} has the same ${valueOf(line, "same") ?? "name"}`;
  }
  if (path === undefined || text === undefined) return `agent: ${line.replace(/^[^"]*\] /, "")}`;
  return text.startsWith(path) ? text : `${path}: ${text}`;
}

function valueOf(line: string, key: string): string | undefined {
  const quoted = new RegExp(String.raw` ${key}=("(?:[^"\\]|\\.)*")`).exec(line)?.[1];
  return quoted === undefined ? undefined : JSON.parse(quoted);
}

/** The whole lines of a file that were added since the last call of the function that is returned. */
export function followLines(path: string): () => Promise<string[]> {
  let at = 0;
  return async () => {
    let bytes: Uint8Array;
    try {
      using file = await Deno.open(path);
      await file.seek(at, Deno.SeekMode.Start);
      bytes = await new Response(file.readable).bytes();
    } catch (thrown) {
      if (thrown instanceof Deno.errors.NotFound) return [];
      throw thrown;
    }
    const end = bytes.lastIndexOf(10) + 1;
    at += end;
    return new TextDecoder().decode(bytes.subarray(0, end)).split("\n").slice(0, -1);
  };
}
