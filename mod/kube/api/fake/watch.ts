import { Channel } from "../../../base/channel.ts";
import type { Clock } from "../../../base/clock.ts";
import { abortedBy, KubeletError } from "../../../base/errors.ts";
import type { KubeObject, ResourceType, WatchEvent, WatchOptions } from "../types.ts";
import type { FakeApi } from "./fake_api.ts";
import { matchesFields, matchesLabels } from "./selectors.ts";
import type { StoredChange } from "./store.ts";

/** How often a quiet watch gets a bookmark, and how long the client waits for a silent one beyond its time. */
const bookmarkMs = 60_000;
const slackMs = 30_000;
/** How long a server keeps a watch when it is not told, in seconds. */
const usualSeconds = 30 * 60;

/** Tells the changes of a kind after a version, as a server and a client with a watchdog do together. */
export async function* watchStore<T extends KubeObject>(
  api: FakeApi,
  clock: Clock,
  resource: ResourceType<T>,
  options: WatchOptions,
): AsyncGenerator<WatchEvent<T>> {
  const { signal, timeoutSeconds = usualSeconds } = options;
  const { store } = api.server;
  const selected = (object: KubeObject | undefined) => object !== undefined && matches(object, options);
  const wakes = new Channel<"look" | "end" | "break" | "bookmark">();
  using stack = new DisposableStack();
  let bookmark = clock.after(bookmarkMs, () => wakes.push("bookmark"));
  stack.defer(() => bookmark[Symbol.dispose]());
  const end = (ms: number, how: "end" | "break") => stack.use(clock.after(ms, () => wakes.push(how)));
  end(timeoutSeconds * 1000, "end");
  end(timeoutSeconds * 1000 + slackMs, "break");
  stack.use(api.onWatch((how) => wakes.push(how)));
  /** What has happened and was not told yet; a watch that is open does not care what the server forgets. */
  const untold: StoredChange[] = [];
  stack.use(store.listen(resource, (change) => {
    untold.push(change);
    wakes.push("look");
  }));
  const version = Number(options.resourceVersion);
  if (version === 0) {
    for (const object of store.all(resource).filter(selected)) {
      yield { type: "ADDED", object: structuredClone(object as T) };
    }
  } else untold.push(...store.since(resource, version));
  for (let wake: Awaited<ReturnType<typeof wakes.take>> = "look";; wake = await wakes.take(signal)) {
    if (signal.aborted) throw abortedBy(signal);
    if (wake === "break" || wake === undefined || api.reach === "refused") {
      throw new KubeletError("Network", `watch ${resource.plural}: the connection broke`);
    }
    if (wake === "bookmark") bookmark = clock.after(bookmarkMs, () => wakes.push("bookmark"));
    // What a server that is cut off says does not arrive.
    if (api.reach === "silent") continue;
    for (let change; (change = untold.shift()) !== undefined;) {
      const type = typeOf(change, selected);
      if (type) yield { type, object: structuredClone(change.object as T) };
    }
    if (wake === "end") return;
    if (wake === "bookmark") {
      yield { type: "BOOKMARK", resourceVersion: String(store.version) };
    }
  }
}

function matches(object: KubeObject, { namespace, fieldSelector, labelSelector }: WatchOptions): boolean {
  return (namespace === undefined || object.metadata?.namespace === namespace) &&
    matchesFields(object, fieldSelector) && matchesLabels(object.metadata?.labels, labelSelector);
}

/** An object that begins or ceases to be selected is told as one that comes or goes. */
function typeOf(
  { before, object, removed }: StoredChange,
  selected: (object: KubeObject | undefined) => boolean,
): "ADDED" | "MODIFIED" | "DELETED" | undefined {
  const was = selected(before), is = !removed && selected(object);
  if (is) return was ? "MODIFIED" : "ADDED";
  return was ? "DELETED" : undefined;
}
