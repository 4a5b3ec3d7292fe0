import assert from "@assert";
import { FakeClock } from "../../base/fake_clock.ts";
import { StartupMetrics } from "./startup_metrics.ts";
import { MetricsPage } from "./text.ts";

function told(metrics: StartupMetrics): string[] {
  const page = new MetricsPage();
  metrics.writeTo(page);
  return page.text().split("\n").filter((line) => line !== "" && !line.startsWith("#")).sort();
}

Deno.test("a new node's start is measured, once", async () => {
  const clock = new FakeClock();
  const booted = clock.now() - 60_000;
  const metrics = new StartupMetrics(() => clock.now());
  metrics.bootedAt = () => booted;
  await clock.advance(1000);
  metrics.attempted();
  await clock.advance(500);
  metrics.attempted();
  metrics.created();
  await clock.advance(2000);
  metrics.ready();
  await clock.advance(9000);
  metrics.attempted();
  metrics.created();
  metrics.ready();
  assert.deepEqual(told(metrics), [
    "kubelet_node_startup_duration_seconds 63.5",
    "kubelet_node_startup_post_registration_duration_seconds 2",
    "kubelet_node_startup_pre_kubelet_duration_seconds 60",
    "kubelet_node_startup_pre_registration_duration_seconds 1",
    "kubelet_node_startup_registration_duration_seconds 0.5",
  ]);
});

Deno.test("a node that was registered before has no start to measure", () => {
  const metrics = new StartupMetrics(() => 1000);
  metrics.attempted();
  metrics.ready();
  assert(told(metrics).every((line) => line.endsWith(" 0")));
});
