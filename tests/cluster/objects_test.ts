import assert from "@assert";
import { messageOf } from "../../mod/base/errors.ts";
import { isApiNotFound } from "../../mod/kube/api/types.ts";
import { resources } from "../../mod/kube/api/resources.ts";
import type { ConfigMap, ContainerStatus, Event, Pod, PodSpec, Secret, TokenReview } from "../../mod/kube/types.ts";
import { print } from "../../scripts/lib/print.ts";
import { waitFor } from "../../scripts/lib/wait.ts";
import { box, patience, shell } from "../node/support.ts";
import { type ClusterNode, withClusterNode } from "./harness.ts";
import { privateRegistry } from "./private_registry.ts";

const { signal } = new AbortController();
const namespace = "default";
const forEver = "trap 'exit 0' TERM; sleep 86400 & wait $!";

/** What these tests ask the cluster and the node. */
class Scene {
  constructor(readonly node: ClusterNode) {}

  async create(name: string, spec: PodSpec): Promise<string> {
    const made = await this.node.admin.create<Pod>(resources.pods, {
      metadata: { name, namespace },
      spec: { nodeName: this.node.nodeName, terminationGracePeriodSeconds: 1, ...spec },
    }, { signal });
    return made.metadata?.uid ?? "";
  }

  secret(name: string, data: Record<string, string>, type = "Opaque"): Promise<void> {
    const coded = Object.fromEntries(Object.entries(data).map(([key, text]) => [key, btoa(text)]));
    return this.#put<Secret>("secrets", { metadata: { name, namespace }, data: coded, type });
  }

  configMap(name: string, data: Record<string, string>): Promise<void> {
    return this.#put<ConfigMap>("configMaps", { metadata: { name, namespace }, data });
  }

  async #put<T extends Secret | ConfigMap>(kind: "secrets" | "configMaps", object: T): Promise<void> {
    const { admin } = this.node;
    const name = { name: object.metadata?.name ?? "", namespace };
    try {
      await admin.patch(resources[kind], name, { data: object.data }, { type: "merge", signal });
    } catch (thrown) {
      if (!isApiNotFound(thrown)) throw thrown;
      await (kind === "secrets"
        ? admin.create<Secret>(resources.secrets, object, { signal })
        : admin.create<ConfigMap>(resources.configMaps, object as ConfigMap, { signal }));
    }
  }

  /** Waits until the first container is as wanted; the error has the pod's status. */
  async until(name: string, what: string, look: (status: ContainerStatus) => boolean): Promise<ContainerStatus> {
    let last: Pod | undefined;
    try {
      return await waitFor(`${name} to be ${what}`, async () => {
        last = await this.node.admin.get(resources.pods, { name, namespace }, { signal });
        const [status] = last.status?.containerStatuses ?? [];
        return status && look(status) ? status : undefined;
      }, { within: patience });
    } catch (thrown) {
      throw new Error(`${messageOf(thrown)}: ${JSON.stringify(last?.status)}`, { cause: thrown });
    }
  }

  running(name: string, restarts = 0): Promise<ContainerStatus> {
    return this.until(name, "running", ({ state, restartCount }) => !!state?.running && restartCount >= restarts);
  }

  /** Waits for an event of a pod. */
  event(name: string, reason: string, text: RegExp): Promise<Event> {
    return waitFor(`the event ${reason} of ${name}`, async () => {
      const { items } = await this.node.admin.list(resources.events, { namespace, signal });
      return items.find((e) => e.involvedObject.name === name && e.reason === reason && text.test(e.message ?? ""));
    }, { within: patience });
  }

  /** What a container has printed. */
  async output(name: string, uid: string, restart = 0): Promise<string> {
    const path = `${this.node.agent.paths.logs}/${namespace}_${name}_${uid}/c/${restart}.log`;
    const lines = (await Deno.readTextFile(path)).split("\n");
    return lines.map((line) => line.split(" ").slice(3).join(" ")).join("\n");
  }

  /** A place in a pod's volumes. */
  volume(uid: string, path: string): string {
    return `${this.node.agent.paths.kubelet}/pods/${uid}/volumes/${path}`;
  }

  async remove(...names: string[]): Promise<void> {
    for (const name of names) await this.node.admin.delete(resources.pods, { name, namespace }, { signal });
    await waitFor(`${names.join(", ")} to be gone`, async () => {
      const { items } = await this.node.admin.list(resources.pods, { namespace, signal });
      return !items.some(({ metadata }) => names.includes(metadata?.name ?? ""));
    }, { within: patience });
  }
}

const mounts = (...names: string[]) => ({ volumeMounts: names.map((name) => ({ name, mountPath: `/${name}` })) });

Deno.test("Secrets, ConfigMaps, tokens and credentials with a real API server", async (t) => {
  await using registry = await privateRegistry();
  await withClusterNode({ name: "c-objects", containerd: "v2" }, async (node) => {
    const scene = new Scene(node);
    const { admin, agent } = node;
    // The controllers make the service account and the certificate that its volume shows.
    await waitFor("the default service account", async () => {
      const { items } = await admin.list(resources.serviceAccounts, { namespace, signal });
      return items.length > 0;
    }, { within: patience });
    let uid = "";

    await t.step("volumes, variables, services and a token are in the pod", async () => {
      await scene.secret("s", { password: "one" });
      await scene.configMap("m", { color: "red" });
      uid = await scene.create("web", {
        securityContext: { runAsUser: 1000 },
        containers: [
          shell(
            "c",
            `env; cat /secret/password /map/color; echo; ls -ln /var/run/secrets/*/*/..data/token; ${forEver}`,
            {
              ...mounts("secret", "map"),
              envFrom: [{ configMapRef: { name: "m" }, prefix: "M_" }],
              env: [{ name: "PASSWORD", valueFrom: { secretKeyRef: { name: "s", key: "password" } } }],
            },
          ),
        ],
        volumes: [{ name: "secret", secret: { secretName: "s" } }, { name: "map", configMap: { name: "m" } }],
      });
      await scene.running("web");
      const output = await waitFor("the container's words", async () => {
        const text = await scene.output("web", uid);
        return text.includes("token") ? text : undefined;
      }, { within: patience });
      for (const line of [/^PASSWORD=one$/m, /^M_color=red$/m, /^KUBERNETES_SERVICE_HOST=10\./m, /^onered/m]) {
        assert.match(output, line);
      }
      assert.match(output, /^-rw-------\s+1\s+1000\s+0\s/m, `the token is its user's alone: ${output}`);
    });

    await t.step("an update is in the pod", async () => {
      const began = Date.now();
      await scene.secret("s", { password: "two" });
      const file = scene.volume(uid, "kubernetes.io~secret/secret/password");
      await waitFor("the new password", async () => await Deno.readTextFile(file) === "two", {
        within: patience,
        every: 10,
      });
      print(`an update of a Secret was in the pod ${Date.now() - began} ms after it was sent`);
      await scene.configMap("m", { color: "blue" });
      const color = scene.volume(uid, "kubernetes.io~configmap/map/color");
      await waitFor("the new color", async () => await Deno.readTextFile(color) === "blue", { within: patience });
    });

    await t.step("the token is good for the API server, and bound to the pod", async () => {
      const dir = scene.volume(uid, "kubernetes.io~projected");
      const [volume] = await Array.fromAsync(Deno.readDir(dir));
      const token = await Deno.readTextFile(`${dir}/${volume?.name}/token`);
      const { status } = await admin.create<TokenReview>(resources.tokenReviews, { spec: { token } }, { signal });
      assert.equal(status?.authenticated, true, status?.error);
      assert.equal(status?.user?.username, "system:serviceaccount:default:default");
      assert.deepEqual(status?.user?.extra?.["authentication.kubernetes.io/pod-uid"], [uid]);
    });

    await t.step(
      "a pod waits for what it needs, and starts when it comes; what is optional may be missing",
      async () => {
        await scene.create("volume", {
          containers: [box("c", mounts("v"))],
          volumes: [{ name: "v", secret: { secretName: "late" } }],
        });
        await scene.create("env", { containers: [box("c", { envFrom: [{ secretRef: { name: "late" } }] })] });
        const optional = await scene.create("optional", {
          containers: [box("c", { ...mounts("v"), envFrom: [{ configMapRef: { name: "none", optional: true } }] })],
          volumes: [{ name: "v", configMap: { name: "none", optional: true } }],
        });
        await scene.event(
          "volume",
          "FailedMount",
          /^MountVolume\.SetUp failed for volume "v" : secret "late" not found$/,
        );
        const { state } = await scene.until(
          "env",
          "waiting for its Secret",
          ({ state }) => state?.waiting?.reason === "CreateContainerConfigError",
        );
        assert.equal(state?.waiting?.message, 'secret "late" not found');
        await scene.running("optional");
        await scene.secret("late", { key: "value" });
        await scene.configMap("none", { key: "now" });
        await scene.running("volume");
        await scene.running("env");
        const file = scene.volume(optional, "kubernetes.io~configmap/v/key");
        await waitFor("the optional contents", async () => {
          try {
            return await Deno.readTextFile(file) === "now";
          } catch (thrown) {
            if (thrown instanceof Deno.errors.NotFound) {
              return false;
            }
            throw thrown;
          }
        }, { within: patience });
        await scene.remove("volume", "env", "optional");
      },
    );

    await t.step("a private image: refused without, pulled with the pod's Secret, and no gift to others", async () => {
      const container = { ...box("c"), image: registry.image, imagePullPolicy: "IfNotPresent" };
      await scene.create("without", { containers: [container] });
      await scene.until(
        "without",
        "refused",
        ({ state }) => /^(ErrImagePull|ImagePullBackOff)$/.test(state?.waiting?.reason ?? ""),
      );
      await scene.secret("pull", { ".dockerconfigjson": registry.dockerConfig }, "kubernetes.io/dockerconfigjson");
      await scene.create("with", { containers: [container], imagePullSecrets: [{ name: "pull" }] });
      await scene.running("with");
      assert.ok(registry.granted.length > 0);
      const [record] = await Array.fromAsync(Deno.readDir(`${agent.paths.kubelet}/image_manager/pulled`));
      const text = await Deno.readTextFile(`${agent.paths.kubelet}/image_manager/pulled/${record?.name}`);
      assert.deepEqual(Object.keys(JSON.parse(text).credentialMapping), [registry.image.replace(/:1$/, "")]);
      await scene.create("other", { containers: [container] });
      const { state } = await scene.until(
        "other",
        "refused",
        ({ state }) => /^(ErrImagePull|ImagePullBackOff)$/.test(state?.waiting?.reason ?? ""),
      );
      assert.doesNotMatch(state?.waiting?.message ?? "", /open:sesame/);
      await scene.create("again", { containers: [container], imagePullSecrets: [{ name: "pull" }] });
      await scene.running("again");
      await scene.event("again", "Pulled", /already present on machine and can be accessed by the pod$/);
      await scene.create("gone", { containers: [container], imagePullSecrets: [{ name: "none" }] });
      await scene.event(
        "gone",
        "FailedToRetrieveImagePullSecret",
        /^Unable to retrieve some image pull secrets \(none\);/,
      );
      await scene.remove("without", "with", "other", "again", "gone");
    });

    await t.step("while the API server is away a container that ends is restarted with what is known", async () => {
      const uid = await scene.create("ends", {
        containers: [
          shell("c", `echo "$PASSWORD"; cat /v/password; trap 'exit 0' TERM; sleep 8 & wait $!; exit 1`, {
            ...mounts("v"),
            env: [{ name: "PASSWORD", valueFrom: { secretKeyRef: { name: "s", key: "password" } } }],
          }),
        ],
        volumes: [{ name: "v", secret: { secretName: "s" } }],
      });
      await scene.running("ends");
      await node.plane.stopComponent("kube-apiserver");
      await waitFor("the container to be started again", async () => {
        try {
          return (await scene.output("ends", uid, 1)).includes("two\ntwo");
        } catch (thrown) {
          if (thrown instanceof Deno.errors.NotFound) return false;
          throw thrown;
        }
      }, { within: patience });
      await node.plane.startComponent("kube-apiserver");
      await scene.running("ends", 1);
      await scene.remove("ends");
    });

    await t.step("an agent that was away shows what has changed, and restarts nothing", async () => {
      const { containerID } = await scene.running("web");
      await agent.kill();
      await scene.secret("s", { password: "three" });
      agent.start();
      await agent.healthy();
      const file = scene.volume(uid, "kubernetes.io~secret/secret/password");
      await waitFor("the newest password", async () => await Deno.readTextFile(file) === "three", { within: patience });
      assert.equal((await scene.running("web")).containerID, containerID);
      await scene.remove("web");
    });
  });
});
