import { FakeClock } from "../../mod/base/fake_clock.ts";
import { RecordingLogger } from "../../mod/base/log.ts";
import { Scope } from "../../mod/base/scope.ts";
import { FakeApi } from "../../mod/kube/api/fake/fake_api.ts";
import { resources } from "../../mod/kube/api/resources.ts";
import type { BoundPod, Pod, PodStatus } from "../../mod/kube/types.ts";
import { ApiStatusWriter } from "./api_writer.ts";
import { StatusManager } from "./status_manager.ts";

const running = (reason = ""): PodStatus => ({
  phase: "Running",
  conditions: [{ type: "Ready", status: "True" }],
  ...(reason ? { reason } : {}),
});

/** A clock whose wall time can be stepped. */
class SteppedClock extends FakeClock {
  stepMs = 0;
  override now(): number {
    return super.now() + (this.stepMs ?? 0);
  }
}

function setUp() {
  const clock = new SteppedClock();
  const api = new FakeApi({ clock });
  api.create(resources.nodes, { metadata: { name: "n1" } });
  const log = new RecordingLogger();
  const scope = new Scope("test");
  const arrived: number[] = [];
  const heard = new Map<string, BoundPod>();
  const t = { deaf: false };
  const writer = new ApiStatusWriter({
    client: api.client("main", { node: "n1" }),
    clock,
    log,
    scope,
    known: ({ name, namespace }) => {
      const key = `${namespace}/${name}`;
      const now = api.get<Pod>(resources.pods, { name, ...(namespace ? { namespace } : {}) });
      if (t.deaf) return heard.get(key);
      if (now) heard.set(key, now as BoundPod);
      return now as BoundPod | undefined;
    },
    onWritten: (_, ms) => arrived.push(ms),
  });
  scope.spawn("resync", (signal) => writer.run(signal));
  const statuses = new StatusManager({ onChange: (entry) => writer.status(entry) });
  const make = (name: string, rest: { metadata?: object; spec?: object } = {}): BoundPod =>
    api.create<Pod>(resources.pods, {
      metadata: { name, namespace: "default", ...rest.metadata },
      spec: { nodeName: "n1", containers: [{ name: "c", image: "i" }], ...rest.spec },
    }) as BoundPod;
  const writes = () =>
    api.calls.filter((c) => c.verb === "patch" || c.verb === "delete")
      .map((c) => `${c.verb} ${c.name}${c.subresource ? `/${c.subresource}` : ""}`);
  const got = (name: string) => api.get<Pod>(resources.pods, { name, namespace: "default" });
  return { clock, api, log, scope, writer, statuses, make, writes, got, arrived, t };
}

function status(reason: string) {
  return { name: "c", state: { waiting: { reason } }, ready: false, restartCount: 0, image: "i", imageID: "" };
}

export { running, setUp, status };
