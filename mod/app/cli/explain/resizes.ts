import type { PodStatus } from "../../../kube/types.ts";
import type { Finding } from "./types.ts";
import { line, since, timeOf } from "./words.ts";

/** What holds up a resize in place, or that one is under way (conditions PodResizePending and PodResizeInProgress). */
export function resizes({ conditions = [] }: PodStatus, now: number): Finding[] {
  return conditions.flatMap(({ type, status, reason = "", message = "", lastTransitionTime }): Finding[] => {
    if (status !== "True") return [];
    const long = since(timeOf(lastTransitionTime), now);
    const said = message === "" ? "" : `: ${line(message)}`;
    if (type === "PodResizePending" && reason === "Infeasible") {
      return [{
        cause: `the resize of the pod in place can never be done on this node${said}; it goes on with what it had`,
        remedy:
          "Ask for resources that this node can give (kubectl patch --subresource resize), or make the pod anew, " +
          "elsewhere or with settings of the node that allow it.",
        rank: 0,
      }];
    }
    if (type === "PodResizePending") {
      return [{
        cause:
          `the resize of the pod in place waits${long} for room on the node${said}; the pod goes on with what it had`,
        remedy:
          "Free resources by ending other pods or resizing them, or ask for less; the agent looks again by itself, by " +
          "the pods' priority.",
        rank: 0,
      }];
    }
    if (type !== "PodResizeInProgress") return [];
    if (reason === "" && message === "") {
      return [{
        cause: `the pod is being resized in place${long}: its containers get their new resources one after another`,
        remedy: "",
        rank: 1,
      }];
    }
    return [{
      cause: `the resize of the pod in place fails${long}${reason === "" ? "" : ` (${line(reason, 80)})`}${said}`,
      remedy: /memory/i.test(message)
        ? "A memory limit cannot be set below what the container uses: let it take less, set a higher limit, or have it " +
          "restarted (resizePolicy: RestartContainer). The agent tries again by itself."
        : "Correct what the message names; when it is about the runtime itself: kubelet check. The agent tries again by itself.",
      rank: 0,
    }];
  });
}
