import { abortedBy } from "../../mod/base/errors.ts";
import type { Change } from "../../mod/kube/api/types.ts";
import type { Node } from "../../mod/kube/types.ts";
import type { NodeView } from "./types.ts";

/**
 * What is known of the node's own object, from its watch and from the answers to the agent's own writes. An older
 * version never takes the place of a newer one of the same object.
 */
export class NodeRecord implements NodeView {
  #node: Node | undefined;
  #synced = false;
  readonly #listeners = new Set<(node: Node | undefined) => void>();

  get node(): Node | undefined {
    return this.#node;
  }

  get synced(): boolean {
    return this.#synced;
  }

  /** Takes what the watch saw. */
  change(change: Change<Node>): void {
    if (change.type === "deleted") this.gone(change.object);
    else this.note(change.object);
  }

  /** The API server has answered; without an object there is none. */
  answered(): void {
    this.#synced = true;
  }

  /** Takes the object as the API server has answered it. */
  note(node: Node): void {
    this.#synced = true;
    if (isOlder(node, this.#node)) return;
    const same = this.#node?.metadata?.uid === node.metadata?.uid &&
      this.#node?.metadata?.resourceVersion === node.metadata?.resourceVersion;
    this.#node = node;
    if (!same) this.#tell();
  }

  /** The object is not there any more. @param node the object that was deleted; any, when not given */
  gone(node?: Node): void {
    this.#synced = true;
    const other = node && this.#node && node.metadata?.uid !== this.#node.metadata?.uid;
    if (!this.#node || other) return;
    this.#node = undefined;
    this.#tell();
  }

  onChange(told: (node: Node | undefined) => void): Disposable {
    this.#listeners.add(told);
    return { [Symbol.dispose]: () => void this.#listeners.delete(told) };
  }

  async whenKnown(signal: AbortSignal): Promise<Node> {
    if (signal.aborted) throw abortedBy(signal);
    if (this.#node) return this.#node;
    const { promise, resolve, reject } = Promise.withResolvers<Node>();
    const onAbort = () => reject(abortedBy(signal));
    signal.addEventListener("abort", onAbort, { once: true });
    using _listener = this.onChange((node) => {
      if (node) resolve(node);
    });
    try {
      return await promise;
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  #tell(): void {
    for (const listener of [...this.#listeners]) listener(this.#node);
  }
}

/** True when both are versions of one object and the first is the older. */
function isOlder(node: Node, than: Node | undefined): boolean {
  if (!than || node.metadata?.uid !== than.metadata?.uid) return false;
  const version = (of: Node) => /^\d{1,30}$/.exec(of.metadata?.resourceVersion ?? "")?.[0];
  const a = version(node), b = version(than);
  return a !== undefined && b !== undefined && BigInt(a) < BigInt(b);
}
