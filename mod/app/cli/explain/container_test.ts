import { ended, isReady, loop, ready, record, running, testCases, waits } from "./testing.ts";

testCases([
  {
    name: "image that is never pulled",
    status: waits("ErrImageNeverPull", "not present"),
    says: [/Why: Container web needs the image localhost\/web:1, which is not on this node/, /images import FILE/],
  },
  {
    name: "image of no such name",
    status: waits("ImagePullBackOff", "Back-off pulling image: ErrImagePull: manifest unknown"),
    says: [/waits for its image localhost\/web:1, which cannot be pulled/, /the registry has none of that name/],
  },
  {
    name: "image that is refused",
    status: waits("ErrImagePull", "401 Unauthorized"),
    says: [/Give the node credentials for the registry .*imagePullSecrets/],
  },
  {
    name: "registry that is not reached",
    status: waits("ErrImagePull", "dial tcp: lookup r: no such host"),
    says: [/Check that the node reaches the registry/],
  },
  { name: "image name", status: waits("InvalidImageName", "bad"), says: [/an image name that is none/] },
  {
    name: "configuration",
    status: waits("CreateContainerConfigError", "no such field"),
    says: [/cannot be made from its definition: no such field/, /Correct what the message names/],
  },
  { name: "container", status: waits("CreateContainerError", "no"), says: [/could not be made by the runtime: no/] },
  { name: "start", status: waits("RunContainerError", "no"), says: [/was made but could not be started: no/] },
  {
    name: "a start that failed for another reason than its command",
    status: loop(ended(128, {
      reason: "StartError",
      message: "runc create failed: unable to start container process: error during container init: error setting " +
        "rlimits for ready process: error setting rlimit type 7: operation not permitted: unknown",
    })),
    says: [/it could not be started: runc create failed/, /Remedy: The runtime may not give the container the limit/],
    never: /command or args/,
  },
  {
    name: "a start that failed in words that nobody knows",
    status: loop(ended(128, { reason: "StartError", message: "all is lost" })),
    says: [/could not be started: all is lost/, /Remedy: Correct what the message names/],
    never: /command or args/,
  },
  {
    name: "a shell that did not find its program",
    status: loop(ended(127)),
    says: [/could not be started: exit code 127/, /Correct command or args/],
  },
  {
    name: "a container that could not be made for its device",
    status: waits("CreateContainerError", "unresolvable CDI devices vendor.example/gpu=1"),
    says: [/could not be made by the runtime: unresolvable/, /plugin that gave it/],
  },
  {
    name: "a stop for a probe that the runtime does not confirm",
    status: running(ready, isReady),
    records: [
      record(100, "StopContainer", {
        container: "web",
        reason: "LivenessProbe",
        message: "Container web failed liveness probe",
        error: "StopContainer c1: no end within 60 s",
        tookMs: 60_000,
      }),
    ],
    says: [
      /Container web is to be ended since 1m40s \(Container web failed liveness probe\), but the runtime has not confirmed its end: StopContainer c1: no end within 60 s/,
      /Remedy: Look at the runtime/,
    ],
    never: /Nothing is wrong/,
  },
  {
    name: "a stop that was confirmed after all, and one of an earlier instance",
    status: running(ready, isReady),
    records: [
      record(400, "StopContainer", { container: "web", reason: "LivenessProbe", message: "m", error: "late" }),
      record(100, "StopContainer", { container: "web", reason: "LivenessProbe", message: "m", error: "late" }),
      record(40, "StopContainer", { container: "web", reason: "LivenessProbe", message: "m" }),
    ],
    says: [/Nothing is wrong/],
    never: /not confirmed/,
  },
]);
