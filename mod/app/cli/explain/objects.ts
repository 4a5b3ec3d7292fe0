/** What to do about a Secret, ConfigMap or token that a pod needs and has not got; undefined when it is not about one. */
export function objectRemedy(message: string): string | undefined {
  const missing = /\b(secret|configmap) "([^"]+)" not found/.exec(message);
  if (missing) {
    const [, word = "", name = ""] = missing;
    const kind = word === "secret" ? "Secret" : "ConfigMap";
    return `Make the ${kind} ${name} in the pod's namespace, or mark the reference optional; the agent notices at once.`;
  }
  const key = /couldn't find key (\S+) in (Secret|ConfigMap) (\S+)/.exec(message);
  if (key) {
    const [, name = "", kind = "", object = ""] = key;
    return `Add the key ${name} to the ${kind} ${object}, correct its name in the pod, or mark it optional.`;
  }
  if (/references non-existent (secret|config) key/.test(message)) {
    return "Add the key to the object that the volume shows, correct items in the pod, or mark the volume optional.";
  }
  if (/failed to fetch token/.test(message)) {
    return "Check that the pod's service account is there, and that the node may ask for its tokens.";
  }
  if (/failed to sync (secret|configmap) cache|services have not yet been read/.test(message)) {
    return "Check that the node reaches the API server, and that the server knows the pod to be on this node; the agent tries again by itself.";
  }
  return undefined;
}
