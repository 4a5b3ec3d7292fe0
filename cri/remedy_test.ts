import assert from "@assert";
import { grpcCode } from "./api.ts";
import { explain, statusOf } from "./remedy.ts";

Deno.test("what went wrong with the socket is told with its remedy", () => {
  const { Unavailable, Unimplemented, Unknown } = grpcCode;
  const unsent = "No connection established. Last error: Error: connect ";
  const cases: [number, string, RegExp][] = [
    [Unavailable, `${unsent}ENOENT /run/x.sock`, /socket \/run\/x.sock does not exist: start the container runtime/],
    [Unavailable, `${unsent}EACCES /run/x.sock`, /no permission to use the socket \/run\/x.sock: run as root/],
    [Unavailable, `${unsent}ECONNREFUSED /run/x.sock`, /nobody listens .* runtime is down; start it/],
    [Unavailable, `${unsent}EPROTOTYPE /run/x.sock`, /not a stream socket: correct the endpoint/],
    [Unavailable, "Connection dropped", /^Connection dropped$/],
    [
      Unimplemented,
      "unknown service runtime.v1.RuntimeService",
      /does not serve CRI v1 .* enable the runtime's CRI plugin/,
    ],
    [
      Unimplemented,
      "unknown method RuntimeConfig for service runtime.v1.RuntimeService",
      /^unknown method RuntimeConfig/,
    ],
    [Unknown, "open /x: ENOENT", /^open \/x: ENOENT$/],
  ];
  for (const [status, details, expected] of cases) assert.match(explain(status, details, "/run/x.sock"), expected);
});

Deno.test("a socket that breaks in a call is the runtime's loss, not an internal error", () => {
  const { Internal, Unavailable, NotFound } = grpcCode;
  const broke = "Received RST_STREAM with code 2 triggered by internal client error: ";
  const cases: [number, string, number][] = [
    [Internal, `${broke}write EPIPE`, Unavailable],
    [Internal, `${broke}read ECONNRESET`, Unavailable],
    [Internal, `${broke}out of memory`, Internal],
    [Internal, "disk full: EPIPE", Internal],
    [NotFound, `${broke}write EPIPE`, NotFound],
  ];
  for (const [status, details, expected] of cases) assert.equal(statusOf(status, details), expected, details);
});
