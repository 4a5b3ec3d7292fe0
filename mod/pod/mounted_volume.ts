/** A volume that is set up and can be mounted into containers. */
export interface MountedVolume {
  readonly name: string;
  /** The path on the node that containers mount; a directory, file or device. */
  readonly hostPath: string;
  /** True when the volume itself is read-only whatever the mount says. */
  readonly readOnly: boolean;
  /** True when the runtime should relabel it for SELinux. */
  readonly selinuxRelabel: boolean;
  /** Set for image volumes: the runtime mounts this image instead of a host path. */
  readonly image?: string;
}
