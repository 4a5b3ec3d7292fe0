import assert from "@assert";
import { KubeletError } from "../mod/base/errors.ts";
import { socketPath } from "./endpoint.ts";

Deno.test("a unix socket's address, or its bare path", () => {
  const cases = [
    ["unix:///run/containerd/containerd.sock", "/run/containerd/containerd.sock"],
    ["unix:/run/x.sock", "/run/x.sock"],
    ["UNIX:///run/x.sock", "/run/x.sock"],
    ["/run/x.sock", "/run/x.sock"],
    ["/run/with:colon.sock", "/run/with:colon.sock"],
  ] as const;
  for (const [endpoint, path] of cases) assert.equal(socketPath(endpoint), path, endpoint);
});

Deno.test("anything else is refused with the field, the value and the remedy", () => {
  const cases: [string, RegExp][] = [
    ["", /is empty: give the runtime's socket, as in unix:\/\/\//],
    ["tcp://127.0.0.1:3000", /scheme tcp, but only unix sockets/],
    ["npipe:////./pipe/x", /scheme npipe/],
    ["unix://run/x.sock", /not an absolute path/],
    ["run/x.sock", /not an absolute path/],
    ["unix:///a\0b", /zero byte/],
    ["/" + "x".repeat(107), /more than 107 bytes/],
    ["/" + "é".repeat(54), /more than 107 bytes/],
  ];
  for (const [endpoint, message] of cases) {
    assert.throws(() => socketPath(endpoint, "imageServiceEndpoint"), (e: KubeletError) => {
      assert.equal(e.code, "BadConfig");
      assert.match(e.message, /^imageServiceEndpoint: "/);
      assert.match(e.message, message);
      return true;
    });
  }
});
