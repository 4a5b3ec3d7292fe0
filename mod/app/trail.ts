import type { Host } from "../base/host.ts";
import { isMissing } from "../base/host_error.ts";
import { getKey } from "./config/json.ts";

/** What an agent leaves in its root directory for the commands that look at it without its configuration. */
export const trailFile = "denolet.json";

/** The contents of the trail file. */
export interface Trail {
  /** Where the logs of containers are. */
  readonly podLogsDir: string;
}

/** Reads a trail; undefined when the text is none. */
export function parseTrail(text: string): Trail | undefined {
  try {
    const dir = getKey(JSON.parse(text), "podLogsDir");
    return typeof dir === "string" && dir.startsWith("/") ? { podLogsDir: dir } : undefined;
  } catch (thrown) {
    if (thrown instanceof SyntaxError) return undefined;
    throw thrown;
  }
}

/** Where the logs of the agent of a root directory are; undefined when it has left no word of it. */
export async function podLogsDirOf(host: Pick<Host, "readText">, rootDir: string): Promise<string | undefined> {
  try {
    return parseTrail(await host.readText(`${rootDir}/${trailFile}`))?.podLogsDir;
  } catch (thrown) {
    if (isMissing(thrown)) return undefined;
    throw thrown;
  }
}
