import type { Clock } from "../base/clock.ts";
import { isAborted, messageOf } from "../base/errors.ts";
import type { Logger } from "../base/log.ts";

/** What systemd told this process, by environment variables. */
export interface SystemdRequest {
  /** Path of its socket; undefined when it wants no messages. */
  readonly socket: string | undefined;
  /** Milliseconds within which it wants to hear of us; 0 for never. */
  readonly watchdogMs: number;
}

/**
 * Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID (features.md A11, A12). Pure. A watchdog that is meant for another
 * process, or that is no number, is none. Sockets without a path (which start with `@`) can't be used from here.
 */
export function systemdRequest(env: (name: string) => string | undefined, pid: number): SystemdRequest {
  const socket = env("NOTIFY_SOCKET");
  const microseconds = Number(env("WATCHDOG_USEC") ?? "0");
  const forUs = [undefined, "", String(pid)].includes(env("WATCHDOG_PID"));
  return {
    socket: socket?.startsWith("/") ? socket : undefined,
    watchdogMs: forUs && Number.isFinite(microseconds) && microseconds > 0 ? microseconds / 1000 : 0,
  };
}

/** Sends a message to systemd. */
export type Notify = (message: string) => Promise<void>;

/** A sender to systemd's socket. `own` is the path of a socket of ours, which is made for each message and removed. */
export function systemdNotify(socket: string, own: string): Notify {
  return async (message) => {
    await Deno.remove(own).catch((thrown) => {
      if (!(thrown instanceof Deno.errors.NotFound)) throw thrown;
    });
    const from = Deno.listenDatagram({ transport: "unixpacket", path: own });
    try {
      await from.send(new TextEncoder().encode(message), { transport: "unixpacket", path: socket });
    } finally {
      from.close();
      await Deno.remove(own);
    }
  };
}

/**
 * Tells systemd that the agent is ready, then at half the watchdog's interval that it lives, as long as every health
 * check passes; when it ends, that it stops. Returns when the signal aborts, or at once after READY=1 without a
 * watchdog. Never rejects but with the abort: a service manager that can't be reached is logged once.
 */
export async function keepSystemdInformed(options: {
  readonly request: SystemdRequest;
  readonly notify: Notify;
  /** The reason of the first health check that fails. */
  readonly unhealthy: () => string | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}): Promise<void> {
  const { request, unhealthy, clock, log, signal } = options;
  let said = "";
  const tell = async (message: string) => {
    try {
      await options.notify(message);
    } catch (thrown) {
      const error = messageOf(thrown);
      if (said !== error) log.warn("cannot tell systemd how the agent is", { message, error });
      said = error;
    }
  };
  await tell("READY=1");
  let silent: string | undefined;
  try {
    while (request.watchdogMs > 0) {
      const reason = unhealthy();
      if (reason === undefined) await tell("WATCHDOG=1");
      else if (reason !== silent) {
        log.error("unhealthy: systemd's watchdog is not fed, and will restart the agent", { reason });
      }
      silent = reason;
      await clock.sleep(request.watchdogMs / 2, signal);
    }
  } catch (thrown) {
    if (!isAborted(thrown)) throw thrown;
    await tell("STOPPING=1");
  }
}
