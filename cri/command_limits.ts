import { grpcCode, RuntimeError } from "./api.ts";

/** What Linux takes of one program's name (PATH_MAX) and of one argument (MAX_ARG_STRLEN), both with a zero at the end. */
const programBytes = 4095;
const argumentBytes = 128 * 1024 - 1;

/**
 * Throws InvalidArgument for a command that no kernel could ever start. It must not come to the runtime: runc with a
 * program's name of a megabyte waits without end for itself to tell how that failed, and with it every later exec in the
 * container, probes included (measured with runc 1.1.5).
 */
export function assertStartable(call: string, target: string | undefined, argv: readonly string[]): void {
  for (const [i, text] of argv.entries()) {
    const limit = i === 0 ? programBytes : argumentBytes;
    const length = bytesBeyond(text, limit);
    if (length === undefined) continue;
    const what = i === 0 ? "the program's name" : `argument ${i}`;
    throw new RuntimeError(
      call,
      grpcCode.InvalidArgument,
      `${what} has ${length} bytes, and Linux takes ${limit} at most; give long input by a file or standard input`,
      target === undefined ? {} : { target },
    );
  }
}

/**
 * Throws InvalidArgument for an environment that no kernel could ever give to a program: a variable, name and value, is
 * limited like an argument. The container would end with code 1 and without a word again and again (measured with a Secret
 * of a megabyte). The value is not told: it may be secret.
 */
export function assertVariables(
  call: string,
  target: string | undefined,
  variables: readonly { readonly key?: string; readonly value?: Uint8Array }[],
): void {
  for (const { key = "", value } of variables) {
    const length = new TextEncoder().encode(`${key}=`).length + (value?.length ?? 0);
    if (length <= argumentBytes) continue;
    throw new RuntimeError(
      call,
      grpcCode.InvalidArgument,
      `the environment variable ${
        key.slice(0, 100)
      } has ${length} bytes with its name, and Linux takes ${argumentBytes} ` +
        "at most; mount the Secret or ConfigMap as a volume instead",
      target === undefined ? {} : { target },
    );
  }
}

/** The bytes of a text that has more of them than that. */
function bytesBeyond(text: string, limit: number): number | undefined {
  // A character is three bytes at most: most texts need no count.
  if (text.length * 3 <= limit) return undefined;
  const { length } = new TextEncoder().encode(text);
  return length > limit ? length : undefined;
}
