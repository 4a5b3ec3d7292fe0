import type { Context } from "./context.ts";
import { checkFlags } from "./flags.ts";
import { checkPlain } from "./plain.ts";
import { checkPods } from "./pods.ts";
import { checkResources } from "./resources.ts";
import { checkRuntime } from "./runtime.ts";
import { checkServer } from "./server.ts";

/** Runs every rule of contract config.md; all violations end up in the context, none hides another. */
export function validate(context: Context): void {
  checkPlain(context);
  checkServer(context);
  checkPods(context);
  checkRuntime(context);
  checkResources(context);
  checkFlags(context);
}
