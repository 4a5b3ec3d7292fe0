import type { Clock } from "../../mod/base/clock.ts";
import { isAborted, KubeletError, messageOf } from "../../mod/base/errors.ts";
import { closed, dial, withDeadline } from "./dial.ts";
import type { ProbeOutcome } from "./outcome.ts";
import { hostPort } from "./request.ts";

/** Opens a TCP connection and closes it: opened is success. Rejects only with Aborted. */
export type TcpCheck = (call: {
  host: string;
  port: number;
  timeoutMs: number;
  signal: AbortSignal;
}) => Promise<ProbeOutcome>;

/** The TCP check over the machine's network. */
export function createTcpCheck(options: { clock: Clock }): TcpCheck {
  return async ({ host, port, timeoutMs, signal }) => {
    try {
      await withDeadline({ clock: options.clock, ms: timeoutMs, signal }, async (inner) => {
        await closed(await dial({ host, port, signal: inner }));
      });
      return { result: "success", output: "" };
    } catch (thrown) {
      if (isAborted(thrown)) throw thrown;
      const timedOut = thrown instanceof KubeletError && thrown.code === "Timeout";
      const output = timedOut ? `dial tcp ${hostPort(host, port)}: i/o timeout` : messageOf(thrown);
      return { result: "failure", output };
    }
  };
}
