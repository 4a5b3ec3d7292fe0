import type { FakeHost } from "../../mod/base/fake_host.ts";
import type { CommandResult } from "../../mod/base/host.ts";
import { expandSlice } from "./names.ts";

/** What a fake systemd knows of a unit: its properties as busctl's words, by name. */
export type FakeUnit = ReadonlyMap<string, readonly string[]>;

/** The controllers that systemd deals with; others in a group are left alone. */
const known = ["cpu", "cpuset", "io", "memory", "pids"];

/**
 * A systemd behind busctl, on a machine with `fakeCgroupV2`. As the real one it takes words that start with a dash for
 * options, makes a group when a unit starts, and then brings the controllers of all groups beside it to what units ask
 * for by their properties, which takes cpuset away from groups that were given it behind its back.
 */
export class FakeSystemd {
  readonly #units = new Map<string, Map<string, readonly string[]>>();
  /** Units whose stop was asked for but has not been done yet; `settle` does it. */
  readonly #stopping = new Set<string>();
  readonly #scopes = new Set<string>();
  /** Set to have units stop only on `settle`. */
  slow = false;

  constructor(private readonly host: FakeHost) {
    host.onRun = (command, args) => this.#run(command, args);
  }

  get units(): ReadonlyMap<string, FakeUnit> {
    return this.#units;
  }

  /** Does what is queued. */
  settle(): void {
    for (const unit of this.#stopping) this.#units.delete(unit);
    this.#stopping.clear();
  }

  /** Runs a container's scope in a slice: it is delegated, so that all groups above it get every controller. */
  runScope(slice: string): void {
    this.#scopes.add(`${this.#directory(slice)}/container.scope`);
    this.host.putDir(`${this.#directory(slice)}/container.scope`);
    for (
      let at: string | undefined = slice;
      at !== undefined && at !== "-.slice";
      at = this.#units.get(at)?.get("Wants")?.[1]
    ) {
      this.#realize(at);
    }
  }

  #run(command: string, all: readonly string[]): CommandResult {
    const failed = (stderr: string) => ({ code: 1, stdout: "", stderr });
    if (command !== "/usr/bin/busctl") return failed(`${command}: not found`);
    const end = all.indexOf("--");
    const options = all.slice(0, end < 0 ? undefined : end).filter((word) => word.startsWith("-"));
    const wrong = options.find((word) => !/^--(system|quiet)$/.test(word));
    if (wrong !== undefined) return failed(`busctl: invalid option -- '${wrong[1]}'`);
    const words = all.filter((word, i) => i > end && (end >= 0 || !word.startsWith("-")));
    const [verb, , , , method, , unit = "", ...rest] = words;
    if (verb !== "call") return failed(`Unknown command verb ${verb}`);
    switch (method) {
      case "StartTransientUnit":
        if (this.#units.has(unit)) {
          return failed(`Call failed: Unit ${unit} was already loaded or has a fragment file.`);
        }
        this.#units.set(unit, properties(rest.slice(1)));
        this.host.putDir(this.#directory(unit));
        this.#realize(unit);
        break;
      case "SetUnitProperties": {
        const there = this.#units.get(unit);
        if (!there) return failed(`Call failed: Unit ${unit} not loaded.`);
        for (const [name, value] of properties(rest.slice(1))) there.set(name, value);
        this.#realize(unit);
        break;
      }
      case "StopUnit":
        if (!this.#units.has(unit)) return failed(`Call failed: Unit ${unit} not loaded.`);
        this.#stopping.add(unit);
        if (!this.slow) this.settle();
        break;
      default:
        return failed(`Call failed: Unknown method ${method}`);
    }
    return { code: 0, stdout: "", stderr: "" };
  }

  #directory(unit: string): string {
    return this.host.cgroupRoot + expandSlice(unit);
  }

  #realize(unit: string): void {
    const above = this.#directory(unit).slice(0, this.#directory(unit).lastIndexOf("/"));
    const beside = [...this.#units].filter(([name]) => this.#directory(name).startsWith(`${above}/`));
    const cpuset = beside.some(([, props]) => props.has("AllowedCPUs")) ||
      [...this.#scopes].some((scope) => scope.startsWith(`${above}/`));
    const path = `${above}/cgroup.subtree_control`;
    const enabled = (this.host.text(path) ?? "").split(/\s+/).filter((word) => word !== "");
    const wanted = known.filter((name) => name !== "cpuset" || cpuset);
    const kept = enabled.filter((name) => !known.includes(name) || wanted.includes(name));
    const offered = (this.host.text(`${above}/cgroup.controllers`) ?? "").split(/\s+/);
    const has = [...new Set([...kept, ...wanted.filter((name) => offered.includes(name))])];
    this.host.put(path, has.join(" ") + "\n");
    for (const child of this.host.tree(above).filter((p) => /^[^/]+\/$/.test(p))) {
      this.host.put(`${above}/${child}cgroup.controllers`, has.join(" ") + "\n");
    }
  }
}

/** Reads busctl's words of an a(sv). */
function properties(words: readonly string[]): Map<string, readonly string[]> {
  const found = new Map<string, readonly string[]>();
  const rest = words.slice(1);
  for (let count = Number(words[0]); count > 0; count--) {
    const [name = "", type = ""] = rest.splice(0, 2);
    found.set(name, rest.splice(0, type.startsWith("a") ? 1 + Number(rest[0]) : 1));
  }
  return found;
}
