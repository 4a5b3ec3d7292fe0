import assert from "@assert";
import { FakeHost } from "../../mod/base/fake_host.ts";
import { silent } from "../../mod/base/log.ts";
import { seeded } from "../../mod/base/random.ts";
import { RecordingEvents } from "../../mod/kube/events.ts";
import type { BoundPod } from "../../mod/kube/types.ts";
import { AgentPodBuilder } from "./builder.ts";
import { createEnvSource } from "./env_source.ts";

Deno.test("a cluster's DNS that is not there is told once, of the pod and of the node", async () => {
  const host = new FakeHost({});
  const random = seeded(1);
  const events = new RecordingEvents();
  const builder = new AgentPodBuilder({
    host,
    random,
    events,
    policy: {
      rootDir: "/r",
      seccompDefault: false,
      selinuxEnabled: false,
      stopSignals: false,
      cpuCfsQuota: true,
      cpuPeriodUs: 100_000,
      cgroupVersion: 2,
      memorySwap: "NoSwap",
      swapAvailable: false,
      nodeMemory: 1,
      nodeSwap: 0,
      hugePageSizes: [],
    },
    podLogsDir: "/logs",
    resolvConf: "",
    clusterDNS: [],
    clusterDomain: "",
    nodeIPs: ["10.0.0.1"],
    allocatable: {},
    cgroupParent: () => "/g",
    environment: createEnvSource({ host, log: silent }),
    userns: { of: () => Promise.resolve({}) },
    handlers: () => [],
    imageVolumes: undefined,
    subPath: () => Promise.resolve("/s"),
  });
  const pod: BoundPod = {
    metadata: { name: "p", namespace: "ns", uid: "u" },
    spec: { dnsPolicy: "ClusterFirst", containers: [] },
  };
  await builder.sandbox(pod, 0, "");
  await builder.sandbox(pod, 1, "");
  assert.deepEqual(events.events.map(({ reason }) => reason), ["MissingClusterDNS"]);
  assert.deepEqual(events.nodeEvents.map(({ reason }) => reason), ["MissingClusterDNS"]);
});
