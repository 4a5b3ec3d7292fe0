import type { FakeApi } from "../../mod/kube/api/fake/fake_api.ts";
import { resources } from "../../mod/kube/api/resources.ts";
import type { BoundPod, ConfigMap, Container, Pod, Secret, Volume } from "../../mod/kube/types.ts";
import type { Dice } from "./dice.ts";
import type { SimHost } from "./sim_host.ts";
import { rootDir } from "./world.ts";

/** The objects that pods may refer to; few, so that pods share them. */
const secrets = ["s1", "s2"] as const;
const configMaps = ["m1", "m2"] as const;
const namespace = "default";

/** Secrets and ConfigMaps of the simulated cluster, the pods that show them, and whether what they show is true. */
export class SimObjects {
  readonly #api: FakeApi;
  readonly #dice: Dice;
  #count = 0;

  constructor(api: FakeApi, dice: Dice) {
    this.#api = api;
    this.#dice = dice;
    api.create(resources.serviceAccounts, { metadata: { name: "default", namespace } });
  }

  #data(big: boolean): Record<string, string> {
    const data = { key: `value ${++this.#count}` };
    // As much as an object may hold.
    return big ? { ...data, big: "x".repeat(1_000_000) } : data;
  }

  /** Makes or changes one of the objects, or deletes it; tells what was done. */
  change(): string {
    const dice = this.#dice;
    const kind = dice.pick(["secret", "configMap"] as const);
    const name = dice.pick(kind === "secret" ? secrets : configMaps);
    const resource = kind === "secret" ? resources.secrets : resources.configMaps;
    if (dice.chance(0.2)) {
      this.#api.remove(resource, { name, namespace });
      return `${kind} ${name} is deleted`;
    }
    const big = dice.chance(0.1);
    this.#put(kind, name, this.#data(big));
    return `${big ? "1 MB in " : ""}${kind} ${name}`;
  }

  #put(kind: "secret" | "configMap", name: string, data: Record<string, string>): void {
    const metadata = { name, namespace };
    if (kind === "configMap") this.#api.put<ConfigMap>(resources.configMaps, { metadata, data });
    else {
      const coded = Object.fromEntries(Object.entries(data).map(([key, text]) => [key, btoa(text)]));
      this.#api.put<Secret>(resources.secrets, { metadata, data: coded });
    }
  }

  /** Makes what is missing, as pods that need it would otherwise wait for ever. */
  complete(): void {
    for (const name of secrets) {
      if (!this.#api.get(resources.secrets, { name, namespace })) this.#put("secret", name, this.#data(false));
    }
    for (const name of configMaps) {
      if (!this.#api.get(resources.configMaps, { name, namespace })) this.#put("configMap", name, this.#data(false));
    }
  }

  /** A pod that shows some of the objects. */
  equip(pod: Pod): Pod {
    const { spec } = pod;
    const dice = this.#dice;
    if (!spec || dice.chance(0.4)) return pod;
    const optional = dice.chance(0.3) ? { optional: true } : {};
    const volumes = ([
      { name: "secret", secret: { secretName: dice.pick(secrets), ...optional } },
      { name: "map", configMap: { name: dice.pick(configMaps), ...optional } },
      {
        name: "all",
        projected: {
          sources: [
            { serviceAccountToken: { path: "token" } },
            { secret: { name: dice.pick(secrets), items: [{ key: "key", path: "below/secret" }], ...optional } },
          ],
        },
      },
    ] satisfies Volume[]).filter(() => dice.chance(0.5));
    const [first, ...more] = spec.containers;
    if (!first) return pod;
    const env = dice.chance(0.5)
      ? [...first.env ?? [], {
        name: "FROM",
        valueFrom: { configMapKeyRef: { name: dice.pick(configMaps), key: "key", ...optional } },
      }]
      : first.env;
    const mounted: Container = {
      ...first,
      ...(env ? { env } : {}),
      volumeMounts: [
        ...first.volumeMounts ?? [],
        ...volumes.map(({ name }) => ({ name, mountPath: `/objects/${name}` })),
      ],
    };
    return {
      ...pod,
      spec: {
        ...spec,
        serviceAccountName: "default",
        containers: [mounted, ...more],
        volumes: [...spec.volumes ?? [], ...volumes],
      },
    };
  }

  /** What a pod's volumes do not show as the API server has it. */
  problems({ metadata, spec }: BoundPod, host: SimHost, now: number): string[] {
    const problems: string[] = [];
    const shown = (kind: string, path: string) =>
      host.text(`${rootDir}/pods/${metadata.uid}/volumes/kubernetes.io~${kind}/${path}`);
    const check = (what: string, is: string | undefined, want: string | undefined) => {
      if (is !== want) problems.push(`${metadata.name}: ${what} is ${is?.slice(0, 40)}, not ${want?.slice(0, 40)}`);
    };
    const secretText = (name = "", key: string) => {
      const coded = this.#api.get<Secret>(resources.secrets, { name, namespace })?.data?.[key];
      return coded && atob(coded);
    };
    for (const { name, secret, configMap, projected } of spec.volumes ?? []) {
      for (const key of ["key", "big"]) {
        if (secret) check(`${name}/${key}`, shown("secret", `${name}/${key}`), secretText(secret.secretName, key));
        const map = configMap?.name;
        if (map === undefined) continue;
        const want = this.#api.get<ConfigMap>(resources.configMaps, { name: map, namespace })?.data?.[key];
        check(`${name}/${key}`, shown("configmap", `${name}/${key}`), want);
      }
      if (!projected) continue;
      const secretName = projected.sources?.[1]?.secret?.name;
      check(`${name}/below/secret`, shown("projected", `${name}/below/secret`), secretText(secretName, "key"));
      const token = shown("projected", `${name}/token`);
      const known = this.#api.tokens.find((one) => one.token === token);
      if (!known) problems.push(`${metadata.name}: its token ${token} is none`);
      else if (known.expires < now) problems.push(`${metadata.name}: its token has expired`);
    }
    return problems;
  }
}
