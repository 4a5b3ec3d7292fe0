import { isUnimplemented, type RuntimeService } from "../../cri/api.ts";
import { CgroupDriver } from "../../cri/gen/runtime_pb.ts";
import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { Logger } from "../base/log.ts";

type Driver = "cgroupfs" | "systemd";

/** Tries to ask the runtime, and milliseconds between two (runtime-contract.md section 6). */
const tries = 3;
const pauseMs = 2000;

/**
 * The cgroup driver to use: the runtime's where it tells it, else the configured one. A configuration that says
 * something else than the runtime is told: it misleads, and where the runtime cannot be followed pods will not start,
 * or will run outside their groups. Rejects when the runtime's answer is an error three times.
 */
export async function cgroupDriver(options: {
  runtime: Pick<RuntimeService, "runtimeConfig" | "status">;
  configured: Driver;
  clock: Clock;
  log: Logger;
  signal: AbortSignal;
}): Promise<Driver> {
  const { runtime, configured, clock, log, signal } = options;
  for (let tried = 1;; tried++) {
    try {
      const { linux } = await runtime.runtimeConfig({ signal });
      if (!linux) return configured;
      const told = linux.cgroupDriver === CgroupDriver.SYSTEMD ? "systemd" : "cgroupfs";
      if (told !== configured) {
        log.warn(
          `cgroupDriver is ${configured}, but the runtime uses ${told}, which is used; set cgroupDriver: ${told}`,
          { configured, runtime: told },
        );
      }
      return told;
    } catch (thrown) {
      if (isUnimplemented(thrown)) break;
      if (signal.aborted || tried === tries) throw thrown;
      log.warn("the runtime's cgroup driver cannot be asked yet", { error: messageOf(thrown) });
      await clock.sleep(pauseMs, signal);
    }
  }
  log.detail(2, "the runtime does not tell its cgroup driver; the configured one is used", {
    cgroupDriver: configured,
  });
  const seen = await driverInStatus(runtime, log, signal);
  if (seen !== undefined && seen !== configured) {
    log.error(
      `cgroupDriver is ${configured}, but containerd's configuration makes runc use ${seen}: pods will not start or ` +
        `will escape their limits; set cgroupDriver: ${seen}, or SystemdCgroup = ${configured === "systemd"} in ` +
        `containerd's configuration`,
      { configured, runtime: seen },
    );
  }
  return configured;
}

/** The driver as containerd 1.x shows it in the configuration that its verbose status holds; undefined: not shown. */
async function driverInStatus(
  runtime: Pick<RuntimeService, "status">,
  log: Logger,
  signal: AbortSignal,
): Promise<Driver | undefined> {
  try {
    const { info } = await runtime.status({ verbose: true }, { signal });
    if (info.config === undefined) return undefined;
    const containerd = field(JSON.parse(info.config), "containerd");
    const name = field(containerd, "defaultRuntimeName");
    const handler = field(field(containerd, "runtimes"), typeof name === "string" ? name : "runc");
    if (!String(field(handler, "runtimeType")).startsWith("io.containerd.runc.")) return undefined;
    return field(field(handler, "options"), "SystemdCgroup") === true ? "systemd" : "cgroupfs";
  } catch (thrown) {
    if (signal.aborted) throw thrown;
    // Only a warning hangs on it.
    log.detail(2, "the runtime's configuration cannot be read", { error: messageOf(thrown) });
    return undefined;
  }
}

function field(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined;
}
