import { remove, writeWhole } from "../lib/files.ts";
import { freePort } from "../node/agent_node.ts";
import { end, processes, signal } from "../node/processes.ts";
import { lastLines, LoggedProcess } from "./logged_process.ts";
import { type KeyPair, type Subject, TestCa, tokenKeys } from "./pki.ts";
import type { ControlPlanePrograms } from "./programs.ts";

/** The parts of a control plane. */
export type Component = "etcd" | "kube-apiserver" | "kube-controller-manager" | "kube-scheduler";

export interface ControlPlaneOptions {
  /** Makes its directory differ from others beside it: a-z, 0-9 and '-'. */
  readonly name: string;
  readonly programs: ControlPlanePrograms;
  /** Whether the controller manager and the scheduler run; true when not given. */
  readonly controllers?: boolean;
  /** Whether the API server hands requests of registered groups on to other servers; false when not given. */
  readonly aggregation?: boolean;
  /** More flags of the API server. */
  readonly apiServerFlags?: readonly string[];
  /** More flags of the controller manager. */
  readonly controllerFlags?: readonly string[];
  /** Milliseconds that each part has to become ready. */
  readonly within?: number;
}

/**
 * A real control plane on ports of its own on loopback, with its own certificates and directory: etcd, API server, and,
 * unless told otherwise, controller manager and scheduler. `system:masters` is who the admin's kubeconfig is.
 */
export class ControlPlane implements AsyncDisposable {
  readonly dir: string;
  readonly ca: TestCa;
  readonly server: string;
  readonly #o: ControlPlaneOptions;
  readonly #ports: { readonly etcd: number; readonly peer: number; readonly api: number };
  readonly #running = new Map<Component, LoggedProcess>();

  private constructor(options: ControlPlaneOptions, dir: string, ca: TestCa) {
    this.#o = options;
    this.dir = dir;
    this.ca = ca;
    this.#ports = { etcd: freePort(), peer: freePort(), api: freePort() };
    this.server = `https://127.0.0.1:${this.#ports.api}`;
  }

  /**
   * Starts all of it and waits until it is ready. Everything is removed again when that fails; what an earlier run of the
   * same name left is removed first.
   */
  static async start(options: ControlPlaneOptions): Promise<ControlPlane> {
    const dir = `/tmp/denolet-cluster.${options.name}`;
    await cleanUp(dir);
    await Deno.mkdir(dir, { mode: 0o700 });
    const plane = new ControlPlane(options, dir, await TestCa.create(`${options.name}-ca`));
    try {
      await plane.#prepare();
      await plane.startComponent("etcd");
      await plane.startComponent("kube-apiserver");
      if (options.controllers ?? true) {
        await Promise.all([
          plane.startComponent("kube-controller-manager"),
          plane.startComponent("kube-scheduler"),
        ]);
      }
      return plane;
    } catch (thrown) {
      await plane[Symbol.asyncDispose]();
      throw thrown;
    }
  }

  get adminKubeconfig(): string {
    return this.#path("admin.kubeconfig");
  }

  #path(name: string): string {
    return `${this.dir}/${name}`;
  }

  async #prepare(): Promise<void> {
    const { ca } = this;
    const write = (name: string, text: string) => writeWhole(this.#path(name), text, 0o600);
    const keys = await tokenKeys();
    await write("ca.crt", ca.cert);
    await write("ca.key", await ca.key());
    await write("sa.key", keys.privateKey);
    await write("sa.pub", keys.publicKey);
    await this.#issued("apiserver", {
      name: "kube-apiserver",
      hosts: ["127.0.0.1", "10.96.0.1", "localhost", "kubernetes.default.svc"],
    });
    await this.#issued("apiserver-kubelet-client", {
      name: "kube-apiserver-kubelet-client",
      groups: ["system:masters"],
    });
    if (this.#o.aggregation) await this.#prepareAggregation();
    await this.kubeconfig("admin", { name: "admin", groups: ["system:masters"] });
    await this.kubeconfig("kube-controller-manager", { name: "system:kube-controller-manager" });
    await this.kubeconfig("kube-scheduler", { name: "system:kube-scheduler" });
  }

  /** With what the API server shows other servers that a request comes from it, on behalf of whom it names. */
  async #prepareAggregation(): Promise<void> {
    const ca = await TestCa.create(`${this.#o.name}-front-proxy-ca`);
    await writeWhole(this.#path("front-proxy-ca.crt"), ca.cert, 0o600);
    await this.#issued("front-proxy-client", { name: "front-proxy-client" }, ca);
  }

  async #issued(file: string, subject: Subject, ca = this.ca): Promise<KeyPair> {
    const pair = await ca.issue(subject);
    await writeWhole(this.#path(`${file}.crt`), pair.cert, 0o600);
    await writeWhole(this.#path(`${file}.key`), pair.key, 0o600);
    return pair;
  }

  /** Writes a certificate of the cluster's authority, `FILE.crt` and `FILE.key` in the directory. */
  async certificate(file: string, subject: Subject): Promise<{ readonly cert: string; readonly key: string }> {
    await this.#issued(file, subject);
    return { cert: this.#path(`${file}.crt`), key: this.#path(`${file}.key`) };
  }

  /** Writes a kubeconfig with a certificate for a user, `FILE.kubeconfig` in the directory, and returns its path. */
  async kubeconfig(file: string, subject: Subject, server = this.server): Promise<string> {
    const { cert, key } = await this.certificate(file, subject);
    return await this.#kubeconfig(file, { "client-certificate": cert, "client-key": key }, server);
  }

  /** A kubeconfig with the token of a service account, as a pod of it has. */
  async tokenKubeconfig(file: string, token: string): Promise<string> {
    return await this.#kubeconfig(file, { token }, this.server);
  }

  async #kubeconfig(file: string, user: Readonly<Record<string, string>>, server: string): Promise<string> {
    const config = {
      apiVersion: "v1",
      kind: "Config",
      clusters: [{ name: "c", cluster: { server, "certificate-authority": this.#path("ca.crt") } }],
      users: [{ name: "u", user }],
      contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
      "current-context": "c",
    };
    const path = this.#path(`${file}.kubeconfig`);
    await writeWhole(path, JSON.stringify(config), 0o600);
    return path;
  }

  /** A kubeconfig with the identity of a node. @param server another way to the API server */
  async nodeKubeconfig(node: string, server = this.server): Promise<string> {
    return await this.kubeconfig(
      `node-${node}`,
      { name: `system:node:${node}`, groups: ["system:nodes"] },
      server,
    );
  }

  #command(component: Component): string[] {
    const { programs, apiServerFlags = [], controllerFlags = [], aggregation = false } = this.#o;
    const path = (name: string) => this.#path(name);
    const etcd = `http://127.0.0.1:${this.#ports.etcd}`;
    const peer = `http://127.0.0.1:${this.#ports.peer}`;
    switch (component) {
      case "etcd":
        return [
          programs.etcd,
          `--data-dir=${path("etcd")}`,
          `--listen-client-urls=${etcd}`,
          `--advertise-client-urls=${etcd}`,
          `--listen-peer-urls=${peer}`,
          `--initial-advertise-peer-urls=${peer}`,
          `--initial-cluster=default=${peer}`,
          "--unsafe-no-fsync=true",
        ];
      case "kube-apiserver":
        return [
          `${programs.directory}/kube-apiserver`,
          `--etcd-servers=${etcd}`,
          "--bind-address=127.0.0.1",
          "--advertise-address=127.0.0.1",
          // the endpoints of a loopback address are refused; nobody needs the service of the API server here
          "--endpoint-reconciler-type=none",
          `--secure-port=${this.#ports.api}`,
          `--tls-cert-file=${path("apiserver.crt")}`,
          `--tls-private-key-file=${path("apiserver.key")}`,
          `--client-ca-file=${path("ca.crt")}`,
          `--service-account-key-file=${path("sa.pub")}`,
          `--service-account-signing-key-file=${path("sa.key")}`,
          "--service-account-issuer=https://kubernetes.default.svc",
          "--service-cluster-ip-range=10.96.0.0/16",
          "--authorization-mode=Node,RBAC",
          "--enable-admission-plugins=NodeRestriction",
          `--kubelet-client-certificate=${path("apiserver-kubelet-client.crt")}`,
          `--kubelet-client-key=${path("apiserver-kubelet-client.key")}`,
          "--kubelet-preferred-address-types=InternalIP",
          "--allow-privileged=true",
          "--enable-bootstrap-token-auth",
          ...aggregation
            ? [
              `--requestheader-client-ca-file=${path("front-proxy-ca.crt")}`,
              "--requestheader-allowed-names=front-proxy-client",
              "--requestheader-username-headers=X-Remote-User",
              "--requestheader-group-headers=X-Remote-Group",
              "--requestheader-extra-headers-prefix=X-Remote-Extra-",
              `--proxy-client-cert-file=${path("front-proxy-client.crt")}`,
              `--proxy-client-key-file=${path("front-proxy-client.key")}`,
            ]
            : [],
          ...apiServerFlags,
        ];
      case "kube-controller-manager":
        return [
          ...this.#controller(component),
          `--service-account-private-key-file=${path("sa.key")}`,
          `--root-ca-file=${path("ca.crt")}`,
          `--cluster-signing-cert-file=${path("ca.crt")}`,
          `--cluster-signing-key-file=${path("ca.key")}`,
          "--use-service-account-credentials",
          ...controllerFlags,
        ];
      case "kube-scheduler":
        return this.#controller(component);
    }
  }

  #controller(component: "kube-controller-manager" | "kube-scheduler"): string[] {
    const kubeconfig = this.#path(`${component}.kubeconfig`);
    return [
      `${this.#o.programs.directory}/${component}`,
      `--kubeconfig=${kubeconfig}`,
      // neither is asked anything but its health, and no port is opened for that
      "--secure-port=0",
      "--leader-elect=false",
    ];
  }

  /** Starts a part and waits until it is ready. */
  async startComponent(component: Component): Promise<void> {
    if (this.#running.has(component)) throw new Error(`${component} runs already`);
    const running = await LoggedProcess.start(component, this.#command(component), this.dir);
    this.#running.set(component, running);
    await running.ready(() => this.#ready(component), this.#o.within ?? 120_000);
  }

  async #ready(component: Component): Promise<boolean> {
    switch (component) {
      case "etcd": {
        const answer = await fetch(`http://127.0.0.1:${this.#ports.etcd}/health`, {
          signal: AbortSignal.timeout(2000),
        });
        return (await answer.text()).includes("true");
      }
      case "kube-apiserver":
        return (await this.raw("/readyz")).status === 200;
      default:
        // Their work shows that they are there; what needs them waits for that.
        return true;
    }
  }

  /** Asks the API server as its administrator; for paths that no client of ours has words for. */
  async raw(path: string, init: RequestInit = {}): Promise<{ readonly status: number; readonly text: string }> {
    const [cert, key] = await Promise.all(
      ["admin.crt", "admin.key"].map((name) => Deno.readTextFile(this.#path(name))),
    );
    using client = Deno.createHttpClient({ caCerts: [this.ca.cert], cert: cert ?? "", key: key ?? "" });
    const answer = await fetch(`${this.server}${path}`, { signal: AbortSignal.timeout(30_000), ...init, client });
    return { status: answer.status, text: await answer.text() };
  }

  /** Ends a part; one that does not run is left. */
  async stopComponent(component: Component, how: "SIGTERM" | "SIGKILL" = "SIGTERM"): Promise<void> {
    const running = this.#running.get(component);
    if (!running) return;
    this.#running.delete(component);
    await running.stop(how);
  }

  /** Makes a part stand still, connections open and silent, or go on. */
  freeze(component: Component, still: boolean): void {
    const pid = this.#running.get(component)?.pid;
    if (pid !== undefined) signal(pid, still ? "SIGSTOP" : "SIGCONT");
  }

  /** Forgets old versions in etcd, so that watches cannot go on from them once the API server was restarted. */
  async compact(): Promise<void> {
    const post = async (path: string, body: unknown) => {
      const answer = await fetch(`http://127.0.0.1:${this.#ports.etcd}${path}`, {
        method: "POST",
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(10_000),
      });
      return await answer.json();
    };
    const { header } = await post("/v3/kv/range", { key: btoa("/") });
    await post("/v3/kv/compaction", { revision: header.revision, physical: true });
  }

  /** The last lines of a part's log. */
  async logEnd(component: Component, lines = 15): Promise<string> {
    return await lastLines(this.#path(`${component}.log`), lines);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // in this order none complains about the one that it needs
    const order = ["kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd"] as const;
    for (const component of order) {
      this.freeze(component, false);
      // the API server waits a minute for watches to end; nothing here is worth keeping
      await this.stopComponent(component, "SIGKILL");
    }
    await remove(this.dir);
  }
}

/** Ends what still runs out of a control plane's directory, and removes the directory. */
async function cleanUp(dir: string): Promise<void> {
  for (const { pid, command } of await processes()) {
    // Each of its parts is told of files in there; whoever only looks at them has other programs.
    const isOurs = command.slice(1).some((word) => word.includes(`=${dir}/`)) &&
      /\/(etcd|kube-[a-z-]+|metrics-server)$/.test(command[0] ?? "");
    if (isOurs) await end(pid, 0);
  }
  await remove(dir);
}
