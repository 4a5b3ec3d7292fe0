import assert from "@assert";
import { exists } from "../../scripts/lib/files.ts";
import { waitFor } from "../../scripts/lib/wait.ts";
import { freePort } from "../../scripts/node/agent_node.ts";
import { versions } from "./harness.ts";
import { box, type Observer, patience, pod, shell, withObserver } from "./support.ts";

/** The one container that runs in a pod, its id and start. */
async function life(seen: Observer, name: string, container = "main") {
  const { id } = await seen.running(name, container);
  const { status } = await seen.detail(id);
  return { id, startedAt: status.startedAt, attempt: status.metadata?.attempt, uid: await seen.uid(name) };
}

/** The agent has looked at the manifests again: a pod that was added after what was done before is ready. */
async function looked(seen: Observer, mark: string): Promise<void> {
  const { agent } = seen.node;
  await agent.putManifest(`${mark}.yaml`, pod(mark, { containers: [box("main")] }));
  await seen.ready(mark);
  const uid = await seen.uid(mark);
  await agent.removeManifest(`${mark}.yaml`);
  await seen.gone(mark, uid);
}

for (const version of versions) {
  Deno.test(`manifests in a directory on containerd ${version}`, async (t) => {
    await withObserver({ name: `mf-${version}`, containerd: version }, async (seen) => {
      const { agent } = seen.node;

      await t.step("added manifests become pods", async () => {
        await agent.putManifest("keep.yaml", pod("keep", { containers: [box("main")] }));
        await agent.putManifest("edit.json", pod("edit", { containers: [box("main")] }));
        await seen.ready("keep");
        await seen.ready("edit");
      });

      await t.step("an edited manifest: the old pod goes before the new one comes, others are left alone", async () => {
        const kept = await life(seen, "keep");
        const before = await life(seen, "edit");
        const edited = pod("edit", { containers: [box("main", { image: "localhost/web:1", args: ["x"] })] });
        await agent.putManifest("edit.json", edited);
        await seen.gone("edit", before.uid);
        const after = await waitFor("the new pod", () => life(seen, "edit"), { within: patience });
        assert.notEqual(after.uid, before.uid);
        assert.equal((await seen.detail(after.id)).status.image?.image, "localhost/web:1");
        await seen.ready("edit");
        assert.deepEqual(await life(seen, "keep"), kept);
      });

      await t.step("a manifest written in place, byte by byte, is taken when it is whole", async () => {
        const before = await life(seen, "edit");
        const text = JSON.stringify(pod("edit", { containers: [box("main", { args: ["in place"] })] }));
        const path = `${agent.paths.manifests}/edit.json`;
        await Deno.writeTextFile(path, text.slice(0, 40));
        await Deno.writeTextFile(path, text.slice(40), { append: true });
        await seen.gone("edit", before.uid);
        await waitFor("the new pod", () => life(seen, "edit"), { within: patience });
      });

      await t.step("a manifest under another name: nothing restarts", async () => {
        const before = await life(seen, "keep");
        const { manifests } = agent.paths;
        await Deno.rename(`${manifests}/keep.yaml`, `${manifests}/kept.yaml`);
        await looked(seen, "mark-1");
        // the path is part of a generated UID, so the pod is another one; with a UID of its own it is the same
        await waitFor("the pod", () => life(seen, "keep"), { within: patience });
        const own = pod("own", { containers: [box("main")] }, { uid: "0123456789abcdef0123456789abcdef" });
        await agent.putManifest("own-1.yaml", own);
        await seen.ready("own");
        const first = await life(seen, "own");
        await Deno.rename(`${manifests}/own-1.yaml`, `${manifests}/own-2.yaml`);
        await looked(seen, "mark-2");
        assert.deepEqual(await life(seen, "own"), first);
        assert.ok(before.uid !== "");
      });

      await t.step("a manifest that turned bad is named, and the others' pods are left alone", async () => {
        const kept = await life(seen, "keep");
        const since = (await seen.records()).length;
        await agent.putManifest("bad.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: [}\n");
        await agent.putManifest("worse.yaml", pod("worse", { containers: [] }));
        const named = (file: string) =>
          seen.logged(file, (one) => one.path === `${agent.paths.manifests}/${file}` && !!one.problem, since);
        await named("bad.yaml");
        assert.match(String((await named("worse.yaml")).problem), /spec\.containers/);
        await looked(seen, "mark-3");
        assert.deepEqual(await life(seen, "keep"), kept);
        await agent.removeManifest("bad.yaml");
        await agent.removeManifest("worse.yaml");
      });

      await t.step("what is no manifest in the directory is named and does no harm", async () => {
        const kept = await life(seen, "keep");
        const { manifests } = agent.paths;
        const since = (await seen.records()).length;
        const encoder = new TextEncoder();
        await Deno.writeTextFile(`${agent.paths.root}/huge`, "a: b\n".repeat(11 * (1 << 20) / 5));
        await Deno.rename(`${agent.paths.root}/huge`, `${manifests}/huge.yaml`);
        await Deno.writeFile(`${manifests}/binary.yaml`, new Uint8Array(4096).map((_, i) => (i * 37) % 256));
        await Deno.writeFile(`${manifests}/zeros.yaml`, new Uint8Array(100));
        await Deno.writeFile(`${manifests}/empty.yaml`, encoder.encode(""));
        await new Deno.Command("mkfifo", { args: [`${manifests}/fifo.yaml`] }).output();
        await Deno.symlink("/dev/zero", `${manifests}/device.yaml`);
        await Deno.symlink(`${manifests}/loop.yaml`, `${manifests}/loop.yaml`);
        await Deno.symlink("/nowhere", `${manifests}/dangling.yaml`);
        await Deno.mkdir(`${manifests}/sub.yaml`);
        const names = ["huge", "binary", "zeros", "empty", "fifo", "device", "loop", "dangling", "sub"];
        for (const name of names) {
          const path = `${manifests}/${name}.yaml`;
          await seen.logged(`a problem of ${name}`, (one) => one.path === path && !!one.problem, since);
        }
        await Deno.writeTextFile(`${manifests}/.hidden.yaml`, "not: a pod");
        await looked(seen, "mark-4");
        assert.deepEqual(await life(seen, "keep"), kept);
        for (const name of [...names.map((one) => `${one}.yaml`), ".hidden.yaml"]) {
          await Deno.remove(`${manifests}/${name}`);
        }
        await looked(seen, "mark-5");
        assert.ok(!(await seen.records()).some((one) => String(one.path ?? "").includes(".hidden")));
      });

      await t.step("hostile manifests are refused with the field's name, and make nothing anywhere", async () => {
        const kept = await life(seen, "keep");
        const since = (await seen.records()).length;
        const good = () => pod("hostile", { containers: [box("main")] });
        const nested = (deep: number) => "[".repeat(deep) + "]".repeat(deep);
        const cases: Record<string, [string | object, RegExp]> = {
          uid: [pod("hostile", { containers: [box("main")] }, { uid: "../../../../tmp/denolet-hostile" }), /uid/],
          name: [pod("../up", { containers: [box("main")] }), /metadata\.name/],
          namespace: [pod("hostile", { containers: [box("main")] }, { namespace: "a/b" }), /metadata\.namespace/],
          container: [pod("hostile", { containers: [box("../up")] }), /spec\.containers\[0\]\.name/],
          volume: [
            pod("hostile", { containers: [box("main")], volumes: [{ name: "../up", emptyDir: {} }] }),
            /volumes\[0\]/,
          ],
          secret: [
            pod("hostile", { containers: [box("main")], volumes: [{ name: "v", secret: { secretName: "s" } }] }),
            /secret/i,
          ],
          negative: [
            pod("hostile", { terminationGracePeriodSeconds: -5, containers: [box("main")] }),
            /terminationGracePeriodSeconds/,
          ],
          // JSON's 1e999 is infinite
          number: [
            JSON.stringify(good()).replace(
              '"terminationGracePeriodSeconds":1',
              '"terminationGracePeriodSeconds":1e999',
            ),
            /terminationGracePeriodSeconds/,
          ],
          deep: [`apiVersion: v1\nkind: Pod\nmetadata: {name: hostile}\nspec: ${nested(50_000)}`, /./],
          bomb: [
            "a: &a [x,x,x,x,x,x,x,x,x]\n" +
            [..."bcdefghij"].map((c, i) => `${c}: &${c} [${Array(9).fill(`*${"abcdefghij"[i]}`).join(",")}]`).join(
              "\n",
            ),
            /./,
          ],
          kind: [{ ...good(), kind: "Deployment" }, /Deployment/],
          key: [
            JSON.stringify(good()).replace('"metadata":{', '"metadata":{"annotations":{"__proto__":"x"},'),
            /__proto__/,
          ],
        };
        for (const [file, [text]] of Object.entries(cases)) await agent.putManifest(`x-${file}.yaml`, text);
        for (const [file, [, why]] of Object.entries(cases)) {
          const path = `${agent.paths.manifests}/x-${file}.yaml`;
          const said = await seen.logged(`a problem of ${file}`, (one) => one.path === path && !!one.problem, since);
          assert.match(String(said.problem), why, file);
        }
        // words that mean something to JavaScript are words like others
        const env = [["__proto__", "p"], ["B", "$(__proto__)$(constructor)"]].map(([name = "", value = ""]) => ({
          name,
          value,
        }));
        const annotations = { constructor: "c", toString: "t" };
        await agent.putManifest("odd.yaml", pod("odd", { containers: [box("main", { env })] }, { annotations }));
        await seen.ready("odd");
        const [sandbox] = await seen.sandboxes("odd");
        const { constructor, toString } = sandbox?.annotations ?? {};
        assert.deepEqual([constructor, toString], ["c", "t"]);
        assert.equal(await seen.out("odd", 'env | grep -E "^(__proto__|B)=" | sort'), "B=p$(constructor)\n__proto__=p");
        await looked(seen, "mark-7");
        assert.equal((await seen.sandboxes("hostile")).length, 0);
        assert.equal(await exists("/tmp/denolet-hostile"), false);
        assert.deepEqual(await life(seen, "keep"), kept);
        for (const file of Object.keys(cases)) await agent.removeManifest(`x-${file}.yaml`);
        await agent.removeManifest("odd.yaml");
      });

      await t.step("two pods that want one host port: the first has it, the second is refused", async () => {
        const hostPort = freePort();
        const wanting = (name: string) =>
          pod(name, { containers: [box("main", { ports: [{ containerPort: 1, hostPort }] })] });
        await agent.putManifest("port-1.yaml", wanting("port-1"));
        await seen.ready("port-1");
        await agent.putManifest("port-2.yaml", wanting("port-2"));
        const status = await seen.phase("port-2", "Failed");
        assert.equal(status.reason, "NodePorts");
        await agent.removeManifest("port-1.yaml");
        await agent.removeManifest("port-2.yaml");
      });

      await t.step("two manifests of one pod name: the first runs, the second when the first has gone", async () => {
        const one = pod("twin", { containers: [box("main")] });
        await agent.putManifest("twin-a.yaml", one);
        await seen.ready("twin");
        const first = await life(seen, "twin");
        await agent.putManifest("twin-b.yaml", pod("twin", { containers: [box("main", { args: ["b"] })] }));
        await looked(seen, "mark-6");
        assert.deepEqual(await life(seen, "twin"), first);
        await agent.removeManifest("twin-a.yaml");
        await seen.gone("twin", first.uid);
        await waitFor("the second to run", () => life(seen, "twin"), { within: patience });
      });

      await t.step("a pod that has ended by itself stays until its manifest goes", async () => {
        const done = pod("done", { restartPolicy: "Never", containers: [shell("main", "echo done")] });
        await agent.putManifest("done.yaml", done);
        await seen.phase("done", "Succeeded");
        assert.deepEqual(await seen.log("done"), ["done"]);
        const uid = await seen.uid("done");
        await agent.removeManifest("done.yaml");
        await seen.gone("done", uid);
      });

      await t.step("the directory itself moved away and back: its pods go and come", async () => {
        const { manifests, root } = agent.paths;
        const before = await life(seen, "keep");
        await Deno.rename(manifests, `${root}/elsewhere`);
        await seen.gone("keep", before.uid);
        await Deno.rename(`${root}/elsewhere`, manifests);
        await waitFor("the pod to be back", () => life(seen, "keep"), { within: patience });
      });

      await t.step("after the last manifest nothing is left", async () => {
        assert.ok(await agent.drain());
        await seen.nothingLeft();
        assert.deepEqual((await seen.records()).filter((one) => one.text !== undefined), []);
      });
    });
  });
}
