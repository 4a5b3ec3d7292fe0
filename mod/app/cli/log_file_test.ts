import assert from "@assert";
import type { BoundPod, ContainerStatus } from "../../kube/types.ts";
import type { LogsRequest } from "./command.ts";
import { logOfFiles, logOfPod, podsOfLogDirs } from "./log_file.ts";

const request = (more: Partial<LogsRequest> = {}): LogsRequest => ({
  pod: "web",
  follow: false,
  previous: false,
  timestamps: false,
  ...more,
});
const pod = (names: string[], annotations = {}): BoundPod => ({
  metadata: { name: "web", namespace: "default", uid: "u", annotations },
  spec: { containers: names.map((name) => ({ name, resources: {} })) },
});
const status = (state: ContainerStatus["state"], more: Partial<ContainerStatus> = {}) => ({
  containerStatuses: [{
    name: "a",
    state: state ?? {},
    lastState: { terminated: { exitCode: 1, containerID: "containerd://old" } },
    ready: false,
    restartCount: 3,
    image: "",
    imageID: "",
    ...more,
  }],
});
const running = status({ running: {} }, { containerID: "containerd://new" });
const waiting = status({ waiting: { reason: "CrashLoopBackOff" } }, { containerID: "containerd://old" });

const cases: [name: string, asked: Partial<LogsRequest>, of: typeof running, file: string][] = [
  ["running", {}, running, "3.log"],
  ["before the running one", { previous: true }, running, "2.log"],
  ["waiting to be restarted", {}, waiting, "3.log"],
  ["the last one of a crash loop", { previous: true }, waiting, "3.log"],
];
for (const [name, asked, of, file] of cases) {
  Deno.test(`log of a container: ${name}`, () => {
    const { path } = logOfPod(request(asked), { pod: pod(["a"]), status: of }, "/logs");
    assert.equal(path, `/logs/default_web_u/a/${file}`);
  });
}

Deno.test("the container is the only one, the annotated one, or has to be named", () => {
  const two = pod(["a", "b"]);
  assert.throws(
    () => logOfPod(request(), { pod: two, status: running }, "/l"),
    /2 containers; choose one with -c: a, b/,
  );
  assert.throws(() => logOfPod(request({ container: "x" }), { pod: two, status: running }, "/l"), /no container "x"/);
  const annotated = pod(["a", "b"], { "kubectl.kubernetes.io/default-container": "a" });
  assert.equal(logOfPod(request(), { pod: annotated, status: running }, "/l").container, "a");
  assert.throws(() => logOfPod(request(), { pod: pod(["a"]) }, "/l"), /not available; why: kubelet explain web/);
});

Deno.test("without an agent the newest file is taken", () => {
  const ref = { namespace: "default", name: "web", uid: "u" };
  const files = new Map([["a", ["9.log", "10.log", "10.log.20260101-000000.gz", "x"]]]);
  assert.equal(logOfFiles(request(), ref, files, "/l").path, "/l/default_web_u/a/10.log");
  assert.equal(logOfFiles(request({ previous: true }), ref, files, "/l").path, "/l/default_web_u/a/9.log");
  assert.throws(() => logOfFiles(request(), ref, new Map([["a", []]]), "/l"), /has no log/);
  assert.deepEqual(podsOfLogDirs(["default_web_u", "x", "a_b", "a_b_c_d", "__"]), [ref]);
});
