import assert from "@assert";
import { natRemovals } from "./iptables.ts";
import { mountsBelow } from "./mounts.ts";
import { withDescendants } from "./processes.ts";

Deno.test("iptables: removes the rules and chains of one network, others' and shared ones stay", () => {
  const rules = String.raw`-P POSTROUTING ACCEPT
-N CNI-0bc03865f4f23c4c5fc2c0b2
-N CNI-HOSTPORT-DNAT
-A POSTROUTING -s 10.1.0.2/32 -m comment --comment "name: \"denolet-a\" id: \"f00\"" -j CNI-0bc03865f4f23c4c5fc2c0b2
-A POSTROUTING -s 10.2.0.2/32 -m comment --comment "name: \"denolet-a-b\" id: \"f00\"" -j CNI-1bc03865f4f23c4c5fc2c0b2
-A CNI-0bc03865f4f23c4c5fc2c0b2 -d 10.1.0.0/16 -m comment --comment "name: \"denolet-a\" id: \"f00\"" -j ACCEPT
-A CNI-HOSTPORT-DNAT -p tcp -m comment --comment "dnat name: \"denolet-a\" id: \"f00\"" -m multiport --dports 80 -j CNI-DN-aa00000000bb
-A CNI-DN-aa00000000bb -p tcp --dport 80 -j DNAT --to-destination 10.1.0.2:80
-A OTHER -j RETURN`;
  const dnat = [
    "-D",
    "CNI-HOSTPORT-DNAT",
    "-p",
    "tcp",
    "-m",
    "comment",
    "--comment",
    'dnat name: "denolet-a" id: "f00"',
  ];
  assert.deepEqual(natRemovals(rules, "denolet-a"), [
    ["-D", "POSTROUTING", "-s", "10.1.0.2/32", "-m", "comment", "--comment", 'name: "denolet-a" id: "f00"']
      .concat("-j", "CNI-0bc03865f4f23c4c5fc2c0b2"),
    dnat.concat("-m", "multiport", "--dports", "80", "-j", "CNI-DN-aa00000000bb"),
    ["-F", "CNI-0bc03865f4f23c4c5fc2c0b2"],
    ["-F", "CNI-DN-aa00000000bb"],
    ["-X", "CNI-0bc03865f4f23c4c5fc2c0b2"],
    ["-X", "CNI-DN-aa00000000bb"],
  ]);
  assert.deepEqual(natRemovals(rules, "denolet"), []);
});

Deno.test("mounts: below a directory, the deepest and latest first, escapes read, neighbours left out", () => {
  const info = [
    "30 1 0:1 / /run/a rw - tmpfs t rw",
    "31 30 0:2 / /run/a/b\\040c rw - tmpfs t rw",
    "32 1 0:3 / /run/ab rw - tmpfs t rw",
    "33 31 0:4 / /run/a/b\\040c/d rw - tmpfs t rw",
    "",
  ].join("\n");
  assert.deepEqual(mountsBelow(info, "/run/a"), ["/run/a/b c/d", "/run/a/b c", "/run/a"]);
  assert.deepEqual(mountsBelow(info, "/run/none"), []);
});

Deno.test("processes: a process with all that descend from it, parents first", () => {
  const all = [[4, 3], [2, 1], [3, 2], [9, 1], [5, 2]].map(([pid = 0, parent = 0]) => ({ pid, parent, command: [] }));
  const root = all.filter((one) => one.pid === 2);
  assert.deepEqual(withDescendants(all, root).map((one) => one.pid), [2, 3, 5, 4]);
});
