import assert from "@assert";
import { FakeClock, turn } from "../../mod/base/fake_clock.ts";
import { errno, FakeHost } from "../../mod/base/fake_host.ts";
import { fsGroupDirMode, fsGroupFileMode, giveToGroup, type GroupChange } from "./ownership.ts";

const dir = "/k/pods/u1/volumes/p/v";

function scene(more: Partial<GroupChange> = {}) {
  const clock = new FakeClock();
  const host = new FakeHost({ clock, files: { [`${dir}/sub/f`]: "x" } });
  const told: string[] = [];
  const give = (now: Partial<GroupChange> = {}) =>
    giveToGroup({
      host,
      clock,
      dir,
      podUid: "u1",
      gid: 3000,
      readOnly: false,
      signal: new AbortController().signal,
      onSlow: (message) => told.push(message),
      ...more,
      ...now,
    });
  const facts = async (path: string) => {
    const info = await host.lstat(path);
    return [info?.gid, info?.mode];
  };
  return { clock, host, told, give, facts };
}

Deno.test("fsGroup: masks of files and directories", () => {
  assert.deepEqual([fsGroupFileMode(0o600, false), fsGroupFileMode(0o600, true)], [0o660, 0o640]);
  assert.deepEqual([fsGroupDirMode(0o700, false), fsGroupDirMode(0o700, true)], [0o2770, 0o2750]);
});

Deno.test("fsGroup: everything gets the group; without one nothing is touched", async () => {
  const s = scene();
  await s.give({ gid: undefined });
  assert.deepEqual(await s.facts(dir), [0, 0o755]);
  await s.give();
  assert.deepEqual(await s.facts(dir), [3000, 0o2775]);
  assert.deepEqual(await s.facts(`${dir}/sub`), [3000, 0o2775]);
  assert.deepEqual(await s.facts(`${dir}/sub/f`), [3000, 0o664]);
});

Deno.test("fsGroup: OnRootMismatch looks at the directory alone", async () => {
  const rows: [number, number, boolean, boolean][] = [
    [3000, 0o2770, false, true],
    [3000, 0o2777, false, true],
    [3000, 0o2750, true, true],
    [3000, 0o2750, false, false],
    [3000, 0o770, false, false],
    [3001, 0o2770, false, false],
  ];
  for (const [gid, mode, readOnly, fits] of rows) {
    const s = scene({ policy: "OnRootMismatch", readOnly });
    await s.host.chown(dir, 0, gid);
    await s.host.chmod(dir, mode);
    await s.give();
    assert.equal((await s.facts(`${dir}/sub/f`))[0] === 0, fits, `${gid} ${mode.toString(8)}`);
    const always = scene({ policy: "Always", readOnly });
    await always.give();
    assert.equal((await always.facts(`${dir}/sub/f`))[0], 3000);
  }
});

Deno.test("fsGroup: a change that takes long is told of after 30 s and then each minute, until it ends", async () => {
  const held = Promise.withResolvers<void>();
  const s = scene();
  const host: GroupChange["host"] = {
    stat: (path) => s.host.stat(path),
    groupTree: async (_path, options) => {
      options.onEntry?.();
      await held.promise;
    },
  };
  const giving = s.give({ host });
  await turn();
  await s.clock.advance(29_999);
  assert.deepEqual(s.told, []);
  await s.clock.advance(1);
  assert.match(s.told[0] ?? "", /^Setting volume ownership for u1\/volumes\/p\/v is taking longer than expected/);
  await s.clock.advance(120_000);
  assert.deepEqual(s.told.slice(1), Array(2).fill("Setting volume ownership for u1/volumes/p/v, processed 1 files."));
  held.resolve();
  await giving;
  await s.clock.advance(600_000);
  assert.equal(s.told.length, 3);
});

Deno.test("fsGroup: a failure is told", async () => {
  const s = scene();
  using _denied = s.host.fault((operation) => operation === "groupTree" ? errno("EPERM") : undefined);
  await assert.rejects(s.give(), /groupTree .*: .*not permitted/i);
});
