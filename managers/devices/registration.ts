import { posix } from "node:path";
import { KubeletError, messageOf } from "../../mod/base/errors.ts";
import { served, serveGrpc } from "../../mod/base/grpc_server.ts";
import type { Host } from "../../mod/base/host.ts";
import type { Logger } from "../../mod/base/log.ts";
import { Registration } from "../../mod/kube/gen/plugins/device_plugin_pb.ts";
import type { PluginHandler, PluginInfo } from "../plugins/types.ts";
import { isExtendedResourceName } from "./names.ts";

/** The version of the API that plugins have to speak. */
const version = "v1beta1";
const socketName = "kubelet.sock";

export interface RegistrationOptions {
  /** `<root>/device-plugins`; plugins have their own sockets there. */
  readonly dir: string;
  readonly host: Pick<Host, "mkdir" | "readDir" | "remove">;
  readonly plugins: { connect(resource: string, path: string): Promise<void>; disconnect(resource: string): void };
  readonly log: Logger;
  /** Told of each plugin that asks to be used, before it is known whether it can be. */
  readonly onRequest?: ((resource: string) => void) | undefined;
}

/** Where device plugins register themselves (features.md G1). */
export class DeviceRegistration {
  readonly #o: RegistrationOptions;
  #fault: string | undefined;

  constructor(options: RegistrationOptions) {
    this.#o = options;
  }

  /** Why no plugin can register, for /healthz/device-plugin; undefined when it can. */
  get fault(): string | undefined {
    return this.#fault;
  }

  /**
   * Serves until the signal aborts. The sockets of an earlier life are removed first, by which plugins notice that they
   * have to register again. An agent that can't have its socket goes on without device plugins; that is logged.
   */
  async run(signal: AbortSignal): Promise<void> {
    const { dir, host, log } = this.#o;
    const path = `${dir}/${socketName}`;
    try {
      await host.mkdir(dir, { mode: 0o750 });
      for (const { name, kind } of await host.readDir(dir)) {
        if (kind === "socket") await host.remove(`${dir}/${name}`);
      }
      const methods = [served(Registration.method.register, (request) => this.#register(request))];
      await serveGrpc({ path, methods, log, signal });
    } catch (thrown) {
      if (signal.aborted) return;
      this.#fault = "device registration error: device plugin registration gRPC server failed and no device plugins " +
        `can register: ${messageOf(thrown)}`;
      log.error("device plugins cannot register", { socket: path, error: messageOf(thrown) });
    }
  }

  async #register(request: { version: string; endpoint: string; resourceName: string }): Promise<object> {
    const { resourceName: resource, endpoint } = request;
    const { dir, plugins, log } = this.#o;
    this.#o.onRequest?.(resource);
    try {
      if (request.version !== version) {
        throw new KubeletError(
          "BadConfig",
          `requested API version ${JSON.stringify(request.version)} is not supported by kubelet. ` +
            `Supported version is ["${version}"]`,
        );
      }
      checkName(resource);
      await plugins.connect(resource, posix.join(dir, endpoint));
      return {};
    } catch (thrown) {
      log.warn("a device plugin cannot be used", { resource, endpoint, error: messageOf(thrown) });
      throw thrown;
    }
  }
}

function checkName(resource: string): void {
  if (!isExtendedResourceName(resource)) {
    throw new KubeletError("BadConfig", `the ResourceName ${JSON.stringify(resource)} is invalid`);
  }
}

/** Takes device plugins that register themselves by the watched directory. */
export function devicePluginHandler(plugins: RegistrationOptions["plugins"]): PluginHandler {
  return {
    validate({ name, versions }: PluginInfo): void {
      if (!versions.includes(version)) {
        throw new KubeletError(
          "BadConfig",
          `manager version, ${version}, is not among plugin supported versions [${versions.join(" ")}]`,
        );
      }
      try {
        checkName(name);
      } catch (thrown) {
        throw new KubeletError("BadConfig", `invalid name of device plugin socket: ${messageOf(thrown)}`);
      }
    },
    register: ({ name, endpoint }) => plugins.connect(name, endpoint),
    deregister: ({ name }) => plugins.disconnect(name),
  };
}
