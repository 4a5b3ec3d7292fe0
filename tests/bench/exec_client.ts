import { RuntimeService } from "../../cri/gen/runtime_pb.ts";
import { systemClock } from "../../mod/base/clock.ts";
import { print } from "../../scripts/lib/print.ts";
import { BareCri } from "../../scripts/node/bare_cri.ts";

/** What the probes and the bare calls run. */
export const execCommand = ["true"];

const periodMs = 1000;

/**
 * The least that can be done for exec probes: a call a second for each container, spread over the second, at most one
 * at a time for each. Arguments: the runtime's socket, ids. Says each second how many calls have ended; ends when
 * standard input does.
 */
async function main([socket = "", ...ids]: string[]): Promise<void> {
  using cri = new BareCri(socket);
  const ended = new AbortController();
  let calls = 0;
  const one = async (id: string, offset: number) => {
    for (let due = systemClock.now() + offset; !ended.signal.aborted;) {
      await systemClock.sleep(Math.max(0, due - systemClock.now()));
      await cri.call(RuntimeService.method.execSync, { containerId: id, cmd: execCommand, timeout: 20n }, 60_000);
      calls++;
      // on the grid, as probes are: a late call does not move those after it
      due += Math.max(1, Math.ceil((systemClock.now() - due) / periodMs)) * periodMs;
    }
  };
  const telling = (async () => {
    while (!ended.signal.aborted) {
      await systemClock.sleep(250);
      print(String(calls));
    }
  })();
  const calling = ids.map((id, i) => one(id, periodMs * i / ids.length));
  await new Response(Deno.stdin.readable).bytes();
  ended.abort();
  await Promise.all([...calling, telling]);
}

if (import.meta.main) await main(Deno.args);
