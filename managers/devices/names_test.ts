import assert from "@assert";
import { isExtendedResourceName } from "./names.ts";

Deno.test("names of device plugins' resources", () => {
  for (const name of ["example.com/resource", "a/B_c.d", "x.y-z/1"]) {
    assert.equal(isExtendedResourceName(name), true, name);
  }
  const bad = [
    "cpu",
    "",
    "/a",
    "a/",
    "a/b/c",
    "kubernetes.io/x",
    "sub.kubernetes.io/x",
    "requests.example.com/x",
    "Example.com/x",
    "example.com/-x",
    "example..com/x",
    `example.com/${"x".repeat(64)}`,
    `${"a.".repeat(125)}com/x`,
    "__proto__",
  ];
  for (const name of bad) assert.equal(isExtendedResourceName(name), false, name);
});
