import type { Lanes } from "../mod/base/lanes.ts";
import type { RuntimeService } from "./api.ts";

/**
 * A runtime whose heavy calls, those that make and start, go in lanes: beyond a handful at once they only slow one
 * another down, in the runtime and in the kernel (measured: 50 pods come up soonest with 4 to 8 in flight). What is begun
 * is brought to its end first: containers go before sandboxes, so that in a burst of new pods the first ones run soon,
 * and a container of an old pod that must start again does not wait for all new ones.
 * @param runtime as journaledRuntime gives it; a call that waits for its lane is not in the journal yet
 */
export function lanedRuntime(runtime: RuntimeService, lanes: Lanes): RuntimeService {
  return {
    ...runtime,
    runPodSandbox: (config, handler, options) =>
      lanes.use(() => runtime.runPodSandbox(config, handler, options), options.signal),
    createContainer: (request, options) =>
      lanes.use(() => runtime.createContainer(request, options), options.signal, true),
    startContainer: (id, options) => lanes.use(() => runtime.startContainer(id, options), options.signal, true),
  };
}
