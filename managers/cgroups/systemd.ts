import type { Clock } from "../../mod/base/clock.ts";
import { KubeletError } from "../../mod/base/errors.ts";
import type { Host } from "../../mod/base/host.ts";
import { cpuWeightOf } from "../../mod/pod/resources.ts";
import { cpuMask, type GroupLimits } from "./limits.ts";
import { sliceUnit } from "./names.ts";

const busctl = "/usr/bin/busctl";
/** Name, mode, properties, no further units. */
const startSignature = "ssa(sv)a(sa(sv))";
/** Milliseconds: between two looks for a group that systemd makes, between two calls for it, and for it in all. */
const pollMs = 50;
const againMs = 1000;
const startMs = 30_000;
const manager = ["org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"];

/** A unit property: name, D-Bus type, the value as busctl's words. */
export type Property = readonly [name: string, type: string, ...value: string[]];

/** The properties that carry the limits (runtime-contract.md section 6). */
export function limitProperties(version: 1 | 2, limits: GroupLimits): Property[] {
  const props: Property[] = [];
  const { cpuShares, cpuQuota = 0, cpuPeriod = 0, memoryLimit = 0n, pidsLimit = 0, cpus } = limits;
  if (cpuShares !== undefined && cpuShares > 0) {
    props.push(
      version === 2 ? ["CPUWeight", "t", String(cpuWeightOf(cpuShares))] : ["CPUShares", "t", String(cpuShares)],
    );
  }
  if (cpuPeriod !== 0) props.push(["CPUQuotaPeriodUSec", "t", String(cpuPeriod)]);
  if (cpuQuota !== 0) {
    // systemd counts whole percents: 10 ms a second, rounded up.
    const perSecond = cpuQuota < 0
      ? "18446744073709551615"
      : String(Math.ceil(cpuQuota * 1_000_000 / (cpuPeriod || 100_000) / 10_000) * 10_000);
    props.push(["CPUQuotaPerSecUSec", "t", perSecond]);
  }
  if (memoryLimit !== 0n) {
    const bytes = memoryLimit < 0n ? "18446744073709551615" : String(memoryLimit);
    props.push([version === 2 ? "MemoryMax" : "MemoryLimit", "t", bytes]);
  }
  if (version === 2) {
    if (limits.memoryMin !== undefined) props.push(["MemoryMin", "t", String(limits.memoryMin)]);
    if (limits.memoryLow !== undefined) props.push(["MemoryLow", "t", String(limits.memoryLow)]);
  }
  if (pidsLimit !== 0) props.push(["TasksMax", "t", pidsLimit < 0 ? "18446744073709551615" : String(pidsLimit)]);
  const mask = version === 2 && cpus ? cpuMask(cpus) : [];
  if (mask.length > 0) props.push(["AllowedCPUs", "ay", String(mask.length), ...mask.map(String)]);
  return props;
}

/** Starts, changes and stops slices through systemd's D-Bus interface. */
export class Slices {
  readonly #host: Host;
  readonly #clock: Clock;
  readonly #version: 1 | 2;
  /** What each unit was last told, so that a sync that changes nothing costs no call. */
  readonly #told = new Map<string, string>();

  constructor(options: { host: Host; clock: Clock; version: 1 | 2 }) {
    this.#host = options.host;
    this.#clock = options.clock;
    this.#version = options.version;
  }

  async #call(method: string, signature: string, words: string[], unit: string): Promise<void> {
    // busctl takes words that start with a dash for options, wherever they stand: `-.slice` is one.
    const args = ["--system", "--quiet", "--", "call", ...manager, method, signature, ...words];
    const result = await this.#host.run(busctl, args);
    if (result.code === 0) return;
    const said = result.stderr.trim() || `exit code ${result.code}`;
    throw new KubeletError(
      "Cgroup",
      `systemd ${method} ${unit}: ${said} (is systemd running as init, with its system bus?)`,
      { cause: result },
    );
  }

  /** Starts the slice unless it runs, and waits until `made` says that its group is there. */
  async start(path: string, made: () => Promise<boolean>): Promise<void> {
    const { unit, parent } = sliceUnit(path);
    const props: Property[] = [
      ["Description", "s", `kubelet pods slice ${unit}`],
      ["Wants", "as", "1", parent],
      ["MemoryAccounting", "b", "true"],
      ["CPUAccounting", "b", "true"],
      [this.#version === 2 ? "IOAccounting" : "BlockIOAccounting", "b", "true"],
      ["TasksAccounting", "b", "true"],
      ["DefaultDependencies", "b", "false"],
    ];
    const words = [unit, "replace", String(props.length), ...props.flat(), "0"];
    // The call only queues the job; the directory shows that it ran. A unit of this name that is there already may be
    // one that systemd is just stopping: then it goes, and the call has to be made again.
    for (let waited = 0, start = true;; waited += pollMs) {
      if (start) await this.#unless(/already (exists|loaded)|UnitExists/i, "StartTransientUnit", startSignature, words);
      if (await made()) return;
      if (waited >= startMs) {
        throw new KubeletError(
          "Cgroup",
          `systemd did not make the group of ${unit} within ${startMs / 1000} s (systemctl status ${unit})`,
        );
      }
      await this.#clock.sleep(pollMs);
      start = (waited + pollMs) % againMs === 0;
    }
  }

  /** Calls, and takes an error whose text is as expected for an answer. `words` starts with the unit. */
  async #unless(expected: RegExp, method: string, signature: string, words: string[]): Promise<void> {
    try {
      await this.#call(method, signature, words, words[0] ?? "");
    } catch (thrown) {
      if (!(thrown instanceof KubeletError && expected.test(thrown.message))) throw thrown;
    }
  }

  /** Tells systemd the limits, so that its own writes agree with ours. */
  async set(path: string, limits: GroupLimits): Promise<void> {
    const { unit } = sliceUnit(path);
    const props = limitProperties(this.#version, limits);
    const told = JSON.stringify(props);
    if (props.length === 0 || this.#told.get(unit) === told) return;
    await this.#call("SetUnitProperties", "sba(sv)", [unit, "true", String(props.length), ...props.flat()], unit);
    this.#told.set(unit, told);
  }

  /** Stops the slice; one that isn't loaded is no error. */
  async stop(path: string): Promise<void> {
    const { unit } = sliceUnit(path);
    this.#told.delete(unit);
    await this.#unless(/not loaded|NoSuchUnit|not found/i, "StopUnit", "ss", [unit, "replace"]);
  }
}
