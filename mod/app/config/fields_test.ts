import assert from "@assert";
import { schema } from "../../kube/gen/schema.ts";
import { actedOn } from "./acted_on.ts";
import { allFields } from "./fields.ts";
import { allFlags } from "./flags.ts";

Deno.test("every field of the type is in the table, and no other", () => {
  const leaves: string[] = [];
  const walk = (type: string, path: string) => {
    for (const [name, fieldType] of Object.entries(schema[type] ?? {})) {
      if (path === "" && (name === "kind" || name === "apiVersion")) continue;
      const plain = fieldType.replace(/!$/, "");
      const at = path === "" ? name : `${path}.${name}`;
      if (Object.hasOwn(schema, plain)) walk(plain, at);
      else leaves.push(at);
    }
  };
  walk("KubeletConfiguration", "");
  assert.deepEqual(allFields.map((field) => field.path).sort(), leaves.sort());
  assert.equal(new Set(allFields.map((field) => field.path.split(".")[0])).size, 125);
});

Deno.test("flag names are unique, in kebab case, and deprecated as the reference has it", () => {
  const names = allFlags.map((flag) => flag.name);
  assert.equal(new Set(names).size, names.length);
  for (const name of names) assert.match(name, /^[a-z][a-z0-9-]*$/);
  const kept = allFlags.filter((flag) => flag.field !== undefined && flag.deprecated === undefined);
  assert.deepEqual(kept.map((flag) => flag.name).sort(), [
    "fail-cgroupv1",
    "log-flush-frequency",
    "provider-id",
    "v",
    "vmodule",
  ]);
});

Deno.test("the list of fields acted on names fields", () => {
  const paths = new Set(allFields.map((field) => field.path));
  for (const path of Object.keys(actedOn)) assert(paths.has(path), path);
});
