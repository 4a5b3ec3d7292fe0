const methods = new Set(["OPTIONS", "GET", "HEAD", "POST", "PUT", "DELETE", "TRACE", "CONNECT"]);
const longRunning = new Set(["exec", "attach", "portforward", "debug"]);

/** The method label of the request metrics (http.md section 7). */
export function methodBucket(method: string): string {
  return methods.has(method) ? method : "other";
}

/** The path label: the first segment, or `metrics/<x>`, when the server has such routes; else `other`. */
export function bucketOf(path: string, buckets: ReadonlySet<string>): string {
  const [first = "", second] = path.replace(/^\//, "").split("/", 2);
  const root = first === "metrics" && second !== undefined ? `metrics/${second}` : first;
  return buckets.has(root) ? root : "other";
}

/** The long_running label. The reference's list has portforward in lower case, so its own bucket portForward is not. */
export function isLongRunning(bucket: string): boolean {
  return longRunning.has(bucket);
}
