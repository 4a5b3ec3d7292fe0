import assert from "@assert";
import { knowsNoswap } from "./empty_dir.ts";

Deno.test("noswap is asked of kernels that know it, from 6.4 on", () => {
  const known = ["6.4.0", "6.12.3-amd64", "6.18.44-fc-v669", "7.0"];
  const unknown = ["6.3.9", "6.1.0-25-amd64", "5.15.0", "4.4.0", "", "odd"];
  assert.deepEqual(known.map(knowsNoswap), known.map(() => true));
  assert.deepEqual(unknown.map(knowsNoswap), unknown.map(() => false));
});
