/** Every error the agent makes has one of these stable codes; the text says what it means to an operator. */
export const codes = {
  Aborted: "the work was called off because its owner ended",
  Api: "the API server refused or failed a request",
  BadConfig: "a flag or configuration field has a value that cannot be used",
  BadManifest: "a pod manifest cannot be used",
  BadPod: "a pod asks for something this node cannot give",
  Cgroup: "a control group could not be read or written",
  Host: "the file system or kernel refused an operation",
  Image: "an image could not be made available",
  Internal: "a fault of the agent itself",
  Locked: "another agent uses the same root directory",
  Network: "an address could not be reached",
  Probe: "a probe could not be carried out",
  Runtime: "the container runtime refused or failed a call",
  RuntimeUnavailable: "the container runtime does not answer",
  Timeout: "an operation took longer than its limit",
  Volume: "a volume could not be set up or torn down",
} as const;

export type ErrorCode = keyof typeof codes;

/** The base of the agent's errors: a stable code, a message that names the object and the remedy, the cause kept. */
export class KubeletError extends Error {
  override readonly name: string = "KubeletError";
  constructor(readonly code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
  }
}

/** Turns anything thrown into an Error; the original is kept as the cause when it was not one. */
export function asError(thrown: unknown): Error {
  if (thrown instanceof Error) return thrown;
  return new KubeletError("Internal", typeof thrown === "string" ? thrown : `thrown: ${String(thrown)}`, {
    cause: thrown,
  });
}

/** The message of anything thrown. */
export function messageOf(thrown: unknown): string {
  return asError(thrown).message;
}

/** True when the error means that the owner of the work called it off, not that the work failed. */
export function isAborted(thrown: unknown): boolean {
  return (thrown instanceof KubeletError && thrown.code === "Aborted") ||
    (thrown instanceof DOMException && thrown.name === "AbortError");
}

/** Resolves when a signal aborts, also when that was before. */
export function whenAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

/** The error to throw for an aborted signal. */
export function abortedBy(signal: AbortSignal): Error {
  return new KubeletError("Aborted", "called off", { cause: signal.reason });
}
