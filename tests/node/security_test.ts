import assert from "@assert";
import type { PodSpec, SecurityContext } from "../../mod/kube/types.ts";
import { versions } from "./harness.ts";
import { box, Observer, pod, withObserver } from "./support.ts";

/** A pod of one container with these security settings. */
function secured(name: string, security: SecurityContext, spec: Partial<PodSpec> = {}) {
  return pod(name, { containers: [box("main", { securityContext: security })], ...spec });
}

const sysctls = (...pairs: [string, string][]) => ({
  securityContext: { sysctls: pairs.map(([name, value]) => ({ name, value })) },
});

const all = [
  secured("user", { runAsUser: 1234, runAsGroup: 2345 }),
  secured("pod-user", {}, {
    securityContext: {
      runAsUser: 1000,
      runAsGroup: 1000,
      fsGroup: 4000,
      supplementalGroups: [3000],
      runAsNonRoot: true,
    },
    containers: [
      box("main", { volumeMounts: [{ name: "v", mountPath: "/v" }, { name: "m", mountPath: "/m" }] }),
      box("other", { securityContext: { runAsUser: 1001 } }),
    ],
    volumes: [{ name: "v", emptyDir: {} }, { name: "m", emptyDir: { medium: "Memory" } }],
  }),
  secured("no-root", { runAsNonRoot: true }),
  secured("no-root-zero", { runAsNonRoot: true, runAsUser: 0 }),
  secured("plain", {}),
  secured("drop", { capabilities: { drop: ["ALL"] } }),
  secured("add", { capabilities: { drop: ["ALL"], add: ["NET_ADMIN"] } }),
  secured("read-only", { readOnlyRootFilesystem: true }),
  secured("privileged", { privileged: true }),
  secured("no-new", { allowPrivilegeEscalation: false, seccompProfile: { type: "RuntimeDefault" } }),
  secured("unconfined", { seccompProfile: { type: "Unconfined" } }),
  pod("host-net", { hostNetwork: true, containers: [box("main")] }),
  pod("host-pid", { hostPID: true, containers: [box("main")] }),
  pod("host-ipc", { hostIPC: true, containers: [box("main")] }),
  pod("shared-pid", { shareProcessNamespace: true, containers: [box("main"), box("other")] }),
  pod("sysctl", {
    ...sysctls(["net.ipv4.ip_unprivileged_port_start", "80"], ["net/ipv4/ping_group_range", "0 5000"]),
    containers: [box("main")],
  }),
  pod("sysctl-unsafe", { ...sysctls(["net.core.somaxconn", "99"]), containers: [box("main")] }),
];

for (const version of versions) {
  Deno.test(`security settings and namespaces on containerd ${version}`, async (t) => {
    await withObserver({ name: `se-${version}`, containerd: version }, async (seen) => {
      const { agent } = seen.node;
      for (const one of all) await agent.putManifest(`${one.metadata?.name}.yaml`, one);
      const capabilities = async (name: string) =>
        /CapEff:\t(\w+)/.exec(await seen.out(name, "cat /proc/self/status"))?.[1];
      const spec = async (name: string) => (await seen.detail((await seen.running(name)).id)).info.runtimeSpec;

      await t.step("users and groups", async () => {
        await seen.ready("user");
        assert.equal(await seen.out("user", "id -u; id -g"), "1234\n2345");
        await seen.ready("pod-user");
        assert.equal(await seen.out("pod-user", "id -u; id -g"), "1000\n1000");
        const groups = (await seen.out("pod-user", "id -G")).split(" ").sort();
        assert.deepEqual(groups, ["1000", "3000", "4000"]);
        assert.equal(await seen.out("pod-user", "id -u; id -g", "other"), "1001\n1000");
      });

      await t.step("fsGroup owns emptyDir volumes, with the set-group-id bit", async () => {
        // In memory the kernel adds the sticky bit.
        for (const [path, mode] of [["/v", "2777"], ["/m", "3777"]]) {
          assert.equal(await seen.out("pod-user", `stat -c '%g %a' ${path}`), `4000 ${mode}`);
          assert.equal(await seen.out("pod-user", `touch ${path}/f && stat -c '%u %g' ${path}/f`), "1000 4000");
        }
      });

      await t.step("runAsNonRoot refuses root, by image and by number", async () => {
        for (const name of ["no-root", "no-root-zero"]) {
          const status = await seen.until(name, "a refusal", (one) => {
            return Observer.of(one, "main").state?.waiting?.reason === "CreateContainerConfigError";
          });
          assert.match(
            Observer.of(status, "main").state?.waiting?.message ?? "",
            /(run|runs) as (root|non-root)|non-root/i,
          );
          await seen.event(name, "Failed");
          assert.equal((await seen.containers(name)).length, 0);
        }
      });

      await t.step("capabilities", async () => {
        for (const name of ["plain", "drop", "add"]) await seen.ready(name);
        assert.equal(await capabilities("plain"), "00000000a80425fb");
        assert.equal(await capabilities("drop"), "0000000000000000");
        assert.equal(await capabilities("add"), "0000000000001000");
      });

      await t.step("read-only root file system", async () => {
        await seen.ready("read-only");
        assert.notEqual((await seen.exec("read-only", "touch /x")).code, 0);
        assert.equal((await seen.exec("plain", "touch /x")).code, 0);
        // the termination message must be writable all the same
        assert.equal((await seen.exec("read-only", "echo x > /dev/termination-log")).code, 0);
      });

      await t.step("privileged: devices, capabilities, no masks", async () => {
        await seen.ready("privileged");
        const value = BigInt(`0x${await capabilities("privileged")}`);
        assert.ok((value & (1n << 21n)) !== 0n, "has SYS_ADMIN");
        const { linux } = await spec("privileged");
        assert.deepEqual(linux.maskedPaths ?? [], []);
        assert.equal(linux.seccomp, undefined);
        assert.ok(
          Number(await seen.out("privileged", "ls /dev | wc -l")) > Number(await seen.out("plain", "ls /dev | wc -l")),
        );
      });

      await t.step("no_new_privs, seccomp, masked paths", async () => {
        for (const name of ["no-new", "unconfined"]) await seen.ready(name);
        assert.equal((await spec("no-new")).process.noNewPrivileges, true);
        assert.match(await seen.out("no-new", "cat /proc/self/status"), /NoNewPrivs:\t1/);
        assert.ok((await spec("no-new")).linux.seccomp);
        assert.equal((await spec("unconfined")).linux.seccomp, undefined);
        assert.equal((await spec("plain")).linux.seccomp, undefined);
        assert.ok(((await spec("plain")).linux.maskedPaths ?? []).length > 0);
      });

      await t.step("namespaces of the node and of the pod", async () => {
        for (const name of ["host-net", "host-pid", "host-ipc", "shared-pid"]) await seen.ready(name);
        const own = async (kind: string) => await Deno.readLink(`/proc/self/ns/${kind}`);
        const of = async (name: string, kind: string, container = "main") =>
          await Deno.readLink(
            `/proc/${(await seen.detail((await seen.running(name, container)).id)).info.pid}/ns/${kind}`,
          );
        for (
          const [name, shared] of [["host-net", "net"], ["host-pid", "pid"], ["host-ipc", "ipc"], [
            "plain",
            "",
          ]] as const
        ) {
          for (const kind of ["net", "pid", "ipc"]) {
            const same = await of(name, kind) === await own(kind);
            assert.equal(same, kind === shared, `${name}: ${kind}`);
          }
        }
        assert.equal(await of("shared-pid", "pid"), await of("shared-pid", "pid", "other"));
        assert.match(await seen.out("shared-pid", "ps"), /^ *1 .*pause/m);
        assert.notEqual(await of("pod-user", "pid"), await of("pod-user", "pid", "other"));
        assert.equal(await of("pod-user", "net"), await of("pod-user", "net", "other"));
      });

      await t.step("sysctls: safe ones are set, unsafe ones refuse the pod", async () => {
        await seen.ready("sysctl");
        assert.equal(await seen.out("sysctl", "cat /proc/sys/net/ipv4/ip_unprivileged_port_start"), "80");
        assert.equal(await seen.out("sysctl", "cat /proc/sys/net/ipv4/ping_group_range"), "0\t5000");
        const status = await seen.phase("sysctl-unsafe", "Failed");
        assert.equal(status.reason, "SysctlForbidden");
        assert.match(
          status.message ?? "",
          /^Pod was rejected: forbidden sysctl: "net\.core\.somaxconn" not allowlisted/,
        );
        assert.equal((await seen.sandboxes("sysctl-unsafe")).length, 0);
      });

      await t.step("at the end nothing is left", async () => {
        assert.ok(await agent.drain());
        await seen.nothingLeft();
      });
    });
  });
}
