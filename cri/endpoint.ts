import { KubeletError } from "../mod/base/errors.ts";

/** Longest path of a unix socket on Linux: sun_path less its closing zero. */
const longestPath = 107;

/**
 * Reads `containerRuntimeEndpoint` (or `imageServiceEndpoint`): `unix:///run/x.sock`, or a bare path as the kubelet
 * accepts it. Returns the socket's path; throws BadConfig that names the field and the remedy for anything else.
 */
export function socketPath(endpoint: string, field = "containerRuntimeEndpoint"): string {
  const bad = (why: string) =>
    new KubeletError("BadConfig", `${field}: ${JSON.stringify(endpoint.slice(0, 200))} ${why}`);
  const example = "give the runtime's socket, as in unix:///run/containerd/containerd.sock";
  if (endpoint === "") throw bad(`is empty: ${example}`);
  const scheme = /^([A-Za-z][A-Za-z0-9+.-]*):/.exec(endpoint)?.[1]?.toLowerCase();
  if (scheme !== undefined && scheme !== "unix") {
    throw bad(`has scheme ${scheme}, but only unix sockets are supported on Linux: ${example}`);
  }
  // `unix://run/x.sock` has two slashes too few or one too many: what was meant is not to be guessed.
  const path = scheme === undefined ? endpoint : endpoint.slice("unix:".length).replace(/^\/\//, "");
  if (!path.startsWith("/")) throw bad(`is not an absolute path: ${example}`);
  if (path.includes("\0")) throw bad(`has a zero byte in it: ${example}`);
  if (new TextEncoder().encode(path).length > longestPath) {
    throw bad(`is a path of more than ${longestPath} bytes, which no unix socket can have`);
  }
  return path;
}
