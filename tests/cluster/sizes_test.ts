import assert from "@assert";
import { resources } from "../../mod/kube/api/resources.ts";
import type { Secret } from "../../mod/kube/types.ts";
import { print } from "../../scripts/lib/print.ts";
import { waitFor } from "../../scripts/lib/wait.ts";
import { shell } from "../node/support.ts";
import { withClusterNode } from "./harness.ts";
import { ClusterView, hasCondition, patience } from "./support.ts";

const { signal } = new AbortController();
const namespace = "default";
/** Containers of one pod; the real runtime makes some five a second here. */
const count = Number(Deno.env.get("DENOLET_TEST_CONTAINERS") ?? 60);
/** The most that a Secret may hold. */
const largest = 2 ** 20;

Deno.test("what is as large as the API lets it be", async (t) => {
  await withClusterNode({ name: "sizes" }, async (member) => {
    const { admin, agent, nodeName } = member;
    const view = new ClusterView(member);
    await view.nodeCondition("Ready", "True");

    await t.step("a Secret of 1 MiB is in the pod, whole, and so is its update", async () => {
      const bytes = (seed: number) => Uint8Array.from({ length: largest }, (_, i) => (i * seed) >> 3);
      const secret = (seed: number): Secret => ({
        metadata: { name: "big", namespace },
        data: { big: bytes(seed).toBase64() },
      });
      await admin.create(resources.secrets, secret(7), { signal });
      await view.createPod("reader", {
        nodeName,
        volumes: [{ name: "s", secret: { secretName: "big" } }],
        containers: [
          shell("main", "while :; do sha256sum /s/big; sleep 0.3; done", {
            volumeMounts: [{ name: "s", mountPath: "/s" }],
          }),
        ],
      });
      const uid = (await view.ready("reader")).metadata?.uid;
      const log = `${agent.paths.logs}/${namespace}_reader_${uid}/main/0.log`;
      for (const seed of [7, 11]) {
        if (seed !== 7) await admin.replace(resources.secrets, secret(seed), { signal });
        const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes(seed))).toHex();
        await waitFor(`the container to read the Secret ${seed}`, async () => {
          return (await Deno.readTextFile(log)).includes(`${sum}  /s/big`);
        }, { within: patience });
      }
    });

    await t.step(
      "a container that is to have it in its environment is told why that cannot be; others run",
      async () => {
        await view.createPod("crammed", {
          nodeName,
          containers: [
            shell("main", "sleep 1000", {
              env: [{ name: "B", valueFrom: { secretKeyRef: { name: "text", key: "big" } } }],
            }),
            shell("other", "trap 'exit 0' TERM; sleep 1000 & wait $!"),
          ],
        });
        await admin.create<Secret>(resources.secrets, {
          metadata: { name: "text", namespace },
          data: { big: btoa("x".repeat(largest)) },
        }, { signal });
        const { status } = await view.podUntil("crammed", "to be told", ({ status }) => {
          const [main, other] = status?.containerStatuses ?? [];
          return !!other?.state?.running && /variable B has 1048578 bytes/.test(main?.state?.waiting?.message ?? "");
        });
        assert(JSON.stringify(status).length < 20_000);
        await view.deletePod("crammed");
        await view.gone("crammed");
      },
    );

    await t.step(`${count} containers in one pod: each in the status, messages within the API's limit`, async () => {
      const began = Date.now();
      const name = (i: number) => `container-${String(i).padStart(3, "0")}-${"x".repeat(49)}`;
      // Each would like to say 4 kB at its end; all together may say 12.
      const line =
        "trap 'head -c 4096 /dev/zero | tr \"\\\\0\" m > /dev/termination-log; exit 3' TERM; sleep 86400 & wait $!";
      await view.createPod("many", {
        nodeName,
        restartPolicy: "Never",
        terminationGracePeriodSeconds: 60,
        containers: Array.from({ length: count }, (_, i) => shell(name(i), line)),
      }, { finalizers: ["example.com/hold"] });
      const ready = hasCondition("Ready", "True");
      const many = await waitFor("all containers to run", async () => {
        const pod = await view.pod("many");
        return pod && ready(pod) ? pod : undefined;
      }, { within: patience + count * 1000 });
      print(`${count} containers ran after ${Date.now() - began} ms`);
      const statuses = many.status?.containerStatuses ?? [];
      assert.deepEqual(statuses.map((one) => one.name).sort(), Array.from({ length: count }, (_, i) => name(i)));
      assert(statuses.every(({ state, ready, restartCount, containerID }) => {
        return state?.running?.startedAt && ready && restartCount === 0 && containerID;
      }));
      await view.deletePod("many");
      const ended = await waitFor("all containers to have ended", async () => {
        const pod = await view.pod("many");
        return pod?.status?.phase === "Failed" ? pod : undefined;
      }, { within: patience + count * 1000 });
      print(`${count} containers had ended after ${Date.now() - began} ms`);
      const messages = (ended.status?.containerStatuses ?? []).map(({ state }) => state?.terminated?.message ?? "");
      assert.equal(messages.length, count);
      assert(messages.every((text) => text.startsWith("mmm")), JSON.stringify(messages.map(({ length }) => length)));
      const total = messages.reduce((sum, { length }) => sum + length, 0);
      assert(total <= 12 * 1024, `${total} bytes of messages`);
      const finalizers = { metadata: { finalizers: null } };
      await admin.patch(resources.pods, { namespace, name: "many" }, finalizers, { type: "merge", signal });
      await view.gone("many");
    });
  });
});
