import assert from "@assert";
import { FakeClock } from "../../mod/base/fake_clock.ts";
import { FakeHost } from "../../mod/base/fake_host.ts";
import { RecordingLogger } from "../../mod/base/log.ts";
import { KubeletError } from "../../mod/base/errors.ts";
import { ApiError } from "../../mod/kube/api/types.ts";
import type { BoundPod, Container } from "../../mod/kube/types.ts";
import { containerEnv } from "../../mod/pod/config/env.ts";
import type { MountedVolume } from "../../mod/pod/mounted_volume.ts";
import type { ObjectReader } from "../objects/types.ts";
import { createEnvSource } from "./env_source.ts";

const notFound = (what: string) => new ApiError(`${what} not found`, { status: 404, reason: "NotFound" });

const objects: ObjectReader = {
  secret: (namespace, name) => {
    if (name === "down") return Promise.reject(new KubeletError("Network", "failed to sync secret cache: refused"));
    if (name !== "s") return Promise.reject(notFound(`secret "${name}"`));
    return Promise.resolve({ metadata: { namespace, name }, data: { key: btoa("\xff\x00"), text: btoa("hidden") } });
  },
  configMap: (namespace, name) =>
    name === "m"
      ? Promise.resolve({ metadata: { namespace, name }, data: { key: "value", "a.b": "dots" } })
      : Promise.reject(notFound(`configmap "${name}"`)),
};

function scene(reader: ObjectReader | undefined = objects) {
  const host = new FakeHost({ clock: new FakeClock() });
  host.putDir("/v/data", 0o777);
  const log = new RecordingLogger();
  const source = createEnvSource({
    host,
    log,
    ...(reader ? { objects: reader } : {}),
    services: () => Promise.resolve(new Map([["SVC_SERVICE_HOST", "10.0.0.1"]])),
  });
  const volumes = new Map<string, MountedVolume>([
    ["data", { name: "data", hostPath: "/v/data", readOnly: false, selinuxRelabel: true }],
  ]);
  const env = async (container: Partial<Container>): Promise<Record<string, string>> => {
    const whole: Container = { name: "c", ...container };
    const pod: BoundPod = {
      metadata: { name: "p", namespace: "ns", uid: "u" },
      spec: { containers: [whole], enableServiceLinks: true, volumes: [{ name: "data", emptyDir: {} }] },
    };
    const { signal } = new AbortController();
    const read = await source.read({ pod, container: whole, volumes, signal });
    const fields = { podIPs: [], hostIPs: [] };
    const values = containerEnv({ pod, container: whole, fields, allocatable: {}, ...read });
    return Object.fromEntries(values.map(({ name, value }) => [name, value]));
  };
  return { host, log, env };
}

const services = { SVC_SERVICE_HOST: "10.0.0.1" };

Deno.test("variables of Secrets and ConfigMaps: whole, by key, with prefix; what is optional may be missing", async () => {
  const { env } = scene();
  assert.deepEqual(
    await env({
      envFrom: [
        { configMapRef: { name: "m" }, prefix: "P_" },
        { secretRef: { name: "none", optional: true } },
        { configMapRef: { name: "none", optional: true } },
      ],
      env: [
        { name: "A", valueFrom: { secretKeyRef: { name: "s", key: "text" } } },
        { name: "B", valueFrom: { configMapKeyRef: { name: "m", key: "none", optional: true } } },
        { name: "C", valueFrom: { secretKeyRef: { name: "none", key: "k", optional: true } } },
        { name: "D", value: "$(A) $(SVC_SERVICE_HOST)" },
      ],
    }),
    { P_key: "value", "P_a.b": "dots", A: "hidden", D: "hidden 10.0.0.1", ...services },
  );
});

Deno.test("what is missing or cannot be read is told in the contract's words", async () => {
  const cases: [string, Partial<Container>, RegExp][] = [
    ["no Secret", { envFrom: [{ secretRef: { name: "none" } }] }, /^secret "none" not found$/],
    ["no ConfigMap", { envFrom: [{ configMapRef: { name: "none" } }] }, /^configmap "none" not found$/],
    ["no key", {
      env: [{ name: "A", valueFrom: { secretKeyRef: { name: "s", key: "none" } } }],
    }, /^couldn't find key none in Secret ns\/s$/],
    ["nobody can say", {
      env: [{ name: "A", valueFrom: { secretKeyRef: { name: "down", key: "k" } } }],
    }, /^failed to sync secret cache: refused$/],
    ["nobody can say, optional", {
      envFrom: [{ secretRef: { name: "down", optional: true } }],
    }, /^failed to sync secret cache: refused$/],
  ];
  const { env } = scene();
  for (const [what, container, expected] of cases) {
    await assert.rejects(env(container), { name: "CreateContainerConfigError", message: expected }, what);
  }
});

Deno.test("without an API server there are no objects", async () => {
  const host = new FakeHost({ clock: new FakeClock() });
  const source = createEnvSource({ host, log: new RecordingLogger() });
  const container: Container = { name: "c", envFrom: [{ secretRef: { name: "s" } }] };
  const pod: BoundPod = { metadata: { name: "p", namespace: "ns", uid: "u" }, spec: { containers: [container] } };
  const read = await source.read({ pod, container, volumes: new Map(), signal: new AbortController().signal });
  assert.equal(read.objects.standalone, true);
  assert.equal(read.services.size, 0);
});

const fromFile = (path: string, key = "K", optional?: boolean): Partial<Container> => ({
  env: [{
    name: "A",
    valueFrom: { fileKeyRef: { volumeName: "data", path, key, ...(optional === undefined ? {} : { optional }) } },
  }],
});

Deno.test("variables from a file of a volume", async () => {
  const s = scene();
  s.host.putDir("/v/data/d", 0o755);
  s.host.put("/v/data/d/env", "# first\nJ='1'\nK='two\nlines'\n");
  assert.deepEqual(await s.env(fromFile("d/env")), { A: "two\nlines", ...services });
  assert.deepEqual(await s.env(fromFile("d/env", "none", true)), services);
  await assert.rejects(s.env(fromFile("d/env", "none")), /key "none" not found in file "d\/env" of volume "data"/);
  await assert.rejects(s.env(fromFile("missing", "K", true)), /^CreateContainerConfigError: couldn't parse env file$/);
});

Deno.test("no link of a container leads a file of variables out of its volume, and none may be huge", async () => {
  const s = scene();
  s.host.putDir("/etc", 0o755);
  s.host.put("/etc/shadow", "K='secret'\n");
  await s.host.symlink("/etc/shadow", "/v/data/link");
  await s.host.symlink("/etc", "/v/data/dir");
  await s.host.symlink("../data2", "/v/data/sibling");
  s.host.putDir("/v/data2", 0o755);
  s.host.put("/v/data2/env", "K='neighbour'\n");
  s.host.put("/v/data/real", "K='mine'\n");
  await s.host.symlink("real", "/v/data/inside");
  for (const path of ["link", "dir/shadow", "sibling/env", "../data2/env", ""]) {
    await assert.rejects(s.env(fromFile(path)), /couldn't parse env file/, path);
  }
  assert.match(s.log.lines[0]?.fields["error"] as string, /leads out of its volume/);
  assert.deepEqual(await s.env(fromFile("inside")), { A: "mine", ...services });
  s.host.put("/v/data/huge", `K='${"x".repeat(1 << 20)}'`);
  await assert.rejects(s.env(fromFile("huge")), /couldn't parse env file/);
});
