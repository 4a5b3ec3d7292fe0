import { create } from "@bufbuild/protobuf";
import * as pb from "../gen/runtime_pb.ts";
import type { Flavour } from "./state.ts";

/** What Status says. */
export function runtimeStatus(given: {
  verbose: boolean;
  flavour: Flavour;
  notReady: { runtime?: string; network?: string };
  handlers: readonly string[];
}): pb.StatusResponse {
  const { runtime, network } = given.notReady;
  const conditions = [
    runtime === undefined
      ? { type: "RuntimeReady", status: true }
      : { type: "RuntimeReady", status: false, reason: "ContainerdNotReady", message: runtime },
    network === undefined
      ? { type: "NetworkReady", status: true }
      : { type: "NetworkReady", status: false, reason: "NetworkPluginNotReady", message: network },
  ];
  if (given.flavour === "2") conditions.push({ type: "ContainerdHasNoDeprecationWarnings", status: true });
  return create(pb.StatusResponseSchema, {
    status: { conditions },
    info: given.verbose ? { config: "{}", golang: '"go1.24"', lastCNILoadStatus: "OK" } : {},
    ...(given.flavour === "1.6" ? {} : {
      runtimeHandlers: [...given.handlers].sort().map((name) => ({
        name,
        features: { recursiveReadOnlyMounts: true, userNamespaces: true },
      })),
      features: { supplementalGroupsPolicy: true },
    }),
  });
}
