/** The error of a container whose configuration can't be made. */
import { KubeletError } from "../../base/errors.ts";
import type { BoundPod } from "../../kube/types.ts";

/** Shown as a Waiting reason (runtime-contract.md section 15); the message says what in the spec is at fault. */
export class CreateContainerConfigError extends KubeletError {
  override readonly name = "CreateContainerConfigError";
  readonly reason = "CreateContainerConfigError";
  constructor(message: string, options?: { cause?: unknown }) {
    super("BadPod", message, options);
  }
}

/** `<name>_<namespace>(<uid>)`, as messages name a pod. */
export function describePod(pod: BoundPod): string {
  return `${pod.metadata.name}_${pod.metadata.namespace}(${pod.metadata.uid})`;
}

/** A whole number of the spec as the runtime takes it. Throws when it is none (a manifest can hold anything). */
export function int64(value: unknown, what: string): bigint {
  if (typeof value === "bigint") return value;
  if (typeof value === "number" && Number.isSafeInteger(value)) return BigInt(value);
  throw new CreateContainerConfigError(`${what}: ${JSON.stringify(value)?.slice(0, 80)} is not a whole number`);
}

/** Runs a piece of the configuration's making; what it refuses becomes a CreateContainerConfigError, cause kept. */
export function asConfigError<T>(make: () => T): T {
  try {
    return make();
  } catch (thrown) {
    if (!(thrown instanceof KubeletError) || thrown instanceof CreateContainerConfigError) throw thrown;
    throw new CreateContainerConfigError(thrown.message, { cause: thrown });
  }
}
