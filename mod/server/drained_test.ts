import assert from "@assert";
import { Writable } from "node:stream";
import { drained } from "./drained.ts";

/** A stream that takes one byte and passes nothing on until it is told. */
function full(): { out: Writable; pass: () => void } {
  let pass = () => {};
  const out = new Writable({
    highWaterMark: 1,
    write: (_bytes, _encoding, taken) => void (pass = () => taken()),
  });
  assert.equal(out.write("xx"), false);
  return { out, pass: () => pass() };
}

Deno.test("waiting for a stream ends when it has passed on, closes, or is given up, and leaves no listener", async () => {
  const cases: { name: string; end: (it: ReturnType<typeof full>, control: AbortController) => void }[] = [
    { name: "passed on", end: ({ pass }) => pass() },
    { name: "closed", end: ({ out }) => void out.destroy() },
    { name: "given up", end: (_, control) => control.abort() },
  ];
  for (const { name, end } of cases) {
    const it = full();
    const control = new AbortController();
    const waiting = drained(it.out, control.signal);
    end(it, control);
    await waiting;
    assert.deepEqual([it.out.listenerCount("drain"), it.out.listenerCount("close")], [0, 0], name);
  }
});

Deno.test("waiting for a stream that was given up or closed before ends at once: it hung, with the file that was read", async () => {
  const given = full();
  await drained(given.out, AbortSignal.abort());
  const { out } = full();
  out.destroy();
  await new Promise<void>((resolve) => out.once("close", resolve));
  await drained(out, new AbortController().signal);
});
