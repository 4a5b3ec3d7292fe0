import { systemClock } from "../../mod/base/clock.ts";
import type { Container } from "../../mod/kube/types.ts";
import { namesIn, remove } from "../../scripts/lib/files.ts";
import { complain } from "../../scripts/lib/print.ts";
import { waitFor } from "../../scripts/lib/wait.ts";
import { endPods, type Subject } from "./agent.ts";
import { cpuOf, type CpuUsed } from "./cpu.ts";
import { settle } from "./marks.ts";
import { manifest } from "./pods.ts";
import type { Figure } from "./report.ts";

/** How long the container writes, seconds. */
const writingS = 10;
const lineLength = 1000;
/** Settings of the agent: the log is rotated while it is read, and none of its files goes before it was. */
export const followConfig = {
  containerLogMaxSize: "200Mi",
  containerLogMaxFiles: 5,
  containerLogMonitorInterval: "3s",
};

/** Who follows the log: nobody for the floor. */
type Follower = "nobody" | "/containerLogs" | "kubelet logs -f";

interface Round {
  readonly lines: number;
  /** Lines that did not come, that came twice or changed, or in a wrong place. */
  readonly lost: number;
  readonly seconds: number;
  /** Of the agent, and of the command that follows. */
  readonly agentMs: CpuUsed;
  readonly followerMs: number;
}

/**
 * A container that waits for a file, then writes numbered lines as fast as it can, and goes on for a while: the mark
 * `counted` has the number of lines.
 */
function writer(name: string): Partial<Container> {
  const program = `BEGIN { pad = sprintf("%0${lineLength - 11}d", 0); until = systime() + ${writingS}
    for (i = 0; i % 1000 || systime() < until; i++) printf "%09d %s\\n", i, pad
    print i > "/marks/${name}.counted" }`;
  return {
    command: [
      "sh",
      "-c",
      `trap ': >/marks/${name}.ended; exit 0' TERM; : >/marks/${name}.runs
while [ ! -e /marks/${name}.go ]; do sleep 0.1; done
awk '${program}'; sleep 2; : >/marks/${name}.written; sleep 100000 & wait`,
    ],
    resources: { limits: { memory: "64Mi" } },
  };
}

/** Counts the lines of a file that are not the expected ones, in their order. */
export async function lostLines(path: string, expected: number): Promise<number> {
  const pad = "0".repeat(lineLength - 11);
  let next = 0, wrong = 0, rest = "";
  using file = await Deno.open(path);
  for await (const text of file.readable.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line === `${String(next).padStart(9, "0")} ${pad}`) next++;
      else {
        wrong++;
        const number = Number(line.slice(0, 9));
        // go on behind what is missing: a hole is counted by its size, not by all that follows it
        if (Number.isInteger(number) && number > next) {
          wrong += number - next - 1;
          next = number + 1;
        }
      }
    }
  }
  return wrong + (rest === "" ? 0 : 1) + Math.max(0, expected - next);
}

/** Follows the log of containers that write as fast as they can: by the server, by the command, and by nobody. */
export class FollowBench {
  constructor(
    private readonly options: {
      subject: Subject;
      nodeName: string;
      /** Of the HTTPS server. */
      port: number;
      /** Runs `kubelet`. */
      command: {
        readonly argv: readonly string[];
        /** Which agent is asked. */
        readonly flags: readonly string[];
        readonly env: Readonly<Record<string, string>>;
      };
      /** Where what was followed is kept until it was looked at. */
      directory: string;
      rounds: number;
    },
  ) {}

  async figures(): Promise<Figure[]> {
    const followers: readonly Follower[] = ["nobody", "/containerLogs", "kubelet logs -f"];
    const taken = new Map<Follower, Round[]>(followers.map((follower) => [follower, []]));
    for (let round = 1; round <= this.options.rounds; round++) {
      for (const [follower, rounds] of taken) {
        const one = await this.#round(follower, `follow-${followers.indexOf(follower)}-${round}`);
        rounds.push(one);
        complain(
          `  follow, round ${round}, ${follower}: ${
            rate(one).toFixed(0)
          } MB/s, ${one.lines} lines, ${one.lost} lost, ` +
            `agent ${one.agentMs.own.toFixed(0)} ms CPU, command ${one.followerMs.toFixed(0)} ms`,
        );
        await settle();
      }
    }
    const of = (follower: Follower) => taken.get(follower) ?? [];
    const figures: Figure[] = [{
      name: "a log of lines of 1 kB as fast as it is written, nobody follows",
      unit: "MB/s",
      values: of("nobody").map(rate),
    }, {
      name: "nobody follows: the agent's CPU for 100 MB (rotation)",
      unit: "ms",
      values: of("nobody").map((one) => one.agentMs.own / megabytes(one) * 100),
    }];
    for (const follower of followers.slice(1)) {
      const rounds = of(follower);
      const cpu = (one: Round) => (one.agentMs.own + one.followerMs) / megabytes(one) * 100;
      figures.push(
        { name: `${follower}: MB/s that come out`, unit: "MB/s", values: rounds.map(rate) },
        {
          name: `${follower}: lines lost`,
          unit: "lines",
          values: [Math.max(...rounds.map(({ lost }) => lost))],
          limit: 0,
        },
        { name: `${follower}: CPU for 100 MB, of agent and command`, unit: "ms", values: rounds.map(cpu) },
        {
          name: `${follower}: time for a MB, followed / not followed`,
          unit: "ratio",
          values: rounds.map((one, i) => rate(of("nobody")[i] ?? one) / rate(one)),
        },
      );
    }
    return figures;
  }

  async #round(follower: Follower, name: string): Promise<Round> {
    const { subject, directory } = this.options;
    const { agent, marks } = subject;
    const to = `${directory}/${name}.log`;
    const mark = (what: string) => `${marks}/${name}.${what}`;
    const marked = async (what: string) => (await namesIn(marks)).includes(`${name}.${what}`);
    await agent.putManifest(`${name}.json`, manifest(name, { directory: marks }, writer(name)));
    await waitFor(`${name} to run`, () => marked("runs"), { within: 120_000 });
    await systemClock.sleep(1_500); // the agent has seen that it runs
    const child = this.#follow(follower, name, to);
    await systemClock.sleep(2_000);
    const before = await cpuOf(agent.pid);
    await Deno.writeTextFile(mark("go"), "");
    const began = systemClock.now();
    const lines = await waitFor(`${name} to have written`, async () => {
      return await marked("counted") && Number(await Deno.readTextFile(mark("counted"))) || undefined;
    }, { within: 300_000, every: 20 });
    let at = systemClock.now();
    if (child) {
      // done when what came has the length that is to come, or nothing comes any more
      for (let size = -1, quiet = at; size < lines * lineLength && systemClock.now() - quiet < 15_000;) {
        const now = (await Deno.stat(to)).size;
        if (now !== size) [size, quiet, at] = [now, systemClock.now(), systemClock.now()];
        await systemClock.sleep(20);
      }
    }
    const after = await cpuOf(agent.pid);
    const followerMs = child && follower === "kubelet logs -f" ? (await cpuOf(child.pid)).own : 0;
    if (child) {
      child.kill("SIGTERM");
      await child.status;
    }
    const lost = child ? await lostLines(to, lines) : 0;
    await remove(to);
    await endPods(subject, [name]);
    return {
      lines,
      lost,
      seconds: (at - began) / 1000,
      agentMs: { own: after.own - before.own, all: after.all - before.all },
      followerMs,
    };
  }

  #follow(follower: Follower, name: string, to: string): Deno.ChildProcess | undefined {
    const { nodeName, port, command } = this.options;
    const pod = `${name}-${nodeName}`;
    const argv = {
      "nobody": [],
      "/containerLogs": ["curl", "-sSkN", `https://127.0.0.1:${port}/containerLogs/default/${pod}/main?follow=true`],
      "kubelet logs -f": [...command.argv, "logs", ...command.flags, "-f", pod],
    }[follower];
    if (argv.length === 0) return undefined;
    // a shell puts it into the file: what is copied by this process would be held up by it
    return new Deno.Command("/bin/sh", {
      args: ["-c", 'exec "$@" >"$TO"', "sh", ...argv],
      env: { ...command.env, TO: to },
      stdin: "null",
      stdout: "null",
    }).spawn();
  }
}

const megabytes = ({ lines }: Round) => lines * lineLength / 1e6;
const rate = (one: Round) => megabytes(one) / one.seconds;
