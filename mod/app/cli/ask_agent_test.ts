import assert from "@assert";
import { localSocket } from "../../server/local/name.ts";
import { askAgent, NoAgent } from "./ask_agent.ts";

async function answering(answer: Response | undefined, test: (dir: string) => Promise<void>): Promise<void> {
  const dir = await Deno.makeTempDir({ prefix: "denolet-ask-" });
  try {
    if (!answer) return await test(dir);
    const server = Deno.serve({ path: `${dir}/${localSocket}`, onListen: () => {} }, () => answer);
    await test(dir);
    await server.shutdown();
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

Deno.test("the agent's answer is read whole", async () => {
  const pods = Array.from({ length: 3000 }, (_, n) => ({ pod: { metadata: { name: `ä${n}` } } }));
  await answering(Response.json({ pods, left: 0 }), async (dir) => {
    assert.deepEqual(await askAgent(dir).pods(), { pods, left: 0 });
  });
});

Deno.test("no socket, and a socket that nobody listens on, are no agent", async () => {
  await answering(undefined, async (dir) => {
    const none = (thrown: unknown) =>
      thrown instanceof NoAgent && /no agent runs with the root directory/.test(thrown.message);
    await assert.rejects(askAgent(dir).state(), none);
    // Renamed, since closing it removes it by its name.
    const left = Deno.listen({ transport: "unix", path: `${dir}/made` });
    await Deno.rename(`${dir}/made`, `${dir}/${localSocket}`);
    left.close();
    assert.equal((await Deno.lstat(`${dir}/${localSocket}`)).isSocket, true);
    await assert.rejects(askAgent(dir).state(), none);
  });
});

Deno.test("an answer that is none is told", async () => {
  await answering(new Response("oops", { status: 500 }), async (dir) => {
    await assert.rejects(askAgent(dir).state(), /the agent answers 500 to \/state: oops/);
  });
});
