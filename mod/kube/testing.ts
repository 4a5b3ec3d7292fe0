import { KubeletError } from "../base/errors.ts";

/** The message of the BadManifest error that `run` throws; anything else it does is thrown on. For tests. */
export function refusal(run: () => unknown): string {
  try {
    run();
  } catch (thrown) {
    if (thrown instanceof KubeletError && thrown.code === "BadManifest") return thrown.message;
    throw thrown;
  }
  throw new Error("it was not refused");
}
