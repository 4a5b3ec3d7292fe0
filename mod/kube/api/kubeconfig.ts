import { posix } from "node:path";
import { KubeletError, messageOf } from "../../base/errors.ts";
import type { Host } from "../../base/host.ts";
import { isMissing } from "../../base/host_error.ts";
import { parseText, type Tree, type TreeMap } from "../yaml_tree.ts";

/** PEM text that stands in the file itself, or the absolute path of a file that may change. */
export type PemSource = { readonly text: string } | { readonly path: string };

/** A program that gives credentials (client.authentication.k8s.io). */
export interface ExecConfig {
  readonly apiVersion: string;
  /** A path, or a name that is looked for in PATH. */
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly installHint: string;
  /** Whether the program is told of the cluster. */
  readonly provideClusterInfo: boolean;
}

/** The server of a kubeconfig's current context. */
export interface KubeconfigCluster {
  /** Scheme, host, and a path if the API is below one; no slash at the end. */
  readonly server: string;
  /** Whom to trust; the machine's own authorities when not given. */
  readonly certificateAuthority?: PemSource;
  readonly insecureSkipTlsVerify: boolean;
  /** The name that the server's certificate is for, when it is not the URL's. */
  readonly tlsServerName?: string;
  readonly proxyUrl?: string;
}

/** How the user of the current context shows who it is; several at once are possible. */
export interface KubeconfigUser {
  readonly certificate?: PemSource;
  readonly key?: PemSource;
  readonly token?: string;
  /** Absolute; read again and again. Goes before `token`. */
  readonly tokenFile?: string;
  readonly username?: string;
  readonly password?: string;
  readonly exec?: ExecConfig;
}

/** What the current context of a kubeconfig comes to. */
export interface Kubeconfig {
  /** The file, for messages. */
  readonly path: string;
  readonly cluster: KubeconfigCluster;
  readonly user: KubeconfigUser;
}

const limits = { bytes: 4 * 1024 * 1024, depth: 32, nodes: 20_000 };

/**
 * Reads a kubeconfig and what its current context names. Files that it names are not read. Throws a KubeletError
 * (BadConfig) that names file and field when it cannot be used; code Host with a missing file as its cause.
 */
export async function readKubeconfig(host: Pick<Host, "readBytes">, path: string): Promise<Kubeconfig> {
  let bytes: Uint8Array;
  try {
    bytes = await host.readBytes(path, limits.bytes + 1);
  } catch (thrown) {
    const why = isMissing(thrown) ? "there is no such file" : messageOf(thrown);
    throw new KubeletError("BadConfig", `kubeconfig ${path} can't be read: ${why}; check --kubeconfig`, {
      cause: thrown,
    });
  }
  return parseKubeconfig(bytes, path);
}

/** As `readKubeconfig`, of text that was read from `path`. */
export function parseKubeconfig(text: string | Uint8Array, path: string): Kubeconfig {
  const { tree } = parseText(text, { what: `kubeconfig ${path}`, code: "BadConfig", limits });
  const root = new Fields(path, "", tree);
  const context = current(root);
  const clusterName = context.text("cluster");
  if (!clusterName) throw context.wrong("cluster", "is missing; name one of clusters");
  const cluster = clusterOf(named(root, "clusters", clusterName, "cluster"));
  const userName = context.text("user");
  const user = userName ? userOf(named(root, "users", userName, "user")) : {};
  return { path, cluster, user };
}

/** A map of the file, with the place where it stands. */
class Fields {
  readonly #map: TreeMap;

  constructor(readonly path: string, readonly at: string, tree: Tree) {
    if (!(tree instanceof Map)) throw this.wrong("", "is no object");
    this.#map = tree;
  }

  wrong(field: string, problem: string): KubeletError {
    const place = [this.at, field].filter((part) => part !== "").join(".");
    return new KubeletError("BadConfig", `kubeconfig ${this.path}: ${place === "" ? "the file" : place} ${problem}`);
  }

  get(field: string): Tree | undefined {
    return this.#map.get(field) ?? undefined;
  }

  text(field: string): string | undefined {
    const value = this.get(field);
    if (value === undefined || value === "") return undefined;
    if (typeof value !== "string") throw this.wrong(field, "is no text; put it in quotes");
    return value;
  }

  flag(field: string): boolean {
    const value = this.get(field) ?? false;
    if (typeof value !== "boolean") throw this.wrong(field, "must be true or false");
    return value;
  }

  list(field: string): readonly Tree[] {
    const value = this.get(field) ?? [];
    if (!Array.isArray(value)) throw this.wrong(field, "is no list");
    return value;
  }

  map(field: string): Fields {
    return new Fields(
      this.path,
      [this.at, field].filter((part) => part !== "").join("."),
      this.get(field) ?? new Map(),
    );
  }

  /** A path; a relative one begins at the directory of the kubeconfig. */
  file(field: string): string | undefined {
    const value = this.text(field);
    return value === undefined ? undefined : posix.resolve(posix.dirname(this.path), value);
  }

  /** PEM from FIELD-data (base64) or else from the file that FIELD names. */
  pem(field: string): PemSource | undefined {
    const data = this.text(`${field}-data`);
    if (data === undefined) {
      const path = this.file(field);
      return path === undefined ? undefined : { path };
    }
    try {
      return { text: new TextDecoder().decode(Uint8Array.fromBase64(data)) };
    } catch (thrown) {
      if (thrown instanceof SyntaxError) throw this.wrong(`${field}-data`, "is no base64 text");
      throw thrown;
    }
  }
}

function current(root: Fields): Fields {
  const name = root.text("current-context");
  if (name !== undefined) return named(root, "contexts", name, "context");
  throw root.wrong("current-context", "is missing; name one of contexts");
}

/** The entry of a list of `{name, <field>: …}`. */
function named(root: Fields, list: string, name: string, field: string): Fields {
  const entries = root.list(list);
  const at = entries.findIndex((entry) => entry instanceof Map && entry.get("name") === name);
  const entry = entries[at];
  if (entry === undefined) throw root.wrong(list, `has no entry named ${JSON.stringify(name)}`);
  return new Fields(root.path, `${list}[${at}]`, entry).map(field);
}

function clusterOf(fields: Fields): KubeconfigCluster {
  const server = fields.text("server");
  if (server === undefined) throw fields.wrong("server", "is missing; give the URL of the API server");
  const url = URL.parse(server.includes("://") ? server : `https://${server}`);
  if (!url || !/^https?:$/.test(url.protocol)) throw fields.wrong("server", `is no http(s) URL: ${server}`);
  if (url.username || url.search || url.hash) {
    throw fields.wrong("server", "must hold no user, query or fragment");
  }
  const insecureSkipTlsVerify = fields.flag("insecure-skip-tls-verify");
  const certificateAuthority = fields.pem("certificate-authority");
  if (insecureSkipTlsVerify && certificateAuthority) {
    throw fields.wrong("insecure-skip-tls-verify", "and certificate-authority exclude each other; give one of them");
  }
  const proxyUrl = fields.text("proxy-url");
  const proxy = proxyUrl === undefined ? undefined : URL.parse(proxyUrl);
  if (proxyUrl !== undefined && (!proxy || !/^(https?|socks5h?):$/.test(proxy.protocol))) {
    throw fields.wrong("proxy-url", `is no http, https or socks5 URL: ${proxyUrl}`);
  }
  const tlsServerName = fields.text("tls-server-name");
  return {
    server: `${url.origin}${url.pathname}`.replace(/\/+$/, ""),
    insecureSkipTlsVerify,
    ...(certificateAuthority === undefined ? {} : { certificateAuthority }),
    ...(tlsServerName === undefined ? {} : { tlsServerName }),
    ...(proxyUrl === undefined ? {} : { proxyUrl }),
  };
}

function userOf(fields: Fields): KubeconfigUser {
  const certificate = fields.pem("client-certificate");
  const key = fields.pem("client-key");
  if ((certificate === undefined) !== (key === undefined)) {
    throw fields.wrong(certificate ? "client-key" : "client-certificate", "is missing: the two go together");
  }
  for (const field of ["auth-provider", "as", "as-groups", "as-uid", "as-user-extra"]) {
    if (fields.get(field) !== undefined) {
      throw fields.wrong(field, "is not supported; use a certificate, a token or an exec plugin");
    }
  }
  const token = fields.text("token");
  const tokenFile = fields.file("tokenFile");
  const username = fields.text("username");
  const password = fields.text("password");
  const exec = fields.get("exec") === undefined ? undefined : execOf(fields.map("exec"));
  if (exec && (token !== undefined || tokenFile !== undefined || certificate || username !== undefined)) {
    throw fields.wrong("exec", "and other credentials exclude each other; keep one of them");
  }
  return {
    ...(certificate && key ? { certificate, key } : {}),
    ...(token === undefined ? {} : { token }),
    ...(tokenFile === undefined ? {} : { tokenFile }),
    ...(username === undefined ? {} : { username, password: password ?? "" }),
    ...(exec ? { exec } : {}),
  };
}

const execVersions = ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"];

function execOf(fields: Fields): ExecConfig {
  const apiVersion = fields.text("apiVersion");
  if (apiVersion === undefined || !execVersions.includes(apiVersion)) {
    throw fields.wrong("apiVersion", `must be ${execVersions.join(" or ")}`);
  }
  const command = fields.text("command");
  if (command === undefined) throw fields.wrong("command", "is missing; give the path of the program");
  const mode = fields.text("interactiveMode");
  if (mode === "Always") throw fields.wrong("interactiveMode", "is Always, but nobody is there to be asked");
  const args = fields.list("args").map((arg) => {
    if (typeof arg !== "string") throw fields.wrong("args", "has what is no text; put it in quotes");
    return arg;
  });
  const env = fields.list("env").map((entry, at) => {
    const one = new Fields(fields.path, `${fields.at}.env[${at}]`, entry);
    const name = one.text("name");
    if (name === undefined) throw one.wrong("name", "is missing");
    return [name, one.text("value") ?? ""] as const;
  });
  return {
    apiVersion,
    // What has a slash is a file, relative to the kubeconfig; a bare name is looked for in PATH.
    command: command.includes("/") ? posix.resolve(posix.dirname(fields.path), command) : command,
    args,
    env: Object.fromEntries(env),
    installHint: fields.text("installHint") ?? "",
    provideClusterInfo: fields.flag("provideClusterInfo"),
  };
}

/** Every file that the agent reads because a kubeconfig names it, and the program that it runs. */
export function namedByKubeconfig({ cluster, user }: Kubeconfig): { files: string[]; programs: string[] } {
  const pems = [cluster.certificateAuthority, user.certificate, user.key];
  return {
    files: [
      ...pems.flatMap((source) => source && "path" in source ? [source.path] : []),
      ...(user.tokenFile === undefined ? [] : [user.tokenFile]),
    ],
    programs: user.exec ? [user.exec.command] : [],
  };
}
