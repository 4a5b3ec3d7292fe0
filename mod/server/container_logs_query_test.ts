import assert from "@assert";
import { parseLogQuery } from "./container_logs_query.ts";
import { chooseLog } from "./container_logs_choice.ts";
import type { ContainerState, PodStatus } from "../kube/types.ts";

const now = 1_700_000_000_250;
const undecodable = { status: 400, text: '{"message": "Unable to decode query."}' };
const invalid = { status: 422, text: '{"message": "Invalid request."}' };

Deno.test("queries that cannot be used", () => {
  const cases: [string, typeof undecodable | typeof invalid][] = [
    ["tailLines=x", undecodable],
    ["tailLines=", undecodable],
    ["tailLines=1.5", undecodable],
    ["tailLines=99999999999999999999", undecodable],
    ["tail=none", undecodable],
    ["limitBytes=NaN", undecodable],
    ["sinceSeconds=0x1", undecodable],
    ["sinceTime=yesterday", undecodable],
    ["sinceTime=2024-13-01T00:00:00Z", undecodable],
    ["tailLines=-1", invalid],
    ["limitBytes=0", invalid],
    ["limitBytes=-1", invalid],
    ["sinceSeconds=0", invalid],
    ["sinceSeconds=1&sinceTime=2024-01-01T00:00:00Z", invalid],
    ["stream=stdout", invalid],
    ["stream=", invalid],
    ["stream=Stdout&tailLines=1", invalid],
  ];
  for (const [query, want] of cases) assert.deepEqual(parseLogQuery(new URLSearchParams(query), now), want, query);
});

Deno.test("queries, and what they ask", () => {
  const plain = { follow: false, timestamps: false };
  const cases: [string, Record<string, unknown>, { previous?: boolean; stream?: string }?][] = [
    ["", plain],
    ["follow=true&timestamps=1&previous=yes", { follow: true, timestamps: true }, { previous: true }],
    ["follow&timestamps=False&previous=0", { follow: true, timestamps: false }],
    ["tailLines=0&limitBytes=1", { ...plain, tailLines: 0, limitBytes: 1 }],
    ["tailLines=+5", { ...plain, tailLines: NaN }],
    ["tailLines=5&tail=7", { ...plain, tailLines: 7 }],
    ["tailLines=5&tail=all", plain],
    ["tailLines=5&tail=", { ...plain, tailLines: 5 }],
    ["tailLines=1&tailLines=2", { ...plain, tailLines: 1 }],
    ["sinceSeconds=10", { ...plain, since: { seconds: 1_699_999_990, nanos: 250_000_000 } }],
    ["sinceTime=2023-11-14T22:13:20.5Z", { ...plain, since: { seconds: 1_700_000_000, nanos: 500_000_000 } }],
    ["stream=All&tailLines=1", { ...plain, tailLines: 1 }],
    ["stream=Stderr", plain, { stream: "Stderr" }],
    ["container=x&insecureSkipTLSVerifyBackend=true&__proto__=1", plain],
  ];
  for (const [query, options, { previous = false, stream } = {}] of cases) {
    const got = parseLogQuery(new URLSearchParams(query), now);
    if (query === "tailLines=+5") assert.deepEqual(got, undecodable, "a plus sign in a query is a space");
    else assert.deepEqual(got, { options, previous, stream }, query);
  }
});

Deno.test("which container's log it is", () => {
  const ended = (containerID?: string) => ({ terminated: { exitCode: 0, ...(containerID ? { containerID } : {}) } });
  const status = (state: unknown, lastState?: unknown, more: object = {}): PodStatus => ({
    containerStatuses: [{
      name: "c",
      state: state as ContainerState,
      ...(lastState ? { lastState: lastState as ContainerState } : {}),
      ...more,
    }],
  } as unknown as PodStatus);
  const what = 'container "c" in pod "p"';
  const waiting = (reason: string) => ({ waiting: { reason } });
  const cases: [PodStatus | undefined, boolean, string][] = [
    [undefined, false, `${what} is not available`],
    [status({ running: {} }, undefined, { containerID: "r://1" }), false, "=r://1"],
    [status({ running: {} }, undefined, { containerID: "r://1" }), true, `previous terminated ${what} not found`],
    [status({ running: {} }, ended("r://0"), { containerID: "r://1" }), true, "=r://0"],
    [status(ended("r://1")), false, "=r://1"],
    [status(ended()), false, `${what} is terminated`],
    [status(ended(), ended("r://0")), false, "=r://0"],
    [status(waiting("CrashLoopBackOff"), ended("r://0")), false, "=r://0"],
    [status(waiting("CrashLoopBackOff"), ended()), false, `${what} is terminated`],
    [status(waiting("ErrImagePull")), false, `${what} is waiting to start: image can't be pulled`],
    [status(waiting("ImagePullBackOff")), false, `${what} is waiting to start: trying and failing to pull image`],
    [status(waiting("PodInitializing")), false, `${what} is waiting to start: PodInitializing`],
    [status(waiting("constructor")), false, `${what} is waiting to start: constructor`],
    [status({}), false, `${what} is waiting to start - no logs yet`],
  ];
  for (const [given, previous, want] of cases) {
    const got = chooseLog(given, { pod: "p", container: "c", previous });
    assert.equal("id" in got ? `=${got.id}` : got.text, want, JSON.stringify(given));
  }
  const init = { initContainerStatuses: status(ended("r://1")).containerStatuses } as PodStatus;
  assert.deepEqual(chooseLog(init, { pod: "p", container: "c", previous: false }), { id: "r://1" });
  const ephemeral = { ephemeralContainerStatuses: status(ended("r://1")).containerStatuses } as PodStatus;
  assert.deepEqual(chooseLog(ephemeral, { pod: "p", container: "c", previous: false }), { id: "r://1" });
});
