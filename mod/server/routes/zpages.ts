import { stringify } from "yaml";
import { send, writeError } from "../respond.ts";
import type { RequestContext, RouteGroup, ServerBackend } from "../types.ts";

const warning = "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility " +
  "guarantees and is for debugging purposes only.";
const versions = ["v1beta1", "v1alpha1"];
const mediaTypes = ["application/json", "application/yaml"];

/** What the Accept header asks a page for: text, or one of its structured forms; undefined when none fits. */
export function negotiate(accept: string, kind: string): { media: "text" } | {
  media: "application/json" | "application/yaml";
  version: string;
} | undefined {
  if (accept.trim() === "") return { media: "text" };
  for (const each of accept.split(",")) {
    const [type = "", ...rest] = each.split(";").map((part) => part.trim());
    const parameters = new Map(rest.map((part) => [part.split("=", 1)[0] ?? "", part.slice(part.indexOf("=") + 1)]));
    const as = parameters.get("as");
    if (as === undefined) {
      if (type === "*/*" || type === "text/*" || type === "text/plain") return { media: "text" };
      continue;
    }
    const version = parameters.get("v") ?? "";
    const media = mediaTypes.find((known) => known === type || type === "*/*" || type === "application/*");
    const fits = as === kind && parameters.get("g") === "config.k8s.io" && versions.includes(version);
    if (media && fits) return { media: media as "application/json" | "application/yaml", version };
  }
  return undefined;
}

interface Page {
  readonly kind: "Statusz" | "Flagz";
  text(): string;
  fields(): Record<string, unknown>;
}

function answer(context: RequestContext, page: Page): void {
  const chosen = negotiate(context.request.headers.accept ?? "", page.kind);
  if (!chosen) {
    return writeError(
      context,
      406,
      `only the following media types are accepted: text/plain, and ${mediaTypes.join(", ")} with ` +
        `as=${page.kind};v=v1beta1;g=config.k8s.io`,
    );
  }
  if (chosen.media === "text") {
    const text = `\nkubelet ${page.kind.toLowerCase()}\n${warning}\n${page.text()}`;
    return send(context, 200, text, { "content-type": "text/plain; charset=utf-8" });
  }
  const { media, version } = chosen;
  const object = {
    kind: page.kind,
    apiVersion: `config.k8s.io/${version}`,
    metadata: { name: "kubelet" },
    ...page.fields(),
  };
  const name = page.kind.toLowerCase();
  send(context, 200, media === "application/json" ? `${JSON.stringify(object)}\n` : stringify(object), {
    "content-type": media,
    ...(version === "v1alpha1"
      ? { warning: `299 - "This version of the ${name} endpoint is deprecated. Please use a newer version."` }
      : {}),
  });
}

/** Hours, minutes and seconds, as far as they are needed. */
function uptime(seconds: number): string {
  const [h, m, s] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  return `${h} hr ${String(m).padStart(2, "0")} min ${String(s).padStart(2, "0")} sec`;
}

/** /statusz and /flagz (http.md section 3, rows 21 and 22). */
export function zpagesGroup(options: {
  backend: ServerBackend;
  /** The Kubernetes version, and what the agent runs on. */
  version: string;
  platform: string;
  paths: () => readonly string[];
}): RouteGroup {
  const { backend, version, platform, paths } = options;
  const { clock } = backend;
  const startedAt = clock.now();
  const status = () => ({
    startTime: `${new Date(startedAt).toISOString().slice(0, 19)}Z`,
    uptimeSeconds: Math.max(0, Math.floor((clock.now() - startedAt) / 1000)),
    // The field that every reader knows as the language's version; ours is no Go.
    goVersion: platform,
    binaryVersion: version.replace(/^v/, ""),
    emulationVersion: version.replace(/^v(\d+\.\d+).*$/, "$1"),
    paths: [...new Set(paths().map((path) => `/${path.split("/")[1] ?? ""}`))].sort(),
  });
  const statusz: Page = {
    kind: "Statusz",
    fields: status,
    text: () => {
      const { startTime, uptimeSeconds, goVersion, binaryVersion, emulationVersion, paths } = status();
      return `\nStarted: ${startTime}\nUp: ${uptime(uptimeSeconds)}\nGo version: ${goVersion}\n` +
        `Binary version: ${binaryVersion}\nEmulation version: ${emulationVersion}\nPaths: ${paths.join(" ")}\n`;
    },
  };
  const flagz: Page = {
    kind: "Flagz",
    fields: () => ({ flags: backend.flagz() }),
    text: () =>
      Object.entries(backend.flagz()).sort(([a], [b]) => a < b ? -1 : 1).map(([k, v]) => `${k}=${v}\n`).join(""),
  };
  return {
    name: "zpages",
    access: "B",
    buckets: ["statusz", "flagz"],
    routes: [
      { methods: "*", path: "/statusz", handler: (context) => answer(context, statusz) },
      { methods: "*", path: "/flagz", handler: (context) => answer(context, flagz) },
    ],
  };
}
