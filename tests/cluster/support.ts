import { resources } from "../../mod/kube/api/resources.ts";
import { type ApiClient, isApiNotFound } from "../../mod/kube/api/types.ts";
import type { Node, Pod, PodSpec } from "../../mod/kube/types.ts";
import { waitFor } from "../../scripts/lib/wait.ts";
import type { ClusterNode } from "./harness.ts";

/** How long a test waits for something that should come soon, in milliseconds: the machine may be busy. */
export const patience = Number(Deno.env.get("DENOLET_TEST_PATIENCE") ?? 90_000);

const { signal } = new AbortController();

/** What a test asks of a cluster as its administrator. */
export class ClusterView {
  readonly #admin: ApiClient;
  readonly #nodeName: string;

  constructor({ admin, nodeName }: Pick<ClusterNode, "admin" | "nodeName">) {
    this.#admin = admin;
    this.#nodeName = nodeName;
  }

  /** The node's object; undefined before it is registered. */
  async node(): Promise<Node | undefined> {
    return await unlessGone(this.#admin.get(resources.nodes, { name: this.#nodeName }, { signal }));
  }

  /** Waits until the node's condition has the status. */
  async nodeCondition(type: string, status: string): Promise<Node> {
    let last: Node | undefined;
    try {
      return await waitFor(`the node's condition ${type} to be ${status}`, async () => {
        last = await this.node();
        return last?.status?.conditions?.some((one) => one.type === type && one.status === status) ? last : undefined;
      }, { within: patience });
    } catch (thrown) {
      throw explained(thrown, last?.status?.conditions ?? last);
    }
  }

  /** Creates a pod in the namespace `default`; the scheduler finds its node, unless the spec names it. */
  async createPod(name: string, spec: PodSpec, metadata: Pod["metadata"] = {}): Promise<Pod> {
    // Its account comes from the controller manager, a moment after the namespace.
    return await waitFor(
      `pod ${name} to be taken by the API server`,
      () =>
        this.#admin.create(resources.pods, {
          metadata: { name, namespace: "default", ...metadata },
          spec: { terminationGracePeriodSeconds: 1, ...spec },
        }, { signal }),
      { within: patience },
    );
  }

  /** A pod of the namespace `default`; undefined when there is none of the name. */
  async pod(name: string): Promise<Pod | undefined> {
    return await unlessGone(this.#admin.get(resources.pods, { namespace: "default", name }, { signal }));
  }

  /** Waits until a pod is as `look` wants it; the error has its status and events. */
  async podUntil(name: string, what: string, look: (pod: Pod) => boolean): Promise<Pod> {
    let last: Pod | undefined;
    try {
      return await waitFor(`pod ${name}: ${what}`, async () => {
        last = await this.pod(name);
        return last && look(last) ? last : undefined;
      }, { within: patience });
    } catch (thrown) {
      throw explained(thrown, { status: last?.status, events: await this.events(name) });
    }
  }

  /** Waits until a pod is ready. */
  async ready(name: string): Promise<Pod> {
    return await this.podUntil(name, "to be ready", hasCondition("Ready", "True"));
  }

  /** Waits until a pod's object is gone. */
  async gone(name: string): Promise<void> {
    let last: Pod | undefined;
    try {
      await waitFor(`pod ${name} to be gone`, async () => {
        last = await this.pod(name);
        return last === undefined;
      }, { within: patience });
    } catch (thrown) {
      throw explained(thrown, { metadata: last?.metadata, status: last?.status });
    }
  }

  /** Deletes a pod as a user does. */
  async deletePod(name: string, gracePeriodSeconds?: number): Promise<void> {
    await this.#admin.delete(resources.pods, { namespace: "default", name }, {
      signal,
      ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
    });
  }

  /** Events about an object of the namespace `default`, as `reason: message`. */
  async events(name: string): Promise<string[]> {
    const { items } = await this.#admin.list(resources.events, {
      namespace: "default",
      fieldSelector: `involvedObject.name=${name}`,
      signal,
    });
    return items.map(({ reason, message }) => `${reason}: ${message}`);
  }
}

/** Waits for a node's request for a serving certificate, and approves it as an administrator does. */
export async function approveServing(admin: ApiClient): Promise<void> {
  const csr = await waitFor("the request for a serving certificate", async () => {
    const { items } = await admin.list(resources.certificateSigningRequests, { signal });
    return items.find(({ spec }) => spec.signerName === "kubernetes.io/kubelet-serving");
  }, { within: patience });
  const condition = { type: "Approved", status: "True", reason: "Test", message: "approved by the test" };
  await admin.replace(resources.certificateSigningRequests, { ...csr, status: { conditions: [condition] } }, {
    signal,
    subresource: "approval",
  });
}

/** Whether a pod's condition has the status. */
export function hasCondition(type: string, status: string): (pod: Pod) => boolean {
  return (pod) => pod.status?.conditions?.some((one) => one.type === type && one.status === status) ?? false;
}

async function unlessGone<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (thrown) {
    if (isApiNotFound(thrown)) return undefined;
    throw thrown;
  }
}

function explained(thrown: unknown, seen: unknown): Error {
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return new Error(`${message}\nseen last: ${JSON.stringify(seen)}`, { cause: thrown });
}
