import type { Lanes } from "../mod/base/lanes.ts";
import type { RuntimeService } from "./api.ts";

/**
 * A runtime whose heavy calls, those that make and start, go in lanes: beyond a handful at once they only slow one
 * another down, in the runtime and in the kernel (measured: 50 pods come up soonest with 4 to 8 in flight). A container
 * is made and started before another sandbox is begun only as far as the order of coming has it so.
 * @param runtime as journaledRuntime gives it; a call that waits for its lane is not in the journal yet
 */
export function lanedRuntime(runtime: RuntimeService, lanes: Lanes): RuntimeService {
  return {
    ...runtime,
    runPodSandbox: (config, handler, options) =>
      lanes.use(() => runtime.runPodSandbox(config, handler, options), options.signal),
    createContainer: (request, options) => lanes.use(() => runtime.createContainer(request, options), options.signal),
    startContainer: (id, options) => lanes.use(() => runtime.startContainer(id, options), options.signal),
  };
}
