import { createDenoHost } from "../../mod/base/deno_host.ts";
import { systemClock } from "../../mod/base/clock.ts";
import { silent } from "../../mod/base/log.ts";
import { createClients } from "../../mod/app/cluster/clients.ts";
import type { ClusterClients } from "../../mod/app/cluster/types.ts";
import { readKubeconfig } from "../../mod/kube/api/kubeconfig.ts";
import type { RequestObserver } from "../../mod/kube/api/request_observer.ts";

/** The clients of a kubeconfig, with limits of rate that no test reaches. */
export async function clientsOf(
  kubeconfig: string,
  more: { readonly observer?: RequestObserver; readonly heartbeatMs?: number } = {},
): Promise<ClusterClients & Disposable> {
  const { observer, heartbeatMs = 10_000 } = more;
  return createClients({
    kubeconfig: await readKubeconfig(createDenoHost(), kubeconfig),
    host: createDenoHost(),
    clock: systemClock,
    log: silent,
    config: {
      kubeAPIQPS: 1000,
      kubeAPIBurst: 1000,
      eventRecordQPS: 1000,
      eventBurst: 1000,
      nodeStatusUpdateFrequencyMs: heartbeatMs,
      nodeLeaseDurationSeconds: 40,
    },
    ...(observer ? { observer } : {}),
  });
}
