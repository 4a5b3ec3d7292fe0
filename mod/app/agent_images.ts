import type { ImageService } from "../../cri/api.ts";
import { joinedKeyring } from "../../managers/images/credentials/keyring.ts";
import { nodeConfigKeyring } from "../../managers/images/credentials/node_config.ts";
import { providersKeyring } from "../../managers/images/credentials/provider.ts";
import { PullRecords, verificationRule } from "../../managers/images/credentials/pull_records.ts";
import { createImageManager } from "../../managers/images/manager.ts";
import type { AgentOptions } from "./agent_types.ts";

/** Remembers who has pulled which image; undefined when nobody must prove anything (feature gate). */
export function makePullRecords(o: AgentOptions, images: ImageService): PullRecords | undefined {
  const { config, host, clock, log, flags } = o;
  if (o.gates?.enabled("KubeletEnsureSecretPulledImages") === false) return undefined;
  return new PullRecords({
    host,
    clock,
    log,
    dir: `${flags.rootDir}/image_manager`,
    rule: verificationRule(
      config.imagePullCredentialsVerificationPolicy,
      config.preloadedImagesVerificationAllowlist,
    ),
    listImages: (signal) => images.listImages({ signal }),
    onChecked: (result) => o.meter?.security.checkedImage(result),
    onCounts: (counts) => o.meter?.security.pullRecords(counts),
    capacity: {
      intents: Math.min(2 * Math.max(config.maxPods, config.maxParallelImagePulls ?? 0), 1024),
      records: Math.min(5 * config.maxPods, 2000),
    },
  });
}

/** Pulls images by this node's settings, with the credentials that pods, the node and plugins have. */
export function makeImages(
  o: AgentOptions,
  images: ImageService,
  records: PullRecords | undefined,
): ReturnType<typeof createImageManager> {
  const { host, clock, log, events, config, flags, credentialProviders: providers } = o;
  if (providers) o.meter?.security.pluginConfiguration(providers.hash);
  return createImageManager({
    images,
    clock,
    log,
    events,
    onEnsured: (image) => o.meter?.work.ensuredImage(image),
    pulls: o.meter?.starts,
    serialize: config.serializeImagePulls,
    maxParallel: config.maxParallelImagePulls,
    qps: config.registryPullQPS,
    burst: config.registryBurst,
    keyring: joinedKeyring([
      ...o.cluster?.keyring ? [o.cluster.keyring] : [],
      nodeConfigKeyring({ host, clock, log, rootDir: flags.rootDir }),
      ...providers
        ? [providersKeyring({
          ...providers,
          host,
          clock,
          log,
          accounts: o.cluster?.serviceAccounts,
          onRun: (plugin, seconds, failed) => o.meter?.security.plugin(plugin, seconds, failed),
        })]
        : [],
    ]),
    records,
  });
}
