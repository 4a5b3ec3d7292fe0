import assert from "@assert";
import { type CheckpointData, checksumOf, decodeCheckpoint, encodeCheckpoint } from "./checkpoint.ts";

// What the reference's own hash gives for the same data.
const cases: [data: CheckpointData, sum: number][] = [
  [{ PodDeviceEntries: null, RegisteredDevices: {} }, 3467439661],
  [{ PodDeviceEntries: [], RegisteredDevices: null }, 3252601439],
  [{
    PodDeviceEntries: [
      {
        PodUID: "u-1",
        ContainerName: "c",
        ResourceName: 'example.com/d"x',
        DeviceIDs: { "-1": ["a", "b"], "10": ["e"], "2": [], "3": null },
        AllocResp: "CgMA/w==",
      },
      { PodUID: "u-2", ContainerName: "c2", ResourceName: "example.com/é", DeviceIDs: null, AllocResp: null },
      { PodUID: "u-3", ContainerName: "c3", ResourceName: "x", DeviceIDs: {}, AllocResp: "" },
    ],
    RegisteredDevices: { "z.com/b": ["1"], "example.com/a": [], "n.com/nil": null },
  }, 3376687985],
];

Deno.test("the checkpoint of devices: the reference's checksum, read back as written", () => {
  for (const [data, sum] of cases) {
    assert.equal(checksumOf(data), sum);
    assert.deepEqual(decodeCheckpoint(encodeCheckpoint(data)), data);
  }
});

Deno.test("a checkpoint that was damaged, or is none, is refused", () => {
  const good = encodeCheckpoint(cases[2]![0]);
  const entry = { PodUID: "u", ContainerName: "c", ResourceName: "r", DeviceIDs: {}, AllocResp: "" };
  const bad = [
    "",
    "null",
    "[]",
    '{"Data":{},"Checksum":"1"}',
    good.replace("u-1", "u-9"),
    JSON.stringify({ Data: { PodDeviceEntries: [{ ...entry, DeviceIDs: { x: ["a"] } }] }, Checksum: 1 }),
    JSON.stringify({ Data: { PodDeviceEntries: [{ ...entry, AllocResp: "!" }] }, Checksum: 1 }),
    JSON.stringify({ Data: { PodDeviceEntries: [{ ...entry, PodUID: 1 }] }, Checksum: 1 }),
    JSON.stringify({ Data: { RegisteredDevices: { a: [1] } }, Checksum: 1 }),
  ];
  for (const text of bad) assert.throws(() => decodeCheckpoint(text), { code: "BadConfig" }, text);
});
