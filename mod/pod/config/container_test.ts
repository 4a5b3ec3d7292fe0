import assert from "@assert";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { ContainerConfigSchema, NamespaceMode, Signal } from "../../../cri/gen/runtime_pb.ts";
import type { BoundPod, Container } from "../../kube/types.ts";
import { containerConfig, type ContainerConfigInput } from "./container.ts";

const pod: BoundPod = { metadata: { name: "p", namespace: "ns", uid: "u" }, spec: { containers: [] } };

function input(container: Partial<Container> = {}, more: Partial<ContainerConfigInput> = {}): ContainerConfigInput {
  return {
    pod,
    container: { name: "c", image: "web:1", ...container },
    restartCount: 3,
    imageRef: "sha256:abc",
    imageUser: { uid: 0 },
    envs: [{ name: "A", value: "é" }, { name: "B", value: "x", bytes: new Uint8Array([0xff]) }],
    volumes: new Map(),
    podIPs: ["10.0.0.2"],
    policy: {
      rootDir: "/r",
      cpuCfsQuota: true,
      cgroupVersion: 2,
      memorySwap: "NoSwap",
      swapAvailable: false,
      nodeMemory: 4_000_000_000,
      nodeSwap: 0,
      hugePageSizes: [],
      seccompDefault: false,
      selinuxEnabled: false,
      stopSignals: false,
    },
    ...more,
  };
}

Deno.test("the whole configuration, as the runtime reads it off the wire", () => {
  const config = containerConfig(input({
    command: ["sh", "-c", "echo $(A) $(NONE) $$(A)"],
    args: ["$(B)"],
    workingDir: "/w",
    stdin: true,
    tty: true,
    resources: { limits: { cpu: "1", memory: "1Gi" } },
  }));
  const wire = fromBinary(
    ContainerConfigSchema,
    toBinary(ContainerConfigSchema, create(ContainerConfigSchema, config)),
  );
  assert.deepEqual([wire.metadata?.name, wire.metadata?.attempt], ["c", 3]);
  assert.deepEqual([wire.image?.image, wire.image?.userSpecifiedImage], ["sha256:abc", "web:1"]);
  assert.deepEqual(wire.command, ["sh", "-c", "echo é $(NONE) $(A)"]);
  assert.deepEqual(wire.args, ["x"]);
  assert.equal(wire.workingDir, "/w");
  assert.deepEqual(wire.envs.map((e) => [e.key, [...e.value]]), [["A", [0xc3, 0xa9]], ["B", [0xff]]]);
  assert.deepEqual(wire.mounts.map((m) => [m.containerPath, m.hostPath]), [["/etc/hosts", "/r/pods/u/etc-hosts"]]);
  assert.equal(wire.labels["io.kubernetes.container.name"], "c");
  assert.equal(wire.annotations["io.kubernetes.container.restartCount"], "3");
  assert.equal(wire.logPath, "c/3.log");
  assert.deepEqual([wire.stdin, wire.stdinOnce, wire.tty], [true, false, true]);
  assert.equal(wire.stopSignal, Signal.RUNTIME_DEFAULT);
  assert.equal(wire.linux?.resources?.cpuQuota, 100_000n);
  assert.equal(wire.linux?.resources?.memoryLimitInBytes, 1n << 30n);
  assert.equal(wire.linux?.resources?.unified["memory.oom.group"], "1");
  assert.equal(wire.linux?.securityContext?.runAsUser?.value, 0n);
  assert.equal(wire.linux?.securityContext?.namespaceOptions?.pid, NamespaceMode.CONTAINER);
});

Deno.test("device plugins come first, the agent's own annotations win", () => {
  const config = containerConfig(input({ args: ["$(DEV)"] }, {
    plugin: {
      envs: [{ name: "DEV", value: "0" }],
      mounts: [{ containerPath: "/m", hostPath: "/m" }],
      devices: [{ containerPath: "/dev/x", hostPath: "/dev/x", permissions: "rw" }],
      annotations: { own: "1", "io.kubernetes.container.restartCount": "99" },
      cdiDevices: ["vendor.com/gpu=0"],
    },
  }));
  assert.deepEqual(config.args, ["0"]);
  assert.deepEqual(config.envs?.map((e) => e.key), ["DEV", "A", "B"]);
  assert.equal(config.mounts?.[0]?.containerPath, "/m");
  assert.equal(config.devices?.[0]?.containerPath, "/dev/x");
  assert.deepEqual(config.CDIDevices, [{ name: "vendor.com/gpu=0" }]);
  assert.equal(config.annotations?.["own"], "1");
  assert.equal(config.annotations?.["io.kubernetes.container.restartCount"], "3");
});

Deno.test("the stop signal is sent only with its gate", () => {
  const base = input();
  const gated = { policy: { ...base.policy, stopSignals: true } };
  const of = (stopSignal: string, more: Partial<ContainerConfigInput> = gated) =>
    containerConfig(input({ lifecycle: { stopSignal } }, more)).stopSignal;
  assert.equal(of("SIGUSR1", {}), undefined);
  assert.equal(of("SIGUSR1"), Signal.SIGUSR1);
  assert.equal(of("SIGRTMIN+3"), Signal.SIGRTMINPLUS3);
  assert.equal(of("SIGRTMAX-2"), Signal.SIGRTMAXMINUS2);
  assert.equal(of("RUNTIME_DEFAULT"), Signal.RUNTIME_DEFAULT);
  assert.equal(of("SIGNONE"), Signal.RUNTIME_DEFAULT);
  assert.equal(containerConfig(input({}, gated)).stopSignal, undefined);
});

Deno.test("whatever is wrong in the spec is one kind of error", () => {
  const cases: [Partial<Container>, RegExp][] = [
    [{ resources: { limits: { cpu: "much" } } }, /limits\.cpu.*"much"/],
    [{ volumeMounts: [{ name: "no", mountPath: "/d" }] }, /cannot find volume "no"/],
    [{ securityContext: { runAsNonRoot: true } }, /will run as root/],
    [{ securityContext: { runAsUser: 1.5 } }, /runAsUser: 1\.5 is not a whole number/],
    [{ name: "../x" }, /container "\.\.\/x" can't be part of a path/],
  ];
  for (const [container, message] of cases) {
    assert.throws(() => containerConfig(input(container)), { name: "CreateContainerConfigError", message });
  }
});
