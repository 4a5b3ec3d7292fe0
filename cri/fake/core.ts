import { create } from "@bufbuild/protobuf";
import { Channel } from "../../mod/base/channel.ts";
import type { Clock } from "../../mod/base/clock.ts";
import { type Random, randomHex } from "../../mod/base/random.ts";
import type { CallOptions, MutatingOptions } from "../api.ts";
import { grpcCode, RuntimeError } from "../api.ts";
import * as pb from "../gen/runtime_pb.ts";
import type { ImageStore } from "./images.ts";
import type { Line } from "./line.ts";
import { Lives } from "./lives.ts";
import type { Programs } from "./program.ts";
import { type ContainerRecord, containerStatus, type Flavour, type SandboxRecord, sandboxStatus } from "./state.ts";

/** Addresses of a /16 that pods can have. */
const addresses = { first: 2, last: 65_534 };

export interface CoreOptions {
  clock: Clock;
  random: Random;
  flavour: Flavour;
  programs: Programs;
  images: ImageStore;
  line: Line;
  handlers: readonly string[];
  /** Default deadline of a call, milliseconds. */
  timeoutMs: number;
  /** The first two numbers of pod addresses. */
  podNet: string;
}

/** What the fake's calls share: the records, the names, the time, the events, and the errors that containerd gives. */
export class Core {
  readonly clock: Clock;
  readonly random: Random;
  readonly flavour: Flavour;
  readonly programs: Programs;
  readonly images: ImageStore;
  readonly line: Line;
  readonly lives: Lives;
  readonly handlers: readonly string[];
  readonly timeoutMs: number;
  readonly sandboxes = new Map<string, SandboxRecord>();
  readonly containers = new Map<string, ContainerRecord>();
  readonly streams = new Set<Channel<pb.ContainerEventResponse>>();
  readonly #names = new Map<string, string>();
  readonly #podNet: string;
  #lastAddress = addresses.first - 1;
  #lastStamp = 0n;

  constructor(options: CoreOptions) {
    this.clock = options.clock;
    this.random = options.random;
    this.flavour = options.flavour;
    this.programs = options.programs;
    this.images = options.images;
    this.line = options.line;
    this.handlers = options.handlers;
    this.timeoutMs = options.timeoutMs;
    this.#podNet = options.podNet;
    this.lives = new Lives({
      clock: options.clock,
      stamp: () => this.stamp(),
      // 2 cleans up the shim of what ended while it was away before it has asked for the exit code; 1.6 asks first.
      missedUntil: () => this.flavour === "2" ? this.line.backAt : undefined,
      onExit: (record) => this.emit(record.id, record.sandboxId, pb.ContainerEventType.CONTAINER_STOPPED_EVENT),
    });
  }

  /** Takes a call; its default deadline is longer by `extraMs`. */
  call<T>(
    call: string,
    target: string | undefined,
    options: CallOptions | MutatingOptions | undefined,
    work: (gone: AbortSignal) => T | Promise<T>,
    extraMs = 0,
  ): Promise<T> {
    return this.line.carry({ call, target, options, deadlineMs: this.timeoutMs + extraMs }, work);
  }

  /** The wall time in nanoseconds, not the same twice within one millisecond; earlier after a clock was set back. */
  stamp(): bigint {
    const now = BigInt(Math.floor(this.clock.now())) * 1_000_000n;
    const same = this.#lastStamp >= now && this.#lastStamp - now < 1_000_000n;
    this.#lastStamp = same ? this.#lastStamp + 1n : now;
    return this.#lastStamp;
  }

  /** Makes an id for a name that nobody else has. */
  reserve(call: string, kind: "sandbox" | "container", name: string, target: string | undefined): string {
    const holder = this.#names.get(name);
    if (holder !== undefined) {
      const hint = kind === "container" && this.flavour === "2"
        ? "; check if another CreateContainer request is in progress"
        : "";
      throw new RuntimeError(
        call,
        this.flavour === "2" ? grpcCode.FailedPrecondition : grpcCode.Unknown,
        `failed to reserve ${kind} name "${name}"${hint}: name "${name}" is reserved for "${holder}"`,
        target === undefined ? {} : { target },
      );
    }
    const id = randomHex(this.random, 32);
    this.#names.set(name, id);
    return id;
  }

  release(name: string): void {
    this.#names.delete(name);
  }

  /** An address that no live sandbox has; the newest given comes round last. */
  nextIp(): string {
    const taken = new Set<string>();
    for (const record of this.sandboxes.values()) taken.add(record.ip);
    for (let tries = addresses.first; tries <= addresses.last; tries++) {
      this.#lastAddress = this.#lastAddress >= addresses.last ? addresses.first : this.#lastAddress + 1;
      const ip = `${this.#podNet}.${this.#lastAddress >> 8}.${this.#lastAddress & 255}`;
      if (!taken.has(ip)) return ip;
    }
    throw failed("RunPodSandbox", "failed to setup network for sandbox: no IP addresses available in range set");
  }

  /** The sandbox of an id, or of the beginning of one; undefined when there is none. */
  findSandbox(call: string, id: string): SandboxRecord | undefined {
    this.#refuseEmpty(call, "sandbox", id);
    return byPrefix(this.sandboxes, id);
  }

  findContainer(call: string, id: string): ContainerRecord | undefined {
    this.#refuseEmpty(call, "container", id);
    return byPrefix(this.containers, id);
  }

  /** The container of an id; NotFound, in the call's own words, when there is none. */
  container(call: string, id: string, words?: string): ContainerRecord {
    const record = this.findContainer(call, id);
    if (!record) {
      throw notFound(call, words ?? `an error occurred when try to find container "${id}": not found`, id);
    }
    return record;
  }

  #refuseEmpty(call: string, kind: string, id: string): void {
    if (id !== "") return;
    const words = this.flavour === "2" ? "prefix can't be empty" : "Prefix can't be empty";
    throw failed(call, `an error occurred when try to find ${kind} "": ${words}`);
  }

  /** The containers of a sandbox, oldest first. */
  of(sandboxId: string): ContainerRecord[] {
    return [...this.containers.values()].filter((r) => r.sandboxId === sandboxId);
  }

  /** The items in an order of their own at each call: containerd lists what is in a hash table. */
  unordered<T>(items: T[]): T[] {
    for (let i = items.length - 1; i > 0; i--) {
      const j = Math.floor(this.random() * (i + 1));
      const [a, b] = [items[i], items[j]];
      if (a !== undefined && b !== undefined) [items[i], items[j]] = [b, a];
    }
    return items;
  }

  statusOf(record: ContainerRecord): pb.ContainerStatus {
    return containerStatus(record, this.images.find(record.imageId), this.flavour);
  }

  /** Ends the sandbox's own process. */
  endSandbox(record: SandboxRecord): void {
    if (!record.ready) return;
    record.ready = false;
    this.emit(record.id, record.id, pb.ContainerEventType.CONTAINER_STOPPED_EVENT);
  }

  /** Forgets a container. */
  drop(record: ContainerRecord): void {
    this.containers.delete(record.id);
    this.release(record.name);
    this.emit(record.id, record.sandboxId, pb.ContainerEventType.CONTAINER_DELETED_EVENT);
  }

  /** Tells the event streams. */
  emit(containerId: string, sandboxId: string, type: pb.ContainerEventType): void {
    if (this.streams.size === 0) return;
    const sandbox = this.sandboxes.get(sandboxId);
    const value = create(pb.ContainerEventResponseSchema, {
      containerId,
      containerEventType: type,
      createdAt: this.stamp(),
      containersStatuses: this.of(sandboxId).map((r) => this.statusOf(r)),
      ...(sandbox ? { podSandboxStatus: sandboxStatus(sandbox) } : {}),
    });
    for (const stream of this.streams) stream.push(value);
  }
}

/** Finds by id, or by the beginning of an id when only one has it. */
function byPrefix<T>(records: ReadonlyMap<string, T>, id: string): T | undefined {
  const direct = records.get(id);
  if (direct !== undefined || id.length >= 64) return direct;
  let found: T | undefined;
  for (const [key, record] of records) {
    if (!key.startsWith(id)) continue;
    if (found !== undefined) return undefined;
    found = record;
  }
  return found;
}

/** containerd's everyday error: no status of its own. */
export function failed(call: string, details: string, target?: string): RuntimeError {
  return new RuntimeError(call, grpcCode.Unknown, details, target === undefined ? {} : { target });
}

export function notFound(call: string, details: string, target?: string): RuntimeError {
  return new RuntimeError(call, grpcCode.NotFound, details, target === undefined ? {} : { target });
}

/** The error for a call that the runtime's CRI does not have. */
export function unimplemented(call: string): RuntimeError {
  return new RuntimeError(call, grpcCode.Unimplemented, `unknown method ${call} for service runtime.v1.RuntimeService`);
}
