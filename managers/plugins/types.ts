/** Kinds of plugins that register themselves by a socket in the watched directory. */
export type PluginType = "CSIPlugin" | "DevicePlugin" | "DRAPlugin";

/** What a plugin tells of itself. */
export interface PluginInfo {
  /** Of a device plugin its resource, of a CSI or DRA plugin its driver. */
  readonly name: string;
  /** The socket on which it serves; the one it registered by, unless it tells another. */
  readonly endpoint: string;
  /** Versions of its API that it supports. */
  readonly versions: readonly string[];
}

/** Takes plugins of one type. Of one plugin at a time one call runs. */
export interface PluginHandler {
  /** Throws when the plugin can't be used; its text is told to the plugin. */
  validate(plugin: PluginInfo): void;
  /** Takes the plugin into use. A rejection is told to the plugin, and it is tried again. */
  register(plugin: PluginInfo, signal: AbortSignal): Promise<void>;
  /** The plugin's socket has gone, or another one has come under its name. */
  deregister(plugin: PluginInfo): void | Promise<void>;
}
