import assert from "@assert";
import { followLines, worthSaying } from "./agent_log.ts";

Deno.test("agent log: errors and odd manifests are worth saying", () => {
  const head = "1130 15:57:50.856000   13374 kubelet] ";
  const table: [string, string | undefined][] = [
    [`I${head}"pod add" pod="a_b"`, undefined],
    [`W${head}"event" pod="a_b" reason="BackOff" message="\\"Manifest\\""`, undefined],
    [
      `E${head}"Manifest can't be used" path="/m/a.yaml" problem="/m/a.yaml: pod \\"x\\" is bad"`,
      '/m/a.yaml: pod "x" is bad',
    ],
    [
      `W${head}"Manifest" path="/m/a.yaml" warning="key \\"labels\\" is given twice"`,
      '/m/a.yaml: key "labels" is given twice',
    ],
    [
      `E${head}"A pod is left out" source="file" same="name" path="/m/b.yaml" keptPath="/m/a.yaml"`,
      "/m/b.yaml: its pod is left out, as /m/a.yaml has the same name",
    ],
    [
      `E${head}"waiting for the container runtime" error="gone"`,
      'agent: "waiting for the container runtime" error="gone"',
    ],
  ];
  for (const [line, expected] of table) assert.equal(worthSaying(line), expected);
});

Deno.test("agent log: whole lines, each once", async () => {
  const path = await Deno.makeTempFile();
  try {
    const next = followLines(path);
    assert.deepEqual(await next(), []);
    await Deno.writeTextFile(path, "a\nb");
    assert.deepEqual(await next(), ["a"]);
    await Deno.writeTextFile(path, "c\n\n", { append: true });
    assert.deepEqual(await next(), ["bc", ""]);
    await Deno.remove(path);
    assert.deepEqual(await next(), []);
  } finally {
    await Deno.remove(path).catch(() => {});
  }
});
