import assert from "@assert";
import type { BoundPod, Container } from "../../mod/kube/types.ts";
import { hugePageSize, isHugePages } from "./huge_pages.ts";

type Limits = Record<string, string>;

function pod(...limits: Limits[]): BoundPod {
  const containers = limits.map((one, i): Container => ({ name: `c${i}`, resources: { limits: one, requests: one } }));
  return { metadata: { name: "p", namespace: "ns", uid: "u" }, spec: { containers } };
}

Deno.test("huge page volumes: the page size, and what is refused", () => {
  const two = { "hugepages-2Mi": "4Mi", cpu: "1" };
  const one = { "hugepages-1Gi": "1Gi" };
  const rows: [string, Limits[], string | RegExp][] = [
    ["HugePages", [two], "2Mi"],
    ["HugePages", [{}, two, two], "2Mi"],
    ["HugePages-2Mi", [two, one], "2Mi"],
    ["HugePages-1Gi", [two, one], "1Gi"],
    ["HugePages-1024Mi", [one], "1Gi"],
    ["HugePages", [two, one], /can't be used if container requests multiple huge page sizes/],
    ["HugePages", [{ cpu: "1" }], /medium HugePages: hugePages storage requested, but there is no resource request/],
    ["HugePages-1Gi", [two], /no resource request for huge pages/],
    ["HugePages-x", [two], /HugePages-x/],
  ];
  for (const [medium, limits, expected] of rows) {
    const ask = () => hugePageSize(pod(...limits), medium);
    if (typeof expected === "string") assert.equal(ask(), expected, medium);
    else assert.throws(ask, expected);
  }
  assert.deepEqual(["HugePages", "HugePages-2Mi", "HugePagesX", "Memory", ""].map(isHugePages), [
    true,
    true,
    false,
    false,
    false,
  ]);
});
