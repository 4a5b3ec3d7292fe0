import type { PodCondition } from "../../../kube/types.ts";
import { at, isReady, ready, running, testCases } from "./testing.ts";

const resized = (type: string, more: Partial<PodCondition> = {}) =>
  running(ready, {
    conditions: [...isReady.conditions, { type, status: "True", lastTransitionTime: at(120), ...more }],
  });

testCases([
  {
    name: "a resize that waits for room",
    status: resized("PodResizePending", {
      reason: "Deferred",
      message: "Node didn't have enough resource: cpu, requested: 2000, used: 1500, capacity: 2000",
    }),
    says: [
      /Why: The resize of the pod in place waits since 2m for room on the node: Node didn't have enough resource: cpu.*\.\nRemedy: Free resources/,
    ],
    never: /Nothing is wrong/,
  },
  {
    name: "a resize that can never be",
    status: resized("PodResizePending", {
      reason: "Infeasible",
      message: "In-place resize of containers with swap is not supported.",
    }),
    says: [/can never be done on this node: In-place resize of containers with swap/, /Remedy: Ask for resources/],
  },
  {
    name: "a resize under way",
    status: resized("PodResizeInProgress"),
    says: [/is being resized in place since 2m/],
    never: /Remedy:/,
  },
  {
    name: "a resize that fails",
    status: resized("PodResizeInProgress", { reason: "Error", message: "cannot decrease memory limits" }),
    says: [/resize of the pod in place fails since 2m \(Error\): cannot decrease memory limits/, /RestartContainer/],
  },
  {
    name: "a resize that is over",
    status: resized("PodResizePending", { status: "False", reason: "Deferred" }),
    says: [/Nothing is wrong/],
  },
]);
