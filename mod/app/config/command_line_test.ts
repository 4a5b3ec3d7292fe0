import assert from "@assert";
import fc from "fast-check";
import { KubeletError } from "../../base/errors.ts";
import { applyFieldFlags, parseCommandLine } from "./command_line.ts";
import { allFlags } from "./flags.ts";
import type { JsonObject } from "./json.ts";

/** Field values that a command line gives. */
function fields(...argv: string[]): JsonObject {
  const config: JsonObject = {};
  applyFieldFlags(config, parseCommandLine(argv));
  return config;
}

const good: [argv: string[], want: JsonObject][] = [
  [["--max-pods=5"], { maxPods: 5 }],
  [["--max-pods", "5"], { maxPods: 5 }],
  [["--max_pods=5"], { maxPods: 5 }],
  [["--max-pods=0x10"], { maxPods: 16 }],
  [["--max-pods=1_000"], { maxPods: 1000 }],
  [["--max-pods=010"], { maxPods: 8 }],
  [["--max-pods=5", "--max-pods=6"], { maxPods: 6 }],
  [["--oom-score-adj", "-5"], { oomScoreAdj: -5 }],
  [["--fail-swap-on"], { failSwapOn: true }],
  [["--fail-swap-on=false"], { failSwapOn: false }],
  [["--fail-swap-on=F"], { failSwapOn: false }],
  [["--fail_swap_on=0"], { failSwapOn: false }],
  [["--runonce"], { runOnce: true }],
  [["-v", "4"], { logging: { verbosity: 4 } }],
  [["-v4"], { logging: { verbosity: 4 } }],
  [["-v=4"], { logging: { verbosity: 4 } }],
  [["--v=4"], { logging: { verbosity: 4 } }],
  [["--v", "4"], { logging: { verbosity: 4 } }],
  [["--sync-frequency=90s"], { syncFrequency: "1m30s" }],
  [["--cluster-dns=10.0.0.10,10.0.0.11", "--cluster-dns", "fd00::1"], {
    clusterDNS: ["10.0.0.10", "10.0.0.11", "fd00::1"],
  }],
  [['--allowed-unsafe-sysctls="a,b",c'], { allowedUnsafeSysctls: ["a,b", "c"] }],
  [["--cluster-dns="], { clusterDNS: [] }],
  [["--system-reserved=cpu=200m, memory = 1Gi", "--system-reserved=pid=10"], {
    systemReserved: { cpu: "200m", memory: "1Gi", pid: "10" },
  }],
  [["--eviction-hard=memory.available<1Gi,nodefs.available<10%"], {
    evictionHard: { "memory.available": "1Gi", "nodefs.available": "10%" },
  }],
  [["--eviction-hard="], { evictionHard: {} }],
  [["--eviction-soft-grace-period=memory.available=1m30s"], {
    evictionSoftGracePeriod: { "memory.available": "1m30s" },
  }],
  [["--feature-gates=A=true,B=false", "--feature-gates=A=false"], { featureGates: { A: false, B: false } }],
  [["--manifest-url-header=a:hello,b:again,a:world", "--manifest-url-header", "b:be:st"], {
    staticPodURLHeader: { a: ["hello", "world"], b: ["again", "be:st"] },
  }],
  [["--cpu-manager-policy-options=full-pcpus-only=true"], { cpuManagerPolicyOptions: { "full-pcpus-only": "true" } }],
  [["--vmodule=pleg=3,w*=5"], {
    logging: { vmodule: [{ filePattern: "pleg", verbosity: 3 }, { filePattern: "w*", verbosity: 5 }] },
  }],
  [["--log-json-info-buffer-size=1024Ki"], { logging: { options: { json: { infoBufferSize: "1Mi" } } } }],
  [["--register-with-taints=a=b:NoSchedule,c:NoExecute"], {
    registerWithTaints: [{ key: "a", value: "b", effect: "NoSchedule" }, { key: "c", effect: "NoExecute" }],
  }],
  [["--reserved-memory=0:memory=1024Mi,hugepages-1Gi=2Gi;1:memory=2Gi"], {
    reservedMemory: [{ numaNode: 0, limits: { memory: "1Gi", "hugepages-1Gi": "2Gi" } }, {
      numaNode: 1,
      limits: { memory: "2Gi" },
    }],
  }],
  [["--address=::"], { address: "::" }],
  [["--address="], {}],
  [["--address=010.0.0.1"], { address: "010.0.0.1" }],
  [["--", ...[]], {}],
];
for (const [argv, want] of good) {
  Deno.test(`flags ${argv.join(" ")}`, () => assert.deepEqual(fields(...argv), want));
}

const bad: [argv: string[], message: RegExp][] = [
  [["--maxpods=5"], /unknown flag: --maxpods; did you mean --max-pods\?; kubelet --help lists the flags$/],
  [["--nonsense-altogether"], /unknown flag: --nonsense-altogether; kubelet --help lists the flags$/],
  [
    ["--nonsense-altogether", "value"],
    /a problem: unknown flag: --nonsense-altogether; kubelet --help lists the flags$/,
  ],
  [["word"], /unknown command "word"/],
  [["--", "word"], /unknown command "word"/],
  [["-"], /unknown command "-"/],
  [["--max-pods"], /flag needs an argument: --max-pods; write --max-pods=VALUE$/],
  [["-v"], /flag needs an argument: -v; write -v VALUE$/],
  [["--=x"], /bad flag syntax: "--=x"/],
  [["---x"], /bad flag syntax/],
  [["-x"], /unknown shorthand flag: "x".*; kubelet --help lists the flags$/],
  [["-config=/a"], /unknown shorthand flag: "c" in "-config=\/a"; did you mean --config/],
  [["--max-pods=five"], /invalid argument "five" for --max-pods: must be a whole number/],
  [["--max-pods=5.5"], /must be a whole number/],
  [["--max-pods="], /must be a whole number/],
  [["--max-pods=4294967296"], /must be from -2147483648 to 2147483647/],
  [["--fail-swap-on=yes"], /invalid argument "yes" for --fail-swap-on: must be true or false/],
  [["--fail-swap-on", "false"], /unknown command "false"/],
  [["--sync-frequency=5"], /--sync-frequency: duration "5" has a number without a unit/],
  [["--system-reserved=cpu"], /has "cpu", which is not of the form key=value/],
  [["--eviction-hard=memory.available=1Gi"], /not of the form key<value/],
  [["--feature-gates=A=maybe"], /sets A to "maybe", which is neither true nor false/],
  [["--address=localhost"], /must be an IP address/],
  [["-v=-1"], /from 0 to 2147483647/],
  [["--vmodule=a"], /not pattern=N/],
  [["--register-with-taints=a=b"], /not of the form key=value:effect/],
  [["--register-with-taints=a=b:Never"], /effect "Never" must be NoSchedule/],
  [["--register-with-taints=a:NoExecute,a:NoExecute"], /given twice/],
  [["--reserved-memory=0"], /not node:type=quantity/],
  [["--reserved-memory=0:disk=1"], /must be memory or hugepages/],
  [["--version=sometimes"], /must be true or false/],
  [["--maxpods=1", "--port=x", "extra"], /3 problems: .*--maxpods.*"extra".*--port.*; kubelet --help lists the flags$/],
];
for (const [argv, message] of bad) {
  Deno.test(`bad flags ${argv.join(" ")}`, () => {
    assert.throws(() => parseCommandLine(argv), (thrown: unknown) => {
      if (!(thrown instanceof KubeletError)) return false;
      assert.equal(thrown.code, "BadConfig");
      assert.match(thrown.message, message);
      return true;
    });
  });
}

Deno.test("a header's text is never shown, it may be a credential", () => {
  assert.throws(() => parseCommandLine(["--manifest-url-header=Bearer s3cret"]), (thrown: unknown) => {
    assert.match(String(thrown), /<masked>/);
    assert.doesNotMatch(String(thrown), /s3cret/);
    return true;
  });
});

Deno.test("flags without a field are typed, with their defaults", () => {
  const { flags } = parseCommandLine([]);
  assert.equal(flags.rootDir, "/var/lib/kubelet");
  assert.equal(flags.certDir, "/var/lib/kubelet/pki");
  assert.equal(flags.maximumDeadContainers, -1);
  assert.equal(flags.maximumDeadContainersPerContainer, 1);
  assert.equal(flags.housekeepingIntervalMs, 10_000);
  assert.equal(flags.kubeconfig, "");
  assert.deepEqual(flags.nodeLabels, {});
  const set = parseCommandLine([
    "--root-dir=/r",
    "--node-labels=a=b,c=",
    "--housekeeping_interval=1s",
    "--exit-on-lock-contention",
    "--maximum-dead-containers=3",
    "--seccomp-default",
    "--boot_id_file=/x",
    "--enable-load-reader",
  ]);
  assert.equal(set.flags.rootDir, "/r");
  assert.deepEqual(set.flags.nodeLabels, { a: "b", c: "" });
  assert.equal(set.flags.housekeepingIntervalMs, 1000);
  assert.equal(set.flags.exitOnLockContention, true);
  assert.equal(set.flags.maximumDeadContainers, 3);
  assert.equal(set.flags.seccompDefault, true);
  assert.equal(set.changed.length, 8);
});

Deno.test("a key named __proto__ is a key", () => {
  const config = fields("--feature-gates=__proto__=true", "--system-reserved=__proto__=1");
  assert.deepEqual(Object.keys(config.featureGates ?? {}), ["__proto__"]);
  assert.equal(Object.getPrototypeOf(config.featureGates), Object.prototype);
  assert.deepEqual(Object.keys(parseCommandLine(["--node-labels=__proto__=x"]).flags.nodeLabels), ["__proto__"]);
});

Deno.test("property: any command line is understood or refused with BadConfig", () => {
  const name = fc.constantFrom(...allFlags.map((flag) => flag.name));
  const word = fc.oneof(
    fc.string(),
    name.map((text) => `--${text}`),
    fc.tuple(name, fc.oneof(fc.string(), fc.constantFrom("1", "a=b", "a<1", "a:b", "1s", "true", "0:memory=1"))).map(
      ([text, value]) => `--${text}=${value}`,
    ),
    fc.constantFrom("-v", "-h", "-hv", "--", "-", "--=", "__proto__"),
  );
  fc.assert(
    fc.property(fc.array(word, { maxLength: 6 }), (argv) => {
      try {
        const parsed = parseCommandLine(argv);
        applyFieldFlags({}, parsed);
      } catch (thrown) {
        assert(thrown instanceof KubeletError && thrown.code === "BadConfig", `${thrown}`);
      }
    }),
    { numRuns: 500 },
  );
});
