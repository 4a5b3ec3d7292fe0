import type { Clock } from "../../mod/base/clock.ts";
import { messageOf } from "../../mod/base/errors.ts";
import type { Host } from "../../mod/base/host.ts";
import type { Logger } from "../../mod/base/log.ts";

/** The programs, by family. */
const programs = { IPv4: "/usr/sbin/iptables", IPv6: "/usr/sbin/ip6tables" } as const;
/** They wait so long for others that change the tables: seconds, and microseconds between two looks. */
const patience = ["-w", "5", "-W", "100000"];
/** How often it is looked whether somebody has flushed the tables, milliseconds. */
const lookMs = 60_000;

const hint = "KUBE-IPTABLES-HINT";
const firewall = "KUBE-FIREWALL";
/** Connections to loopback addresses from elsewhere, which `route_localnet` would let in; kube-proxy has the same rule. */
const martians = [
  ...["-m", "comment", "--comment", "block incoming localnet connections"],
  ...["--dst", "127.0.0.0/8", "!", "--src", "127.0.0.0/8"],
  ...["-m", "conntrack", "!", "--ctstate", "RELATED,ESTABLISHED,DNAT", "-j", "DROP"],
];

export interface IptablesOptions {
  readonly host: Pick<Host, "run" | "stat">;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Keeps the chains that tell other programs which iptables the node uses, and that close loopback addresses to the
 * outside (features.md F29). A machine without iptables has none. Runs until the signal aborts.
 */
export async function keepIptables(options: IptablesOptions, signal: AbortSignal): Promise<void> {
  const { host, clock, log } = options;
  const tables: Tables[] = [];
  for (const family of ["IPv4", "IPv6"] as const) {
    const one = new Tables(host, family, signal);
    try {
      if (!await host.stat(programs[family])) continue;
      await one.set();
      tables.push(one);
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      log.info("iptables cannot be used on this machine", { family, error: messageOf(thrown) });
    }
  }
  if (tables.length === 0) log.info(`there is no iptables on this machine; the chain ${hint} is not made`);
  while (tables.length > 0 && !signal.aborted) {
    await clock.sleep(lookMs, signal);
    for (const one of tables) {
      try {
        if (!await one.stands()) await one.set();
      } catch (thrown) {
        if (signal.aborted) throw thrown;
        log.warn("the chains of iptables cannot be kept", { family: one.family, error: messageOf(thrown) });
      }
    }
  }
}

class Tables {
  constructor(
    readonly host: Pick<Host, "run">,
    readonly family: keyof typeof programs,
    readonly signal: AbortSignal,
  ) {}

  /** Makes what is missing. */
  async set(): Promise<void> {
    await this.#chain("mangle", hint);
    if (this.family === "IPv6") return;
    await this.#chain("filter", firewall);
    for (const from of ["OUTPUT", "INPUT"]) await this.#rule("-I", from, ["-j", firewall]);
    await this.#rule("-A", firewall, martians);
  }

  /** True while nobody has flushed the tables. */
  async stands(): Promise<boolean> {
    return await this.#does("mangle", ["-S", hint]);
  }

  async #chain(table: string, chain: string): Promise<void> {
    if (await this.#does(table, ["-S", chain])) return;
    await this.#must(table, ["-N", chain]);
  }

  async #rule(how: "-I" | "-A", chain: string, rule: string[]): Promise<void> {
    if (await this.#does("filter", ["-C", chain, ...rule])) return;
    await this.#must("filter", [how, chain, ...rule]);
  }

  async #does(table: string, args: string[]): Promise<boolean> {
    return (await this.#run(table, args)).code === 0;
  }

  async #must(table: string, args: string[]): Promise<void> {
    const { code, stderr } = await this.#run(table, args);
    if (code !== 0) throw new Error(stderr.trim() || `${programs[this.family]} ended with ${code}`);
  }

  #run(table: string, args: string[]) {
    return this.host.run(programs[this.family], [...patience, "-t", table, ...args], { signal: this.signal });
  }
}
