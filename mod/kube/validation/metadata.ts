import type { BoundPod, Container } from "../types.ts";
import { checkLabel, checkLabels, checkQualifiedName, checkSubdomain } from "./names.ts";
import type { Problems } from "./problem.ts";

/** Bytes of all annotations together. */
const maxAnnotationBytes = 256 * 1024;
const appArmorPrefix = "container.apparmor.security.beta.kubernetes.io/";

/** Checks name, namespace, labels and annotations. */
export function checkMetadata(p: Problems, { metadata, spec }: BoundPod): void {
  checkSubdomain(p, "metadata.name", metadata.name);
  checkLabel(p, "metadata.namespace", metadata.namespace);
  p.notNegative("metadata.generation", metadata.generation);
  checkLabels(p, "metadata.labels", metadata.labels);
  metadata.finalizers?.forEach((name, i) => checkQualifiedName(p, `metadata.finalizers[${i}]`, name));
  const utf8 = new TextEncoder();
  let bytes = 0;
  for (const [key, value] of Object.entries(metadata.annotations ?? {})) {
    checkQualifiedName(p, "metadata.annotations", key.toLowerCase());
    bytes += utf8.encode(key).length + utf8.encode(value).length;
  }
  if (bytes > maxAnnotationBytes) {
    p.add("metadata.annotations", bytes, "bytes are too many", `use at most ${maxAnnotationBytes} in all`);
  }
  const containers: Container[] = [...(spec.initContainers ?? []), ...spec.containers];
  for (const [key, profile] of Object.entries(metadata.annotations ?? {})) {
    if (key.startsWith(appArmorPrefix)) {
      checkAppArmor(p, key, profile, containers, spec.securityContext?.appArmorProfile);
    }
  }
}

type Profile = NonNullable<NonNullable<Container["securityContext"]>["appArmorProfile"]>;

/** The old annotation names a container of the pod and says what the container's field says, if that is set. */
function checkAppArmor(
  p: Problems,
  key: string,
  text: string,
  containers: readonly Container[],
  podProfile: Profile | undefined,
): void {
  const at = `metadata.annotations[${key}]`;
  const container = containers.find(({ name }) => name === key.slice(appArmorPrefix.length));
  if (!container) p.add(at, text, "is for no container of the pod", "correct the container's name");
  if (!["", "runtime/default", "unconfined"].includes(text) && !text.startsWith("localhost/")) {
    p.add(at, text, "is no AppArmor profile", "use runtime/default, unconfined or localhost/<profile>");
  }
  const field = container?.securityContext?.appArmorProfile ?? podProfile;
  if (!container || !field) return;
  const expected = field.type === "Localhost"
    ? `localhost/${field.localhostProfile ?? ""}`
    : { RuntimeDefault: "runtime/default", Unconfined: "unconfined" }[field.type];
  if (expected !== undefined && text !== expected) {
    p.add(at, text, `contradicts the field, which says ${expected}`, "remove the annotation");
  }
}
