import { KubeletError } from "../../mod/base/errors.ts";
import type { ProbeOutcome } from "./outcome.ts";
import type { HttpGet, HttpGetCall } from "./types.ts";

/**
 * Judges an HTTP GET: 200–299 is success, 300–399 (a redirect that was not followed) success with a warning, all
 * else and no reply at all failure (runtime-contract.md section 18). The body of a failure is never shown.
 */
export async function httpProbe(get: HttpGet, call: Omit<HttpGetCall, "purpose">): Promise<ProbeOutcome> {
  const reply = await get({ ...call, purpose: "probe" });
  if (!reply.ok) {
    if (reply.stage === "request") return { result: "failure", output: reply.message };
    throw new KubeletError("Probe", reply.message);
  }
  const { status, body } = reply;
  if (status >= 200 && status < 300) return { result: "success", output: body };
  if (status >= 300 && status < 400) {
    return { result: "warning", output: `Probe terminated redirects, Response body: ${body}` };
  }
  return { result: "failure", output: `HTTP probe failed with statuscode: ${status}` };
}
