import type { Clock } from "../../mod/base/clock.ts";
import { KubeletError, messageOf, whenAborted } from "../../mod/base/errors.ts";
import type { GrpcClient, GrpcConnect } from "../../mod/base/grpc_client.ts";
import type { Host } from "../../mod/base/host.ts";
import { isMissing } from "../../mod/base/host_error.ts";
import type { Logger } from "../../mod/base/log.ts";
import { Scope } from "../../mod/base/scope.ts";
import { Registration } from "../../mod/kube/gen/plugins/plugin_registration_pb.ts";
import type { PluginHandler, PluginInfo, PluginType } from "./types.ts";

/** Milliseconds that a connection, GetInfo and NotifyRegistrationStatus may take (features.md section 13). */
const connectMs = 10_000;
const infoMs = 1000;
const notifyMs = 5000;
/** Milliseconds between two tries to register a plugin, and at most. */
const retryMs = 500;
const longestRetryMs = 122_000;
/** Milliseconds that the directory is left alone after a change, and between tries to watch it. */
const settleMs = 1000;

const methods = Registration.method;

export interface PluginWatcherOptions {
  /** `<root>/plugins_registry`. */
  readonly dir: string;
  readonly host: Pick<Host, "mkdir" | "readDir" | "lstat" | "watch">;
  readonly connect: GrpcConnect;
  /** Who takes plugins of a type; more can be added while it runs. */
  readonly handlers: ReadonlyMap<PluginType, PluginHandler>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** A socket that is there, and what has become of it. */
interface Seen {
  /** Tells a socket from another one of its name. */
  readonly identity: string;
  /** Ends when the socket has gone. */
  readonly gone: AbortController;
}

/** Registers plugins that put a socket into a directory, and lets those go whose socket has gone (features.md G13). */
export class PluginWatcher {
  readonly #o: PluginWatcherOptions;
  readonly #seen = new Map<string, Seen>();
  /** The sockets whose plugins are in use. */
  readonly #registered = new Set<string>();
  /** The sockets of the plugins in use, by type and name: another socket may have taken a name over. */
  readonly #owners = new Map<string, string>();

  constructor(options: PluginWatcherOptions) {
    this.#o = options;
  }

  /** Paths of the sockets that are looked after now. */
  get sockets(): readonly string[] {
    return [...this.#seen.keys()];
  }

  /** Those of them whose plugins have been taken into use. */
  get registered(): readonly string[] {
    return [...this.#registered];
  }

  /** Watches until the signal aborts. What is registered then stays. */
  async run(signal: AbortSignal): Promise<void> {
    const { dir, host, clock, log } = this.#o;
    await using scope = new Scope("plugins", {
      signal,
      onFailure: (error, task) => log.error("a plugin could not be looked after", { task, error: error.message }),
    });
    for (let complaint = ""; !signal.aborted;) {
      try {
        await host.mkdir(dir, { mode: 0o750 });
        for await (const _change of host.watch(dir, signal)) {
          await this.#look(scope);
          complaint = "";
          await clock.sleep(settleMs, signal);
        }
      } catch (thrown) {
        if (signal.aborted) break;
        const error = messageOf(thrown);
        if (error !== complaint) log.error("plugins cannot be watched for", { dir, error });
        complaint = error;
      }
      if (!signal.aborted) await clock.sleep(settleMs, signal).catch(() => {});
    }
  }

  async #look(scope: Scope): Promise<void> {
    const now = await this.#find(this.#o.dir);
    for (const [path, seen] of this.#seen) {
      if (now.get(path) === seen.identity) continue;
      seen.gone.abort();
      this.#seen.delete(path);
    }
    for (const [path, identity] of now) {
      if (this.#seen.has(path)) continue;
      const gone = new AbortController();

      this.#seen.set(path, { identity, gone });
      scope.spawn(path, (signal) => this.#keep(path, gone.signal, signal));
    }
  }

  /** Sockets below a directory with what tells them from others of their names; names with a dot first are skipped. */
  async #find(dir: string): Promise<Map<string, string>> {
    const { host } = this.#o;
    const found = new Map<string, string>();
    const left = [dir];
    for (let at = left.pop(); at !== undefined; at = left.pop()) {
      for (const { name, kind } of await unlessMissing(host.readDir(at)) ?? []) {
        const path = `${at}/${name}`;
        if (name.startsWith(".")) continue;
        if (kind === "directory") left.push(path);
        if (kind !== "socket") continue;
        const info = await host.lstat(path);
        if (info) found.set(path, `${info.dev}:${info.ino}:${info.mtimeMs}`);
      }
    }
    return found;
  }

  /** Registers the plugin of one socket, trying until that works, and lets it go with the socket. */
  async #keep(path: string, gone: AbortSignal, ended: AbortSignal): Promise<void> {
    const { clock, log } = this.#o;
    const signal = AbortSignal.any([gone, ended]);
    for (let delay = retryMs; !signal.aborted; delay = Math.min(2 * delay, longestRetryMs)) {
      let registered: Registered | undefined;
      try {
        registered = await this.#register(path, signal);
        this.#registered.add(path);
        log.info("plugin registered", { socket: path, type: registered.type, name: registered.info.name });
      } catch (thrown) {
        if (signal.aborted) break;
        log.error("a plugin cannot be registered", { socket: path, error: messageOf(thrown) });
      }
      await (registered ? whenAborted(signal) : clock.sleep(delay, signal)).catch(() => {});
      if (!registered || !gone.aborted) continue;
      this.#registered.delete(path);
      await this.#release(path, registered);
    }
  }

  async #release(path: string, { type, info, handler }: Registered): Promise<void> {
    // A plugin that another socket has registered meanwhile is that one's.
    if (this.#owners.get(`${type} ${info.name}`) !== path) return;
    this.#owners.delete(`${type} ${info.name}`);
    await handler.deregister(info);
    this.#o.log.info("plugin gone", { socket: path, type, name: info.name });
  }

  async #register(path: string, signal: AbortSignal): Promise<Registered> {
    const { connect, clock, handlers } = this.#o;
    using client = await connect(path, { clock, timeoutMs: connectMs, signal });
    const told = await client.unary(methods.getInfo, {}, { signal, timeoutMs: infoMs });
    const { name, supportedVersions: versions } = told;
    const type = isType(told.type) ? told.type : undefined;
    const info: PluginInfo = { name, endpoint: told.endpoint === "" ? path : told.endpoint, versions };
    const refuse = async (why: string) => {
      await notify(client, why, signal);
      return new KubeletError("BadConfig", why);
    };
    const handler = type && handlers.get(type);
    if (!handler) {
      throw await refuse(
        `RegisterPlugin error -- no handler registered for plugin type: ${told.type} at socket ${path}`,
      );
    }
    try {
      handler.validate(info);
    } catch (thrown) {
      throw await refuse(`RegisterPlugin error -- plugin validation failed with err: ${messageOf(thrown)}`);
    }
    const key = `${type} ${name}`;
    const before = this.#owners.get(key);
    this.#owners.set(key, path);
    const registered: Registered = { type, info, handler };
    try {
      await handler.register(info, signal);
    } catch (thrown) {
      if (this.#owners.get(key) === path) {
        if (before === undefined) this.#owners.delete(key);
        else this.#owners.set(key, before);
      }
      if (signal.aborted) throw thrown;
      throw await refuse(`RegisterPlugin error -- plugin registration failed with err: ${messageOf(thrown)}`);
    }
    try {
      await notify(client, "", signal);
    } catch (thrown) {
      await this.#release(path, registered);
      throw thrown;
    }
    return registered;
  }
}

interface Registered {
  readonly type: PluginType;
  readonly info: PluginInfo;
  readonly handler: PluginHandler;
}

/** Tells a plugin that it is in use, or why it isn't. */
async function notify(client: GrpcClient, error: string, signal: AbortSignal): Promise<void> {
  const status = { pluginRegistered: error === "", error };
  await client.unary(methods.notifyRegistrationStatus, status, { signal, timeoutMs: notifyMs });
}

function isType(type: string): type is PluginType {
  return type === "CSIPlugin" || type === "DevicePlugin" || type === "DRAPlugin";
}

async function unlessMissing<T>(promise: Promise<T>): Promise<T | undefined> {
  try {
    return await promise;
  } catch (thrown) {
    if (isMissing(thrown)) return undefined;
    throw thrown;
  }
}
