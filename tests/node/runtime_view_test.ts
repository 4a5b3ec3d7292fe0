import assert from "@assert";
import { RuntimeService } from "../../cri/gen/runtime_pb.ts";
import type { Pod } from "../../mod/kube/types.ts";
import { attempt } from "../../scripts/lib/command.ts";
import { exists } from "../../scripts/lib/files.ts";
import { versions } from "./harness.ts";
import { box, cgroupValue, type Observer, pod, untilEnded, withObserver } from "./support.ts";

const crictl = "/var/tmp/node-conformance/bin/crictl";

const labelled = pod("labelled", {
  hostAliases: [{ ip: "10.1.2.3", hostnames: ["one.example", "two.example"] }],
  containers: [box("main", {
    ports: [{ name: "http", containerPort: 80, protocol: "TCP" }],
    lifecycle: { preStop: { exec: { command: ["true"] } } },
  })],
}, { labels: { app: "x", "example.com/tier": "back" }, annotations: { note: "seen" } });

const environment = pod("environment", {
  containers: [box("main", {
    command: ["sh", "-c", "echo '$(POD)' '$$(POD)' '$(UNKNOWN)'; trap 'exit 0' TERM; sleep 86400 & wait $!"],
    workingDir: "/tmp",
    resources: { requests: { cpu: "50m", memory: "16Mi" }, limits: { cpu: "1500m", memory: "64Mi" } },
    env: [
      { name: "POD", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
      { name: "NS", valueFrom: { fieldRef: { fieldPath: "metadata.namespace" } } },
      { name: "UID_OF", valueFrom: { fieldRef: { fieldPath: "metadata.uid" } } },
      { name: "LABEL", valueFrom: { fieldRef: { fieldPath: "metadata.labels['app']" } } },
      { name: "ANNOTATION", valueFrom: { fieldRef: { fieldPath: "metadata.annotations['note']" } } },
      { name: "NODE", valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } },
      { name: "IP", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } },
      { name: "HOST_IP", valueFrom: { fieldRef: { fieldPath: "status.hostIP" } } },
      { name: "CPU", valueFrom: { resourceFieldRef: { resource: "limits.cpu" } } },
      { name: "CPU_MILLI", valueFrom: { resourceFieldRef: { resource: "requests.cpu", divisor: "1m" } } },
      { name: "MEMORY", valueFrom: { resourceFieldRef: { resource: "limits.memory" } } },
      { name: "MEMORY_MI", valueFrom: { resourceFieldRef: { resource: "requests.memory", divisor: "1Mi" } } },
      { name: "A", value: "a" },
      { name: "B", value: "$(A)b$(LATER)$$(A)" },
      { name: "LATER", value: "later" },
    ],
  })],
}, { labels: { app: "x" }, annotations: { note: "of it" } });

const guaranteed = pod("guaranteed", {
  containers: [box("main", {
    resources: { requests: { cpu: "200m", memory: "32Mi" }, limits: { cpu: "200m", memory: "32Mi" } },
  })],
});
const burstable = pod("burstable", {
  containers: [box("main", {
    resources: { requests: { cpu: "100m", memory: "16Mi" }, limits: { memory: "48Mi" } },
  })],
});
const bestEffort = pod("best-effort", { hostname: "chosen", subdomain: "sub", containers: [box("main")] });

const dns: readonly Pod[] = [
  pod("dns-first", { dnsPolicy: "ClusterFirst", containers: [box("main")] }),
  pod("dns-default", { dnsPolicy: "Default", containers: [box("main")] }),
  pod("dns-none", {
    dnsPolicy: "None",
    dnsConfig: {
      nameservers: ["192.0.2.53"],
      searches: ["only.example"],
      options: [{ name: "ndots", value: "2" }, { name: "edns0" }],
    },
    containers: [box("main")],
  }),
  pod("dns-host", { dnsPolicy: "ClusterFirst", hostNetwork: true, containers: [box("main")] }),
  pod("dns-host-first", { dnsPolicy: "ClusterFirstWithHostNet", hostNetwork: true, containers: [box("main")] }),
];

const all = [labelled, environment, guaranteed, burstable, bestEffort, ...dns];

/** The control group's value for a pod or one of its containers. */
async function group(seen: Observer, qos: string, name: string, controller: string, file: string, id?: string) {
  const pod = `${seen.node.agent.paths.cgroup}/kubepods${qos}/pod${await seen.uid(name)}`;
  return await cgroupValue(controller, id === undefined ? pod : `${pod}/${id}`, file);
}

for (const version of versions) {
  Deno.test(`what containerd ${version} shows of a pod`, async (t) => {
    const resolvConf = await Deno.makeTempFile({ prefix: "denolet-resolv-" });
    await Deno.writeTextFile(resolvConf, "nameserver 198.51.100.7\nsearch host.example\noptions timeout:3\n");
    const name = `rv-${version}`;
    const config = { clusterDNS: ["10.96.0.10"], clusterDomain: "cluster.test", resolvConf };
    await withObserver({ name, containerd: version, config }, async (seen) => {
      const { agent } = seen.node;
      for (const one of all) await agent.putManifest(`${one.metadata?.name}.yaml`, one);
      for (const one of all) await seen.ready(one.metadata?.name ?? "");
      const { logs, kubelet } = agent.paths;

      await t.step("sandbox: labels, annotations, names, log directory", async () => {
        const [sandbox] = await seen.sandboxes("labelled");
        const uid = sandbox?.metadata?.uid ?? "";
        assert.match(uid, /^[0-9a-f]{32}$/);
        assert.deepEqual(
          { ...sandbox?.metadata, $typeName: undefined },
          { $typeName: undefined, name: `labelled-${name}`, namespace: "default", uid, attempt: 0 },
        );
        assert.deepEqual(sandbox?.labels, {
          app: "x",
          "example.com/tier": "back",
          "io.kubernetes.pod.name": `labelled-${name}`,
          "io.kubernetes.pod.namespace": "default",
          "io.kubernetes.pod.uid": uid,
        });
        const { "kubernetes.io/config.seen": when, ...rest } = sandbox?.annotations ?? {};
        assert.deepEqual(rest, {
          note: "seen",
          "kubernetes.io/config.hash": uid,
          "kubernetes.io/config.source": "file",
        });
        assert.ok(!Number.isNaN(Date.parse(when ?? "")), `config.seen is ${when}`);
        assert.ok(await exists(`${logs}/default_labelled-${name}_${uid}`));
      });

      await t.step("container: labels, annotations, hash, image, log path and link", async () => {
        const { id } = await seen.running("labelled");
        const { status } = await seen.detail(id);
        const uid = await seen.uid("labelled");
        assert.deepEqual(status.labels, {
          "io.kubernetes.container.name": "main",
          "io.kubernetes.pod.name": `labelled-${name}`,
          "io.kubernetes.pod.namespace": "default",
          "io.kubernetes.pod.uid": uid,
        });
        // FNV-1a 32 of the contract's text for {"image":"localhost/busybox:1","name":"main"}
        const text = [...new TextEncoder().encode('{"image":"localhost/busybox:1","name":"main"}')].join(" ");
        let hash = 0x811c9dc5;
        for (const byte of new TextEncoder().encode(`([]uint8)[${text}]`)) {
          hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
        }
        assert.deepEqual(status.annotations, {
          "io.kubernetes.container.hash": hash.toString(16),
          "io.kubernetes.container.restartCount": "0",
          "io.kubernetes.container.terminationMessagePath": "/dev/termination-log",
          "io.kubernetes.container.terminationMessagePolicy": "File",
          "io.kubernetes.container.ports": '[{"name":"http","containerPort":80,"protocol":"TCP"}]',
          "io.kubernetes.container.preStopHandler": '{"exec":{"command":["true"]}}',
          "io.kubernetes.pod.terminationGracePeriod": "1",
        });
        assert.equal(status.image?.image, "localhost/busybox:1");
        const log = `${logs}/default_labelled-${name}_${uid}/main/0.log`;
        assert.equal(status.logPath, log);
        assert.ok(await exists(log));
        const link = `${kubelet}/log-links/labelled-${name}_default_main-${id}.log`;
        assert.equal(await Deno.readLink(link), log);
      });

      await t.step("/etc/hosts, hostname", async () => {
        const ip = (await seen.status("labelled"))?.podIP;
        assert.equal(
          await seen.out("labelled", "cat /etc/hosts"),
          [
            "# Kubernetes-managed hosts file.",
            "127.0.0.1\tlocalhost",
            "::1\tlocalhost ip6-localhost ip6-loopback",
            "fe00::0\tip6-localnet",
            "fe00::0\tip6-mcastprefix",
            "fe00::1\tip6-allnodes",
            "fe00::2\tip6-allrouters",
            `${ip}\tlabelled-${name}`,
            "",
            "# Entries added by HostAliases.",
            "10.1.2.3\tone.example\ttwo.example",
          ].join("\n"),
        );
        assert.equal(await seen.out("labelled", "hostname"), `labelled-${name}`);
        assert.equal(await seen.out("best-effort", "hostname"), "chosen");
        assert.match(
          await seen.out("best-effort", "cat /etc/hosts"),
          /\tchosen\.sub\.default\.svc\.cluster\.test\tchosen$/,
        );
        assert.match(
          await seen.out("dns-host", "cat /etc/hosts"),
          /^# Kubernetes-managed hosts file \(host network\)\.\n/,
        );
        assert.equal(await seen.out("dns-host", "hostname"), Deno.hostname());
      });

      await t.step("resolv.conf by DNS policy", async () => {
        const cluster = [
          "search default.svc.cluster.test svc.cluster.test cluster.test host.example",
          "nameserver 10.96.0.10",
          "options ndots:5",
        ].sort();
        const host = ["search host.example", "nameserver 198.51.100.7", "options timeout:3"].sort();
        const lines = async (one: string) =>
          (await seen.out(one, "cat /etc/resolv.conf")).split("\n").filter((line) => line !== "").sort();
        assert.deepEqual(await lines("dns-first"), cluster);
        assert.deepEqual(await lines("dns-default"), host);
        assert.deepEqual(await lines("dns-host"), host);
        assert.deepEqual(await lines("dns-host-first"), cluster);
        const none = await lines("dns-none");
        assert.deepEqual(none.filter((line) => !line.startsWith("options")), [
          "nameserver 192.0.2.53",
          "search only.example",
        ]);
        assert.deepEqual(none.find((line) => line.startsWith("options"))?.split(" ").sort(), [
          "edns0",
          "ndots:2",
          "options",
        ]);
      });

      await t.step("environment and arguments", async () => {
        const status = await seen.status("environment");
        const lines = (await seen.out("environment", "env")).split("\n");
        const env = Object.fromEntries(lines.map((line) => line.split(/=(.*)/s, 2) as [string, string]));
        const wanted = {
          POD: `environment-${name}`,
          NS: "default",
          UID_OF: await seen.uid("environment"),
          LABEL: "x",
          ANNOTATION: "of it",
          NODE: name,
          IP: status?.podIP,
          CPU: "2",
          CPU_MILLI: "50",
          MEMORY: String(64 << 20),
          MEMORY_MI: "16",
          A: "a",
          B: "ab$(LATER)$(A)",
          LATER: "later",
        };
        for (const [key, value] of Object.entries(wanted)) assert.equal(env[key], value, key);
        assert.match(env.HOST_IP ?? "", /^\d+(\.\d+){3}$|:/);
        assert.deepEqual(await seen.log("environment"), [`environment-${name} $(POD) $(UNKNOWN)`]);
        assert.equal(await seen.out("environment", "readlink /proc/1/cwd"), "/tmp");
      });

      await t.step("control groups: parents, shares, quota, memory", async () => {
        const at = async (qos: string, one: string, controller: string, file: string) => {
          const { id } = await seen.running(one);
          return [await group(seen, qos, one, controller, file), await group(seen, qos, one, controller, file, id)];
        };
        const period = "100000";
        assert.deepEqual(await at("", "guaranteed", "cpu", "cpu.shares"), ["204", "204"]);
        assert.deepEqual(await at("", "guaranteed", "cpu", "cpu.cfs_quota_us"), ["20000", "20000"]);
        assert.deepEqual(await at("", "guaranteed", "cpu", "cpu.cfs_period_us"), [period, period]);
        const memory = "memory.limit_in_bytes";
        assert.deepEqual(await at("", "guaranteed", "memory", memory), [String(32 << 20), String(32 << 20)]);
        assert.deepEqual(await at("/burstable", "burstable", "cpu", "cpu.shares"), ["102", "102"]);
        assert.deepEqual(await at("/burstable", "burstable", "cpu", "cpu.cfs_quota_us"), ["-1", "-1"]);
        assert.deepEqual(await at("/burstable", "burstable", "memory", memory), [String(48 << 20), String(48 << 20)]);
        assert.deepEqual(await at("/besteffort", "best-effort", "cpu", "cpu.shares"), ["2", "2"]);
        const { cgroup } = agent.paths;
        assert.equal(await cgroupValue("cpu", `${cgroup}/kubepods/besteffort`, "cpu.shares"), "2");
        // the requests of both Burstable pods, 100m and 50m
        assert.equal(await cgroupValue("cpu", `${cgroup}/kubepods/burstable`, "cpu.shares"), "153");
        const { info } = await seen.detail((await seen.running("guaranteed")).id);
        const uid = await seen.uid("guaranteed");
        assert.match(info.runtimeSpec.linux.cgroupsPath, new RegExp(`^${cgroup}/kubepods/pod${uid}/`));
        const joined = await Deno.readTextFile(`/proc/${info.pid}/cgroup`);
        for (const controller of ["cpu", "cpuset", "memory"]) {
          assert.match(joined, new RegExp(`:[^:]*\\b${controller}\\b[^:]*:.*${cgroup}/kubepods/pod${uid}/`));
        }
      });

      await t.step("OOM scores", async () => {
        const of = async (one: string) => (await seen.detail((await seen.running(one)).id)).info;
        // Below its own score containerd cannot go without CAP_SYS_RESOURCE, and was told to take its own then.
        const own = Number(await Deno.readTextFile(`/proc/${seen.node.containerd.pid}/oom_score_adj`));
        const guaranteedScore = (await of("guaranteed")).runtimeSpec.process.oomScoreAdj;
        assert.ok(guaranteedScore === -997 || guaranteedScore === own, `guaranteed: ${guaranteedScore}`);
        const best = await of("best-effort");
        assert.equal(best.runtimeSpec.process.oomScoreAdj, 1000);
        assert.equal((await Deno.readTextFile(`/proc/${best.pid}/oom_score_adj`)).trim(), "1000");
        const memory = Number(/MemTotal:\s+(\d+)/.exec(await Deno.readTextFile("/proc/meminfo"))?.[1]) * 1024;
        const score = 1000 - Math.floor(1000 * (16 << 20) / memory);
        assert.equal((await of("burstable")).runtimeSpec.process.oomScoreAdj, Math.max(3, Math.min(999, score)));
      });

      await t.step("status: addresses, ids, QoS class, start time", async () => {
        const status = await seen.status("guaranteed");
        assert.equal(status?.qosClass, "Guaranteed");
        assert.equal((await seen.status("burstable"))?.qosClass, "Burstable");
        assert.equal((await seen.status("best-effort"))?.qosClass, "BestEffort");
        const { id } = await seen.running("guaranteed");
        assert.equal(status?.containerStatuses?.[0]?.containerID, `containerd://${id}`);
        const [sandbox] = await seen.sandboxes("guaranteed");
        const answer = await seen.cri.call(RuntimeService.method.podSandboxStatus, { podSandboxId: sandbox?.id ?? "" });
        assert.equal(status?.podIP, answer.status?.network?.ip);
        assert.deepEqual(status?.podIPs, [{ ip: status?.podIP }]);
        assert.match(status?.startTime ?? "", /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
      });

      await t.step({
        name: "crictl finds its way by our labels",
        ignore: !await exists(crictl),
        fn: async () => {
          const base = [crictl, "-r", seen.node.containerd.endpoint, "-i", seen.node.containerd.endpoint];
          const pods = await attempt([...base, "pods", "-o", "json", "--label", "app=x", "--state", "Ready"]);
          assert.equal(pods.code, 0, pods.stderr);
          const items: { metadata: { name: string; namespace: string } }[] = JSON.parse(pods.stdout).items;
          const found = items.map((one) => `${one.metadata.namespace}/${one.metadata.name}`).sort();
          assert.deepEqual(found, [`default/environment-${name}`, `default/labelled-${name}`]);
          const { id } = await seen.running("environment");
          const logs = await attempt([...base, "logs", id]);
          assert.equal(logs.stdout, `environment-${name} $(POD) $(UNKNOWN)\n`);
          const exec = await attempt([...base, "exec", "-s", id, "hostname"]);
          assert.equal(exec.stdout.trim(), `environment-${name}`);
          const inspect = JSON.parse((await attempt([...base, "inspect", id])).stdout);
          assert.equal(inspect.status.labels["io.kubernetes.container.name"], "main");
          assert.deepEqual(inspect.info.runtimeSpec.process.args.slice(0, 2), untilEnded.slice(0, 2));
        },
      });

      await t.step("at the end nothing is left", async () => {
        assert.ok(await agent.drain());
        await seen.nothingLeft();
      });
    });
    await Deno.remove(resolvConf);
  });
}
