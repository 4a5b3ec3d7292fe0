import { FakeClock } from "../../mod/base/fake_clock.ts";
import { seeded } from "../../mod/base/random.ts";
import { grpcCode, RuntimeError } from "../api.ts";
import { type Harness, image, programOf, unreachable } from "../contract/scene.ts";
import { runContract } from "../contract_test_suite.ts";
import { FakeRuntime } from "./runtime.ts";
import type { Flavour } from "./state.ts";

function harness(flavour: Flavour): Harness {
  const clock = new FakeClock();
  const runtime = new FakeRuntime({
    clock,
    random: seeded(7),
    flavour,
    programs: (config) => programOf(config.command),
    images: [image.main, image.spare].map((name) => ({ name, imported: true })),
    registry: (reference) => {
      if (reference !== unreachable) return {};
      const words = `failed to pull and unpack image "${reference}": dial tcp: connect: connection refused`;
      return { ms: 50, error: new RuntimeError("PullImage", grpcCode.Unknown, words, { target: reference }) };
    },
  });
  return {
    runtime,
    images: runtime,
    flavour,
    directory: "/var/log/pods/contract",
    now: () => clock.now(),
    pass: (ms) => clock.advance(ms),
    async restart(ms) {
      runtime.restart(ms);
      await clock.advance(ms);
    },
    async settle(call) {
      let over = false;
      const done = () => over = true;
      call.then(done, done);
      await clock.advance(0);
      while (!over && await clock.step());
      return await call;
    },
  };
}

for (const flavour of ["1.6", "2"] as const) {
  Deno.test(`the fake of containerd ${flavour} keeps the contract`, (t) => runContract(t, harness(flavour)));
}
