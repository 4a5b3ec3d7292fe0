import assert from "@assert";
import type { BoundPod, PodStatus } from "../../kube/types.ts";
import { counter } from "./metric_set.ts";
import { Terminations } from "./terminations.ts";
import { MetricsPage } from "./text.ts";

const ended = (containerID: string, exitCode: number, reason: string) => ({
  name: "c",
  ready: false,
  restartCount: 0,
  image: "i",
  imageID: "",
  state: { terminated: { containerID, exitCode, reason } },
});
const pod = (uid: string, status: PodStatus = {}): BoundPod => ({
  metadata: { name: "p", namespace: "n", uid },
  spec: { containers: [] },
  status,
});

Deno.test("each end of a container counts once, by kind, code and reason; what the API told before counts no more", () => {
  const numbers = counter("ends", "Ends", { vec: true });
  const known = new Set<string>();
  const terminations = new Terminations(numbers, (uid) => known.has(uid));
  const first = { containerStatuses: [ended("a", 3, "Error")] };
  terminations.status(pod("u"), first);
  terminations.status(pod("u"), first);
  terminations.status(pod("u"), { containerStatuses: [{ ...ended("a", 3, "Error"), state: { running: {} } }] });
  terminations.status(pod("u"), {
    initContainerStatuses: [ended("i", 0, "Completed")],
    containerStatuses: [ended("b", 3, "Error")],
  });
  terminations.status(pod("v", first), first);
  for (let i = 0; i < 600; i++) terminations.status(pod(`w${i}`), {});
  const page = new MetricsPage();
  numbers.writeTo(page);
  assert.deepEqual(page.text().trim().split("\n").filter((line) => !line.startsWith("#")).sort(), [
    'ends{container_type="container",exit_code="3",reason="Error"} 2',
    'ends{container_type="init_container",exit_code="0",reason="Completed"} 1',
  ]);
});
