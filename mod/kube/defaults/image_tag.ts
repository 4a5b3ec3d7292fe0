const domainPart = "(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)";
const domain = `(?:${domainPart}(?:\\.${domainPart})*|\\[[0-9a-fA-F:]+\\])(?::[0-9]+)?`;
const pathPart = "[a-z0-9]+(?:(?:\\.|__?|-+)[a-z0-9]+)*";
const reference = new RegExp(
  `^(?:${domain}/)?${pathPart}(?:/${pathPart})*(?::(?<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?` +
    "(?:@(?<digest>[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}))?$",
);

/**
 * The pull policy of an image that states none: `Always` for the tag `latest`, written or implied, else `IfNotPresent`;
 * also `IfNotPresent` for a text that is no image reference (pkg/apis/core/v1/defaults.go).
 */
export function defaultPullPolicy(image: string): "Always" | "IfNotPresent" {
  // Longer ones are refused by every registry and runtime; the cap keeps a hostile text off the pattern.
  if (image.length > 1024 || /^[0-9a-f]{64}$/.test(image)) return "IfNotPresent";
  const groups = reference.exec(image)?.groups;
  if (!groups) return "IfNotPresent";
  const { tag, digest } = groups;
  return tag === "latest" || (tag === undefined && digest === undefined) ? "Always" : "IfNotPresent";
}
