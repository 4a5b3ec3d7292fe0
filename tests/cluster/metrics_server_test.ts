import assert from "@assert";
import { milliValue, parseQuantity, value } from "../../mod/kube/quantity.ts";
import { waitFor } from "../../scripts/lib/wait.ts";
import { box, shell } from "../node/support.ts";
import { withClusterNode } from "./harness.ts";
import { Kubectl } from "./kubectl.ts";
import { apply, MetricsServer } from "./metrics_server.ts";
import { approveServing, ClusterView, patience } from "./support.ts";

const nodeName = "metrics";
const heldMiB = 32;
/** Uses all the CPU that its limit gives, and holds memory of a known size. */
const busy = shell("works", `dd if=/dev/zero of=/m/held bs=1M count=${heldMiB} 2>/dev/null; while :; do :; done`, {
  resources: { requests: { cpu: "100m", memory: "64Mi" }, limits: { cpu: "200m", memory: "128Mi" } },
  volumeMounts: [{ name: "m", mountPath: "/m" }],
});

/** What metrics.k8s.io tells of pods. */
interface PodMetricsList {
  readonly items: readonly {
    readonly metadata: { readonly name: string };
    readonly timestamp: string;
    readonly containers: readonly { readonly name: string; readonly usage: { cpu: string; memory: string } }[];
  }[];
}

/** The cells of a table of kubectl, without its head. */
function rows(table: string): string[][] {
  return table.trimEnd().split("\n").slice(1).map((line) => line.trim().split(/ +/));
}

function within(what: string, figure: number, least: number, most: number): void {
  assert(figure >= least && figure <= most, `${what}: ${figure} is not from ${least} to ${most}`);
}

Deno.test("the real metrics-server and kubectl top with an agent", async (t) => {
  const options = { name: nodeName, aggregation: true, config: { serverTLSBootstrap: true } };
  await withClusterNode(options, async (member) => {
    const view = new ClusterView(member);
    const kubectl = await Kubectl.of(member.plane, patience);
    await view.nodeCondition("Ready", "True");
    // its certificate is of the cluster's authority, so metrics-server believes it
    await approveServing(member.admin);
    await using server = await MetricsServer.start(member, kubectl, patience);

    await apply(kubectl, [{
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "busy", namespace: "default" },
      spec: {
        replicas: 1,
        selector: { matchLabels: { app: "busy" } },
        template: {
          metadata: { labels: { app: "busy" } },
          spec: {
            terminationGracePeriodSeconds: 0,
            volumes: [{ name: "m", emptyDir: { medium: "Memory" } }],
            containers: [busy],
          },
        },
      },
    }]);
    await view.createPod("idle", { containers: [box("one"), box("two")] });
    await view.ready("idle");

    const metrics = async () => {
      const list: PodMetricsList = JSON.parse(
        await kubectl.run("get", "--raw", "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods"),
      );
      return list.items;
    };
    const told = await waitFor("metrics of both pods", async () => {
      const items = await metrics();
      return items.length === 2 ? items : undefined;
    }, { within: patience }).catch(async (thrown) => {
      throw new Error(`${thrown}\n${(await server.log()).split("\n").slice(-20).join("\n")}`);
    });

    await t.step("metrics.k8s.io has the usage of each container", () => {
      const usage = (pod: string) => {
        const found = told.find(({ metadata }) => metadata.name.startsWith(pod));
        return (found?.containers ?? []).map(({ name, usage }) => ({
          name,
          milliCpu: milliValue(parseQuantity(usage.cpu)),
          mib: value(parseQuantity(usage.memory)) / 2 ** 20,
        }));
      };
      const [works, ...others] = usage("busy");
      assert.equal(works?.name, "works");
      assert.equal(others.length, 0);
      within("the CPU of the busy container, of its 200m", works?.milliCpu ?? 0, 60, 260);
      within("its memory", works?.mib ?? 0, heldMiB, heldMiB + 16);
      const idle = usage("idle");
      assert.deepEqual(idle.map(({ name }) => name).sort(), ["one", "two"]);
      for (const { name, milliCpu, mib } of idle) {
        within(`the CPU of idle container ${name}`, milliCpu, 0, 20);
        within("its memory", mib, 0.01, 16);
      }
    });

    await t.step("kubectl top node", async () => {
      const [[name, cores = "", , bytes = "", share = ""] = [], ...more] = rows(await kubectl.run("top", "node"));
      assert.equal(name, nodeName);
      assert.equal(more.length, 0);
      within("the node's CPU, millicores", parseInt(cores), 60, 1000 * navigator.hardwareConcurrency);
      assert.match(bytes, /^\d+Mi$/);
      within("the share of the node's memory, percent", parseInt(share), 1, 99);
    });

    await t.step("kubectl top pod, with and without --containers", async () => {
      const pods = rows(await kubectl.run("top", "pod", "--sort-by=cpu"));
      assert.match(pods[0]?.[0] ?? "", /^busy-/);
      assert.equal(pods[1]?.[0], "idle");
      const containers = rows(await kubectl.run("top", "pod", "--containers"));
      const [, , cores = "", bytes = ""] = containers.find(([, name]) => name === "works") ?? [];
      assert.match(cores, /^\d+m$/);
      within("the busy container's millicores", parseInt(cores), 60, 260);
      within("its memory, MiB", parseInt(bytes), heldMiB, heldMiB + 16);
      assert.deepEqual(containers.filter(([pod]) => pod === "idle").map(([, name]) => name).sort(), ["one", "two"]);
    });

    await t.step("/metrics tells how long both pods took to start", async () => {
      const page = await kubectl.run("get", "--raw", `/api/v1/nodes/${nodeName}/proxy/metrics`);
      const figure = (name: string) => Number(new RegExp(`^kubelet_${name} (\\S+)$`, "m").exec(page)?.[1]);
      assert.equal(figure("pod_start_sli_duration_seconds_count"), 2);
      assert.equal(figure("pod_start_total_duration_seconds_count"), 2);
      within("both starts, seconds", figure("pod_start_sli_duration_seconds_sum"), 0.001, 2 * patience / 1000);
      within("the first start", figure("first_network_pod_start_sli_duration_seconds"), 0.001, patience / 1000);
    });

    await t.step("a HorizontalPodAutoscaler scales by it", async () => {
      await apply(kubectl, [{
        apiVersion: "autoscaling/v2",
        kind: "HorizontalPodAutoscaler",
        metadata: { name: "busy", namespace: "default" },
        spec: {
          scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "busy" },
          minReplicas: 1,
          maxReplicas: 2,
          metrics: [{
            type: "Resource",
            resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 50 } },
          }],
        },
      }]);
      const seen = await waitFor("a second pod of the busy kind", async () => {
        const hpa = JSON.parse(await kubectl.run("get", "hpa", "busy", "-o", "json"));
        return hpa.status.desiredReplicas === 2 ? hpa : undefined;
      }, { within: patience });
      const { averageUtilization } = seen.status.currentMetrics[0].resource.current;
      within("the usage of what was asked for, percent", averageUtilization, 60, 260);
    });

    await t.step("no scrape of the node failed once it had its certificate", async () => {
      const log = await server.log();
      assert.match(log, /Scrape finished" duration="[^"]+" nodeCount=1/);
      assert.doesNotMatch(log, /Failed to scrape|Skipping|Got duplicate/);
    });

    await t.step("a container that starts again and an agent that does leave no wrong figure", async () => {
      // the kernel ends all of the container's processes with its first: the killer may go before it could say 0
      const killed = await kubectl.try("exec", "idle", "-c", "one", "--", "kill", "1");
      assert([0, 137].includes(killed.code), killed.stderr);
      await view.podUntil(
        "idle",
        "to have a container that was started again",
        ({ status }) =>
          status?.containerStatuses?.some(({ restartCount, ready }) => restartCount === 1 && ready) ?? false,
      );
      await member.agent.kill();
      const at = Date.now();
      member.agent.start();
      await member.agent.healthy();
      const idle = await waitFor("figures of after that, of both containers", async () => {
        const found = (await metrics()).find(({ metadata }) => metadata.name === "idle");
        return found && Date.parse(found.timestamp) > at && found.containers.length === 2 ? found : undefined;
      }, { within: patience });
      for (const { name, usage } of idle.containers) {
        within(`the CPU of ${name}`, milliValue(parseQuantity(usage.cpu)), 0, 100);
      }
      assert.doesNotMatch(await server.log(), /Skipping|Got duplicate|unexpected decrease/);
    });
  });
});
