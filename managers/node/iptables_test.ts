import assert from "@assert";
import { FakeClock } from "../../mod/base/fake_clock.ts";
import { RecordingLogger } from "../../mod/base/log.ts";
import { Scope } from "../../mod/base/scope.ts";
import { keepIptables } from "./iptables.ts";

/** Tables in memory: chains by table, rules by chain. */
function world(options: { programs?: string[]; broken?: boolean } = {}) {
  const { programs = ["/usr/sbin/iptables", "/usr/sbin/ip6tables"], broken = false } = options;
  const clock = new FakeClock();
  const log = new RecordingLogger();
  const chains = new Set<string>();
  const rules: string[] = [];
  const run = (program: string, args: string[]) => {
    assert.deepEqual(args.slice(0, 5), ["-w", "5", "-W", "100000", "-t"]);
    const [table, verb, chain, ...rest] = args.slice(5);
    const at = `${program.replace("/usr/sbin/", "")} ${table} ${chain}`;
    const rule = `${at} ${rest.join(" ")}`;
    const answer = (code: number, stderr = "") => Promise.resolve({ code, stdout: "", stderr });
    if (broken) return answer(3, "can't initialize iptables table: Permission denied");
    switch (verb) {
      case "-S":
        return answer(chains.has(at) ? 0 : 1);
      case "-N":
        chains.add(at);
        return answer(0);
      case "-C":
        return answer(rules.includes(rule) ? 0 : 1);
      case "-I":
      case "-A":
        rules.push(rule);
        return answer(0);
      default:
        return answer(2, `what is ${verb}?`);
    }
  };
  const stat = (path: string) =>
    Promise.resolve(
      programs.includes(path)
        ? { kind: "file" as const, size: 1, mode: 0o755, uid: 0, gid: 0, dev: 1, ino: 1, mtimeMs: 0 }
        : undefined,
    );
  const scope = new Scope("test");
  scope.spawn("iptables", (signal) => keepIptables({ host: { run, stat }, clock, log }, signal));
  return { clock, log, chains, rules, scope, [Symbol.asyncDispose]: () => scope.close() };
}

const expectedChains = ["iptables mangle KUBE-IPTABLES-HINT", "iptables filter KUBE-FIREWALL"];
const expectedRules = [
  "iptables filter OUTPUT -j KUBE-FIREWALL",
  "iptables filter INPUT -j KUBE-FIREWALL",
  "iptables filter KUBE-FIREWALL -m comment --comment block incoming localnet connections --dst 127.0.0.0/8 ! --src " +
  "127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP",
];

Deno.test("iptables: the chains and the rule against martians are made, for IPv6 the hint alone", async () => {
  await using w = world();
  await w.clock.advance(0);
  assert.deepEqual([...w.chains], [...expectedChains, "ip6tables mangle KUBE-IPTABLES-HINT"]);
  assert.deepEqual(w.rules, expectedRules);
});

Deno.test("iptables: what somebody flushed is made again within a minute; nothing is made twice", async () => {
  await using w = world({ programs: ["/usr/sbin/iptables"] });
  await w.clock.advance(120_000);
  assert.deepEqual(w.rules, expectedRules);
  w.chains.clear();
  w.rules.length = 0;
  await w.clock.advance(60_000);
  assert.deepEqual([...w.chains], expectedChains);
  assert.deepEqual(w.rules, expectedRules);
});

Deno.test("iptables: a machine without it, or whose kernel has none, is told and left alone", async () => {
  await using none = world({ programs: [] });
  await none.clock.advance(0);
  assert.match(none.log.lines[0]?.message ?? "", /no iptables on this machine/);
  assert.equal(none.clock.pending, 0);
  await using broken = world({ broken: true });
  await broken.clock.advance(0);
  assert.match(String(broken.log.lines[0]?.fields.error), /Permission denied/);
  assert.equal(broken.clock.pending, 0);
});
