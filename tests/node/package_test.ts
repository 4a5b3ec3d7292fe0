import assert from "@assert";
import { attempt, run } from "../../scripts/lib/command.ts";
import { exists, remove, repository } from "../../scripts/lib/files.ts";
import { makePackage } from "../../scripts/package.ts";

Deno.test("the Debian package installs, runs, keeps a changed configuration, and goes without a trace", async () => {
  const dir = await Deno.makeTempDir({ prefix: "denolet-deb-" });
  await Deno.chmod(dir, 0o755);
  try {
    const deb = await makePackage({ compress: false, into: dir });
    const root = `${dir}/root`;
    await Deno.mkdir(`${root}/var/lib/dpkg/updates`, { recursive: true });
    for (const file of ["status", "available"]) await Deno.writeTextFile(`${root}/var/lib/dpkg/${file}`, "");
    await Deno.mkdir(`${root}/var/lib/dpkg/info`);
    // the root has nothing but the package: its scripts run on this machine, and know by DPKG_ROOT where
    const dpkg = (...args: string[]) =>
      run([
        ...["dpkg", `--root=${root}`, `--log=${dir}/log`, "--force-script-chrootless", "--force-depends"],
        ...["--force-confold", ...args],
      ]);
    const config = `${root}/etc/kubernetes/kubelet.yaml`;

    await dpkg("--install", deb);
    const env = { DENOLET_CACHE: `${root}/var/cache/denolet` };
    assert.match(await run([`${root}/usr/bin/kubelet`, "--version"], { env }), /^Kubernetes v1\./);
    const explained = await attempt([`${root}/usr/bin/kubelet`, "explain", "config", "--config", config], { env });
    assert.equal(explained.code, 0, explained.stderr);
    for (
      const path of [
        "lib/systemd/system/kubelet.service",
        "usr/share/man/man8/kubelet.8.gz",
        "etc/kubernetes/manifests",
      ]
    ) {
      assert.ok(await exists(`${root}/${path}`), path);
    }
    assert.equal(await run(["dpkg", `--root=${root}`, "--verify", "denolet"]), "");

    await Deno.writeTextFile(config, "changed\n", { append: true });
    await dpkg("--install", deb);
    assert.match(await Deno.readTextFile(config), /changed\n$/);

    await run([`${root}/usr/bin/kubelet`, "--version"], { env });
    await dpkg("--remove", "denolet");
    assert.ok(!await exists(`${root}/usr/bin/kubelet`));
    assert.ok(!await exists(`${root}/var/cache/denolet`));
    assert.match(await Deno.readTextFile(config), /changed\n$/, "a removed package keeps its configuration");
    await dpkg("--purge", "denolet");
    assert.ok(!await exists(config));
    assert.ok(!await exists(`${root}/etc/kubernetes`));
  } finally {
    await remove(dir);
  }
});

Deno.test("the unit of the package is one that systemd takes", async () => {
  const unit = `${repository}/packaging/deb/kubelet.service`;
  const dir = await Deno.makeTempDir();
  try {
    // the program is not installed on this machine: another one stands in for it
    const text = (await Deno.readTextFile(unit)).replace("/usr/bin/kubelet", "/bin/true");
    await Deno.writeTextFile(`${dir}/kubelet.service`, text);
    const { code, stderr } = await attempt(["systemd-analyze", "verify", "--man=no", `${dir}/kubelet.service`]);
    const ours = stderr.split("\n").filter((line) => line.includes("kubelet.service"));
    assert.deepEqual([code, ours], [0, []], stderr);
  } finally {
    await remove(dir);
  }
});
