import assert from "@assert";
import { type OomKill, OomParser } from "./parse.ts";

function parse(...lines: string[]): OomKill[] {
  const parser = new OomParser();
  return lines.flatMap((line) => parser.feed(line) ?? []);
}

const group = "/kubepods/burstable/pod1/aaaaaaaa01";
const begin = "stress invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=968";
const ofGroup =
  `oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=aaaaaaaa01,mems_allowed=0,oom_memcg=${group},task_memcg=${group},task=stress,pid=4711,uid=0`;

Deno.test("a container at its limit: group and process, told once although more lines follow", () => {
  assert.deepEqual(
    parse(
      begin,
      "CPU: 1 PID: 4711 Comm: stress",
      "memory: usage 65536kB, limit 65536kB, failcnt 12",
      ofGroup,
      "Memory cgroup out of memory: Killed process 4711 (stress) total-vm:66000kB, anon-rss:65000kB, UID:0",
      "oom_reaper: reaped process 4711 (stress), now anon-rss:0kB",
    ),
    [{ limitOf: group, group, process: "stress", pid: 4711 }],
  );
});

Deno.test("the machine out of memory", () => {
  const line =
    `oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=${group},task=java,pid=9,uid=1000`;
  assert.deepEqual(parse(begin, line), [{ limitOf: "/", group, process: "java", pid: 9 }]);
  // A kernel that says nothing but the kill.
  assert.deepEqual(parse(begin, "Out of memory: Killed process 12 (a b) total-vm:1kB"), [
    { limitOf: "/", group: "/", process: "a b", pid: 12 },
  ]);
});

Deno.test("kernels before 5.0 name the groups in a line of their own", () => {
  assert.deepEqual(
    parse(
      begin,
      `Task in ${group} killed as a result of limit of /kubepods/burstable/pod1`,
      "Memory cgroup out of memory: Kill process 5 (x) score 1 or sacrifice child",
      "Killed process 5 (x) total-vm:4kB, anon-rss:1kB",
    ),
    [{ limitOf: "/kubepods/burstable/pod1", group, process: "x", pid: 5 }],
  );
});

Deno.test("names that processes and inner groups give themselves lead nobody astray", () => {
  const evil = `${group}/x,task_memcg=/kubepods/podother/bbbbbbbb01,task=y`;
  const line =
    `oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=c,mems_allowed=0,oom_memcg=${group},task_memcg=${evil},task=a,pid=1,uid=0,pid=77,uid=0`;
  assert.deepEqual(parse(line), [{
    limitOf: group,
    group: `${group}/x,task_memcg=/kubepods/podother/bbbbbbbb01`,
    process: "y,task=a,pid=1,uid=0",
    pid: 77,
  }]);
});

Deno.test("other lines are none, and a kill that nothing invoked is not the killer's", () => {
  assert.deepEqual(
    parse(
      "usb 1-1: new device",
      "Killed process 5 (x) total-vm:4kB",
      "Task in /a killed as a result of limit of /b",
      "",
    ),
    [],
  );
});

Deno.test("long lines that are almost a summary are read in no time", () => {
  const long = `oom-kill:constraint=A,${",oom_memcg=".repeat(2000)}${",task_memcg=".repeat(2000)}${
    ",task=".repeat(2000)
  }`;
  assert.deepEqual(parse(long.slice(0, 16_000)), []);
});
