/** Facts of the package's control file. */
export interface ControlFacts {
  /** Version of Debian's kind. */
  readonly version: string;
  readonly architecture: string;
  /** Room that its files take, in KiB. */
  readonly installedKiB: number;
}

/** The version of the package: the Kubernetes version it stands in for, and the agent's own. */
export function debVersion(kubernetesVersion: string, own: string): string {
  const version = `${kubernetesVersion.replace(/^v/, "")}+denolet${own}`;
  if (!/^\d[A-Za-z0-9.+~]*$/.test(version)) throw new Error(`${version} is no version that Debian takes`);
  return version;
}

/** Debian's name of an architecture that Deno names. */
export function debArchitecture(arch: string): string {
  const names: Record<string, string> = { x86_64: "amd64", aarch64: "arm64" };
  const name = Object.hasOwn(names, arch) ? names[arch] : undefined;
  if (name === undefined) throw new Error(`no Debian architecture is known for ${arch}`);
  return name;
}

/** The package's control file. */
export function controlFile({ version, architecture, installedKiB }: ControlFacts): string {
  return `Package: denolet
Version: ${version}
Architecture: ${architecture}
Maintainer: denolet <denolet@localhost>
Installed-Size: ${installedKiB}
Depends: coreutils, libc6 (>= 2.31), libgcc-s1, mount, procps
Recommends: containerd | container-runtime
Suggests: uidmap
Provides: kubelet
Conflicts: kubelet
Replaces: kubelet
Section: admin
Priority: optional
Description: Kubernetes node agent
 Takes the flags and the configuration file of the Kubernetes kubelet, runs as a
 process of that name, and is meant to replace it on a node. It works with any
 container runtime that speaks the Container Runtime Interface, such as
 containerd.
 .
 Without an API server it runs the pods of a directory of manifests.
`;
}

/** The package's copyright file, machine-readable. */
export function copyrightFile(): string {
  return `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: denolet

Files: *
Copyright: the denolet authors
License: Apache-2.0
 On Debian systems, the full text of the Apache License 2.0 is in
 /usr/share/common-licenses/Apache-2.0.

Files: usr/bin/kubelet
Copyright: the denolet authors; the Deno authors
License: Apache-2.0 and Expat
Comment: The program has Deno in it, which is under the Expat (MIT) license.

License: Expat
 Permission is hereby granted, free of charge, to any person obtaining a copy of
 this software and associated documentation files (the "Software"), to deal in
 the Software without restriction, including without limitation the rights to
 use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of
 the Software, and to permit persons to whom the Software is furnished to do so,
 subject to the following conditions:
 .
 The above copyright notice and this permission notice shall be included in all
 copies or substantial portions of the Software.
 .
 THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
 IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS
 FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
 COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER
 IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN
 CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.

License: Apache-2.0 and Expat
 Both licenses above apply.
`;
}

/** The package's changelog. `date` as in RFC 5322. */
export function debChangelog(version: string, date: string): string {
  return `denolet (${version}) unstable; urgency=medium

  * See the repository's CHANGELOG.md.

 -- denolet <denolet@localhost>  ${date}
`;
}
