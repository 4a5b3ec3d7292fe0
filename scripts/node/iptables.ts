import { attempt } from "../lib/command.ts";

/**
 * The iptables arguments that remove what the CNI plugins made for a network, from the output of `iptables -t nat -S`:
 * the rules whose comment names it, and the chains that such rules lead to. Ours are the `CNI-` chains of one container
 * (`CNI-<hash>`, `CNI-DN-<hash>`); the chains that all networks share stay.
 */
export function natRemovals(rules: string, network: string): string[][] {
  const own = rules.split("\n").filter((rule) => rule.startsWith("-A ") && rule.includes(`name: \\"${network}\\"`));
  const chains = new Set<string>();
  for (const rule of own) {
    const target = / -j (CNI-(?:DN-)?[0-9a-f]{10,})\b/.exec(rule)?.[1];
    if (target !== undefined) chains.add(target);
  }
  return [
    ...own.filter((rule) => !chains.has(rule.split(" ")[1] ?? "")).map((rule) => ["-D", ...words(rule).slice(1)]),
    ...[...chains].map((chain) => ["-F", chain]),
    ...[...chains].map((chain) => ["-X", chain]),
  ];
}

/** Splits a line of `iptables -S` into arguments, as a shell would. */
function words(line: string): string[] {
  return [...line.matchAll(/"((?:\\.|[^"\\])*)"|(\S+)/g)].map(([, quoted, plain]) =>
    quoted === undefined ? plain ?? "" : quoted.replace(/\\(.)/g, "$1")
  );
}

/** Removes a CNI network's rules from the nat table; without iptables there are none. */
export async function removeNatRules(network: string): Promise<void> {
  const rules = await attempt(["iptables", "-w", "-t", "nat", "-S"]);
  if (rules.code !== 0) return;
  for (const args of natRemovals(rules.stdout, network)) await attempt(["iptables", "-w", "-t", "nat", ...args]);
}
