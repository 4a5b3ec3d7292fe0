import assert from "@assert";
import { decodeCheckpoint, encodeCheckpoint } from "./checkpoint.ts";

Deno.test("a file of the reference's is read, its checksum checked", () => {
  const text = String
    .raw`{"data":"{\"entries\":{\"pod1\":{\"ContainerResources\":{\"container1\":{\"requests\":{\"cpu\":\"1Ki\",\"memory\":\"1Ki\"}}}}}}","checksum":1178570812}`;
  assert.deepEqual(
    decodeCheckpoint(text),
    new Map([["pod1", { containers: new Map([["container1", { requests: { cpu: "1Ki", memory: "1Ki" } }]]) }]]),
  );
  const damaged: readonly (readonly [string, RegExp])[] = [
    [text.replace("1178570812", "1178570813"), /checksum/],
    [text.slice(0, -20), /JSON/],
    ["[]", /no data/],
    ["null", /no data/],
    ['{"data":7,"checksum":1}', /no data/],
  ];
  for (const [bad, says] of damaged) assert.throws(() => decodeCheckpoint(bad), says, bad);
});

Deno.test("what is written is in the reference's form, whatever the order and notation, and is read again", () => {
  const table = new Map([
    ["b", { containers: new Map([["z", { requests: { memory: "1024Ki", cpu: "0.5" } }], ["a", {}]]) }],
    ["a", { containers: new Map(), pod: { limits: { cpu: "1000m" } } }],
  ]);
  const text = encodeCheckpoint(table);
  assert.equal(
    (JSON.parse(text) as { data: string }).data,
    '{"entries":{"a":{"ContainerResources":{},"PodLevelResources":{"limits":{"cpu":"1"}}},' +
      '"b":{"ContainerResources":{"a":{},"z":{"requests":{"cpu":"500m","memory":"1Mi"}}},"PodLevelResources":null}}}',
  );
  assert.equal(encodeCheckpoint(decodeCheckpoint(text)), text);
  assert.deepEqual(decodeCheckpoint(encodeCheckpoint(new Map())), new Map());
});
