import type { CallOptions, ImageService, MutatingOptions, RuntimeService } from "../../cri/api.ts";
import type { Dialers } from "../../managers/probes/prober.ts";
import { type Clock, sleepBy } from "../../mod/base/clock.ts";
import type { Transport } from "../../mod/kube/api/transport.ts";
import type { Host } from "../../mod/base/host.ts";

/** A promise of which nothing comes. */
export function silence<T>(): Promise<T> {
  return new Promise<T>(() => {});
}

export interface LifeOptions {
  /** The world's clock; it goes on when the life has ended. */
  clock: Clock;
  /** Milliseconds that an operation on the host takes now. */
  hostDelayMs: () => number;
  onDeath: () => void;
}

/**
 * One life of the agent's process. The agent sees the world only through the gates of its life; when it is killed, no
 * promise of a gate settles any more and no timer fires, so that nothing of the agent runs on, as after kill -9.
 */
export class Life {
  readonly #o: LifeOptions;
  readonly #end = new AbortController();
  readonly #timers = new Set<Disposable>();
  #fuse = Infinity;
  /** Awaits at a gate so far. */
  passed = 0;

  constructor(options: LifeOptions) {
    this.#o = options;
  }

  get alive(): boolean {
    return !this.#end.signal.aborted;
  }

  /** Ends the life after so many more steps through a gate; each call has two, its beginning and its answer. */
  lightFuse(steps: number): void {
    this.#fuse = steps;
  }

  kill(): void {
    if (!this.alive) return;
    this.#end.abort();
    for (const timer of this.#timers) timer[Symbol.dispose]();
    this.#timers.clear();
    this.#o.onDeath();
  }

  #step(): boolean {
    this.passed++;
    if (this.alive && --this.#fuse <= 0) this.kill();
    return this.alive;
  }

  /** Lets an operation pass. What is under way when the life ends is cut off for the other side, too. */
  async pass<T>(signal: AbortSignal | undefined, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    if (!this.#step()) return await silence();
    const cut = new AbortController();
    const onAbort = () => cut.abort(signal?.reason);
    const onEnd = () => cut.abort();
    if (signal?.aborted) onAbort();
    signal?.addEventListener("abort", onAbort, { once: true });
    this.#end.signal.addEventListener("abort", onEnd, { once: true });
    try {
      const answer = await work(cut.signal);
      return this.#step() ? answer : await silence();
    } catch (thrown) {
      if (!this.#step()) return await silence();
      throw thrown;
    } finally {
      signal?.removeEventListener("abort", onAbort);
      this.#end.signal.removeEventListener("abort", onEnd);
    }
  }

  /** A stream through the gate. */
  async *stream<T>(signal: AbortSignal, open: (signal: AbortSignal) => AsyncIterable<T>): AsyncGenerator<T> {
    const cut = new AbortController();
    const onAbort = () => cut.abort(signal.reason);
    const onEnd = () => cut.abort();
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    this.#end.signal.addEventListener("abort", onEnd, { once: true });
    try {
      for await (const value of open(cut.signal)) {
        if (!this.#step()) await silence();
        yield value;
      }
      if (!this.alive) await silence();
    } catch (thrown) {
      if (!this.alive) await silence();
      throw thrown;
    } finally {
      signal.removeEventListener("abort", onAbort);
      this.#end.signal.removeEventListener("abort", onEnd);
    }
  }

  /** A function that does nothing once the life has ended. */
  callback<A extends unknown[]>(run: (...given: A) => void): (...given: A) => void {
    return (...given) => {
      if (this.alive) run(...given);
    };
  }

  clock(): Clock {
    const { clock } = this.#o;
    const after = (ms: number, run: () => void): Disposable => {
      if (!this.alive) return { [Symbol.dispose]: () => {} };
      const timer = clock.after(ms, () => {
        this.#timers.delete(handle);
        if (this.alive) run();
      });
      const handle = {
        [Symbol.dispose]: () => {
          this.#timers.delete(handle);
          timer[Symbol.dispose]();
        },
      };
      this.#timers.add(handle);
      return handle;
    };
    return { now: () => clock.now(), after, sleep: (ms, signal) => sleepBy(after, ms, signal) };
  }

  host(host: Host): Host {
    const { clock, hostDelayMs } = this.#o;
    return gated<Host>(host, {
      watch: (path, signal) => this.stream(signal, (cut) => host.watch(path, cut)),
      kernelLog: (signal) => this.stream(signal, (cut) => host.kernelLog(cut)),
      kill: (pid, signal) => {
        if (this.alive) host.kill(pid, signal);
      },
      hostname: () => host.hostname(),
      // Files of the kernel are read at once: no await, no gate.
      readTextNow: (path) => host.readTextNow(path),
      keepOpen: (path) => host.keepOpen(path),
    }, (run) =>
      this.pass(undefined, async () => {
        const ms = hostDelayMs();
        if (ms > 0) await clock.sleep(ms);
        return this.alive ? await run() : await silence();
      }));
  }

  runtime<T extends RuntimeService | ImageService>(runtime: T): T {
    return new Proxy(runtime, {
      get: (target, name) => {
        const method: unknown = Reflect.get(target, name);
        if (typeof method !== "function") return method;
        if (name === "containerEvents") {
          return ({ signal, ...rest }: CallOptions & { signal: AbortSignal }) =>
            this.stream(signal, (cut) => Reflect.apply(method, target, [{ ...rest, signal: cut }]));
        }
        return (...given: unknown[]) => {
          const arity = arities.get(String(name)) ?? 0;
          const options = given[arity] as CallOptions | MutatingOptions | undefined;
          return this.pass(options?.signal, (signal) => {
            const all = [...given];
            while (all.length < arity) all.push(undefined);
            all[arity] = { ...options, signal };
            return Reflect.apply(method, target, all);
          });
        };
      },
    });
  }

  /** Connections to the API server through the gate: each request, and each piece of what answers it. */
  transport(transport: Transport): Transport {
    return {
      retire: () => {
        if (this.alive) transport.retire();
      },
      send: async (request) => {
        if (!this.#step()) return await silence();
        const signal = AbortSignal.any([request.signal, this.#end.signal]);
        try {
          const response = await transport.send({ ...request, signal });
          if (!this.#step()) return await silence();
          return { ...response, body: this.#body(response.body) };
        } catch (thrown) {
          if (!this.#step()) return await silence();
          throw thrown;
        }
      },
    };
  }

  async *#body(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    try {
      for await (const piece of body) {
        if (!this.#step()) await silence();
        yield piece;
      }
    } catch (thrown) {
      if (!this.alive) await silence();
      throw thrown;
    }
    if (!this.alive) await silence();
  }

  dial(dial: Dialers): Dialers {
    return {
      http: (call) => this.pass(call.signal, (signal) => dial.http({ ...call, signal })),
      tcp: (call) => this.pass(call.signal, (signal) => dial.tcp({ ...call, signal })),
      grpc: (call) => this.pass(call.signal, (signal) => dial.grpc({ ...call, signal })),
    };
  }
}

/** Where each CRI method has its options; 0 where nothing stands before them. */
const arities = new Map(Object.entries({
  status: 1,
  updateRuntimeConfig: 1,
  runPodSandbox: 2,
  stopPodSandbox: 1,
  removePodSandbox: 1,
  podSandboxStatus: 1,
  listPodSandboxes: 1,
  updatePodSandboxResources: 1,
  createContainer: 1,
  startContainer: 1,
  stopContainer: 2,
  removeContainer: 1,
  listContainers: 1,
  containerStatus: 1,
  updateContainerResources: 2,
  reopenContainerLog: 1,
  checkpointContainer: 3,
  execSync: 3,
  exec: 1,
  attach: 1,
  portForward: 1,
  podSandboxStats: 1,
  containerStats: 1,
  imageStatus: 1,
  pullImage: 1,
  removeImage: 1,
}));

/** Every method that is not given goes through `pass`. */
function gated<T extends object>(
  target: T,
  own: Partial<T>,
  pass: <R>(run: () => Promise<R>) => Promise<R>,
): T {
  return new Proxy(target, {
    get: (_, name) => {
      if (Object.hasOwn(own, name)) return Reflect.get(own, name);
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      return (...given: unknown[]) => pass(() => Reflect.apply(value, target, given));
    },
  });
}
