const encoder = new TextEncoder();

function writeAll(to: { writeSync(data: Uint8Array): number }, text: string): void {
  let left = encoder.encode(text);
  while (left.length > 0) left = left.subarray(to.writeSync(left));
}

/** Writes a line to standard output. */
export function print(line: string): void {
  writeAll(Deno.stdout, `${line}\n`);
}

/** Writes a line to standard error. */
export function complain(line: string): void {
  writeAll(Deno.stderr, `${line}\n`);
}

/** Writes text to standard output as it is. */
export function printRaw(text: string): void {
  writeAll(Deno.stdout, text);
}
