import { posix } from "node:path";
import type { Context } from "./context.ts";

const namespaced = ["kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.", "net."];
const sysctlPattern = /^[a-z0-9][-_a-z0-9]*(?:[./][a-z0-9][-_a-z0-9]*)*(?:[./]?\*)?$/;

/** Pods, their logs, volumes, restarts and shutdown. */
export function checkPods(context: Context): void {
  const { config, gates, written } = context;
  if (!(config.syncFrequencyMs > 0)) context.refuse("syncFrequency", "must be more than 0");
  const logs = config.podLogsDir;
  if (!posix.isAbsolute(logs)) context.refuse("podLogsDir", "must be an absolute path");
  else if (posix.normalize(logs).replace(/(.)\/$/, "$1") !== logs) {
    context.refuse(
      "podLogsDir",
      `must be a clean path; write ${JSON.stringify(posix.normalize(logs).replace(/(.)\/$/, "$1"))}`,
    );
  }
  // deno-lint-ignore no-control-regex -- the rule is about ASCII
  if (!/^[\x00-\x7f]*$/.test(logs)) context.refuse("podLogsDir", "must have ASCII characters only");
  for (const sysctl of config.allowedUnsafeSysctls) {
    const name = sysctl.replaceAll("/", ".");
    if (sysctl.length > 253 || !sysctlPattern.test(sysctl)) {
      context.refuseText(
        "allowedUnsafeSysctls",
        `${JSON.stringify(sysctl.slice(0, 80))} is no sysctl or pattern ending in *`,
      );
    } else if (!namespaced.some((prefix) => name.startsWith(prefix) && (prefix !== "kernel.sem" || name === prefix))) {
      context.refuseText(
        "allowedUnsafeSysctls",
        `${
          JSON.stringify(sysctl)
        } is not known to be namespaced; allowed are kernel.shm*, kernel.msg*, kernel.sem, fs.mqueue.* and net.*`,
      );
    }
  }
  const period = config.crashLoopBackOff.maxContainerRestartPeriodMs;
  if (!gates.enabled("KubeletCrashLoopBackOffMax")) {
    if (written.crashLoopBackOff?.maxContainerRestartPeriod !== undefined) {
      context.refuse("crashLoopBackOff.maxContainerRestartPeriod", "needs feature gate KubeletCrashLoopBackOffMax");
    }
  } else if (!(period >= 1000 && period <= 300_000)) {
    context.refuse("crashLoopBackOff.maxContainerRestartPeriod", "must be from 1s to 300s");
  }
  const ids = config.userNamespaces.idsPerPod;
  if (ids < 65536 || ids % 65536 !== 0 || ids > 2 ** 32 - 1) {
    context.refuse("userNamespaces.idsPerPod", "must be a multiple of 65536, at least 65536 and at most 4294967295");
  }
  checkShutdown(context);
}

function checkShutdown(context: Context): void {
  const { config, gates } = context;
  const total = config.shutdownGracePeriodMs;
  const critical = config.shutdownGracePeriodCriticalPodsMs;
  if (gates.enabled("GracefulNodeShutdown")) {
    if (total !== 0 && total < 1000) context.refuse("shutdownGracePeriod", "must be 0 or at least 1s");
    if (critical !== 0 && critical < 1000) {
      context.refuse("shutdownGracePeriodCriticalPods", "must be 0 or at least 1s");
    }
    if (critical > total) {
      context.refuse(
        "shutdownGracePeriodCriticalPods",
        "must be at most shutdownGracePeriod; raise that or lower this",
      );
    }
  } else if (total > 0 || critical > 0) {
    context.refuse("shutdownGracePeriod", "and shutdownGracePeriodCriticalPods need feature gate GracefulNodeShutdown");
  }
  if (config.shutdownGracePeriodByPodPriority.length === 0) return;
  if (!gates.enabled("GracefulNodeShutdownBasedOnPodPriority")) {
    context.refuse("shutdownGracePeriodByPodPriority", "needs feature gate GracefulNodeShutdownBasedOnPodPriority");
  } else if (total > 0 || critical > 0) {
    context.refuse(
      "shutdownGracePeriodByPodPriority",
      "can't be used with shutdownGracePeriod or shutdownGracePeriodCriticalPods; keep one",
    );
  }
}
