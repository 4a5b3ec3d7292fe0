import assert from "@assert";
import { layoutOf } from "./containerd.ts";
import { checkLayout, cniConfig, containerdConfig } from "./containerd_config.ts";

const layout = layoutOf({ name: "a" });

Deno.test("containerd: two names share nothing", () => {
  const other = layoutOf({ name: "b" }, new Set([layout.subnet]));
  for (const field of ["root", "run", "bridge", "subnet"] as const) assert.notEqual(layout[field], other[field], field);
  checkLayout(layout);
  checkLayout(other);
});

Deno.test("containerd: a subnet in use is passed over, and all in use is an error", () => {
  assert.notEqual(layoutOf({ name: "a" }, new Set([layout.subnet])).subnet, layout.subnet);
  const used = new Set<string>();
  for (let i = 0; i < 256; i++) used.add(layoutOf({ name: "a" }, used).subnet);
  assert.equal(used.size, 256);
  assert.throws(() => layoutOf({ name: "a" }, used), /all subnets/);
});

Deno.test("containerd: a layout that cannot be used is refused by field", () => {
  const table: [Partial<typeof layout>, RegExp][] = [
    [{ name: "A b" }, /name "A b"/],
    [{ name: "" }, /name/],
    [{ root: "/" }, /root "\/"/],
    [{ root: "relative/x" }, /root/],
    [{ root: "/var/lib/../etc" }, /root/],
    [{ run: `/run/${"x".repeat(90)}` }, /too long/],
    [{ run: layout.root }, /must not be the root directory/],
    [{ bridge: "a-name-too-long-for-linux" }, /bridge/],
    [{ subnet: "10.0.0.0" }, /subnet/],
  ];
  for (const [change, expected] of table) assert.throws(() => checkLayout({ ...layout, ...change }), expected);
});

Deno.test("containerd: configuration of both versions names only its own directories", () => {
  for (const version of ["debian", "v2"] as const) {
    const text = containerdConfig(version, layout);
    assert.match(text, version === "debian" ? /^version = 2$/m : /^version = 3$/m);
    assert.match(text, /restrict_oom_score_adj = true/);
    assert.match(text, /localhost\/pause:1/);
    for (const [path] of text.matchAll(/"\/[^"]+"/g)) {
      const own = path.startsWith(`"${layout.root}/`) || path.startsWith(`"${layout.run}/`);
      assert.ok(own || path === '"/usr/lib/cni"', path);
    }
  }
});

Deno.test("containerd: the network has its own name, bridge, subnet and address store", () => {
  const { name, plugins } = JSON.parse(cniConfig(layout, { masquerade: false }));
  assert.equal(name, "denolet-a");
  assert.equal(plugins[0].bridge, layout.bridge);
  assert.equal(plugins[0].ipMasq, false);
  assert.equal(plugins[0].ipam.ranges[0][0].subnet, layout.subnet);
  assert.ok(plugins[0].ipam.dataDir.startsWith(layout.run));
  assert.deepEqual(plugins[1], { type: "portmap", capabilities: { portMappings: true } });
});
