import assert from "@assert";
import { ImageStore, normalReference } from "./images.ts";

Deno.test("references are written in full", () => {
  const digest = `@sha256:${"a".repeat(64)}`;
  const cases: [string, string | undefined][] = [
    ["nginx", "docker.io/library/nginx:latest"],
    ["nginx:1.27", "docker.io/library/nginx:1.27"],
    ["user/app", "docker.io/user/app:latest"],
    ["registry.k8s.io/pause:3.10", "registry.k8s.io/pause:3.10"],
    ["localhost/web:1", "localhost/web:1"],
    ["127.0.0.1:5000/a/b", "127.0.0.1:5000/a/b:latest"],
    [`nginx${digest}`, `docker.io/library/nginx${digest}`],
    ["UP", undefined],
    ["", undefined],
    ["a b", undefined],
    ["nginx:", undefined],
    ["nginx@sha256:abc", undefined],
  ];
  for (const [text, expected] of cases) assert.equal(normalReference(text), expected, text);
});

Deno.test("one image under several names; a tag belongs to one image", () => {
  const digest = `sha256:${"a".repeat(64)}`;
  const store = new ImageStore([{ name: "app:1", digest }, { name: "app:2", digest, user: "1000:5" }]);
  const [image, ...others] = store.list();
  assert.deepEqual(others, []);
  assert.deepEqual(image?.repoTags, ["docker.io/library/app:1", "docker.io/library/app:2"]);
  assert.deepEqual(image?.repoDigests, [`docker.io/library/app@${digest}`]);
  store.add({ name: "app:2", digest: `sha256:${"b".repeat(64)}` });
  assert.deepEqual(image?.repoTags, ["docker.io/library/app:1"]);
  assert.notEqual(store.find("app:2")?.id, image?.id);
  assert.equal(store.find(`app@${digest}`)?.id, image?.id);
  assert.equal(store.find(image?.id.slice(7, 19) ?? "")?.id, image?.id);
  store.remove("app:1");
  assert.equal(store.find("app:1"), undefined);
  assert.equal(store.list().length, 1);
});

Deno.test("the user of an image is a number or a name", () => {
  const store = new ImageStore([
    { name: "number", user: "1000:1000" },
    { name: "name", user: "app:staff" },
    { name: "none" },
  ]);
  const of = (name: string) => [store.find(name)?.uid, store.find(name)?.username];
  assert.deepEqual([of("number"), of("name"), of("none")], [[1000n, ""], [undefined, "app"], [undefined, ""]]);
});
