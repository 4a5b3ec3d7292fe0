import { isAborted, messageOf } from "../../../mod/base/errors.ts";
import type { Logger } from "../../../mod/base/log.ts";
import type { EventSink } from "../../../mod/kube/events.ts";
import { podFullName } from "../../../mod/kube/pod.ts";
import type { BoundPod, Secret } from "../../../mod/kube/types.ts";
import type { ObjectReader } from "../../objects/types.ts";
import { readDockercfg, readDockerConfigJson } from "./docker_config.ts";
import { RegistryKeyring } from "./registry_keyring.ts";
import type { CredentialSource, Keyring } from "./types.ts";

/** Key of each Secret type that holds pull credentials, and how its text is read. */
const secretTypes = new Map([
  ["kubernetes.io/dockerconfigjson", { key: ".dockerconfigjson", read: readDockerConfigJson }],
  ["kubernetes.io/dockercfg", { key: ".dockercfg", read: readDockercfg }],
]);

/** Credentials of a pod's pull secrets (features.md E5). A Secret that can't be read is told as an event, and left out. */
export function pullSecretKeyring(options: {
  readonly objects: Pick<ObjectReader, "secret">;
  readonly events: EventSink;
  readonly log: Logger;
}): Keyring {
  return {
    async lookup({ repository, pod, signal }) {
      const secrets = await readSecrets(options, pod, signal);
      const keyring = new RegistryKeyring();
      for (const secret of secrets) addSecret(keyring, secret);
      return keyring.lookup(repository);
    },
  };
}

async function readSecrets(
  { objects, events, log }: Parameters<typeof pullSecretKeyring>[0],
  pod: BoundPod,
  signal: AbortSignal,
): Promise<Secret[]> {
  const { namespace } = pod.metadata;
  const names = (pod.spec.imagePullSecrets ?? []).flatMap(({ name }) => name ? [name] : []);
  const failed: string[] = [];
  const read = await Promise.all(names.map(async (name) => {
    try {
      return await objects.secret(namespace, name, signal);
    } catch (thrown) {
      if (signal.aborted || isAborted(thrown)) throw thrown;
      failed.push(name);
      log.warn("a pull secret cannot be read", { pod: podFullName(pod), secret: name, error: messageOf(thrown) });
      return undefined;
    }
  }));
  if (failed.length > 0) {
    const list = names.filter((name) => failed.includes(name)).join(", ");
    const message =
      `Unable to retrieve some image pull secrets (${list}); attempting to pull the image may not succeed.`;
    events.pod({ pod, type: "Warning", reason: "FailedToRetrieveImagePullSecret", message });
  }
  return read.filter((secret) => secret !== undefined);
}

function addSecret(keyring: RegistryKeyring, { type = "", data = {}, metadata = {} }: Secret): void {
  const known = secretTypes.get(type);
  const text = known && Object.hasOwn(data, known.key) ? data[known.key] : undefined;
  if (!known || !text) return;
  const { uid = "", namespace = "", name = "" } = metadata;
  const source: CredentialSource = { kind: "secret", uid, namespace, name };
  const decoded = new TextDecoder().decode(Uint8Array.fromBase64(text));
  keyring.add(known.read(decoded, `pull secret ${namespace}/${name}`), source);
}

/** Several keyrings as one, an earlier one's credentials before a later one's. */
export function joinedKeyring(keyrings: readonly Keyring[]): Keyring {
  return {
    lookup: async (request) => (await Promise.all(keyrings.map((keyring) => keyring.lookup(request)))).flat(),
  };
}
