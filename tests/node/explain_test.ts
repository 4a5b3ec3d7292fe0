import assert from "@assert";
import type { Container, PodSpec } from "../../mod/kube/types.ts";
import { waitFor } from "../../scripts/lib/wait.ts";
import { versions } from "./harness.ts";
import { agentProgram, box, patience, pod, withObserver } from "./support.ts";

/** Pods that the runtime cannot start, and what must be said of them. */
const broken: Readonly<Record<string, { main: Partial<Container>; spec?: Partial<PodSpec>; says: RegExp }>> = {
  command: {
    main: { command: ["/no/such/program"] },
    says: /Remedy: Correct command or args in the manifest; the program, and the interpreter/,
  },
  directory: {
    main: { command: ["/bin"] },
    says: /Remedy: Correct command or args in the manifest: it must name a file/,
  },
  workdir: { main: { workingDir: "/bin/sh" }, says: /Remedy: Correct workingDir in the manifest/ },
  mount: {
    main: { volumeMounts: [{ name: "file", mountPath: "/bin" }] },
    spec: { volumes: [{ name: "file", hostPath: { path: "/etc/hostname", type: "File" } }] },
    says: /Remedy: A file is mounted on a directory, or the other way round/,
  },
  memory: {
    main: { resources: { limits: { memory: "4096" } } },
    // The pod's own group has the limit too: not even its sandbox can be made.
    says: /cannot make its sandbox[^]*cannot allocate memory[^]*Remedy: Raise resources\.limits\.memory/,
  },
  seccomp: {
    main: { securityContext: { seccompProfile: { type: "Localhost", localhostProfile: "none.json" } } },
    says: /Remedy: Correct securityContext\.seccompProfile: a localhost profile must lie in seccomp\//,
  },
};

for (const version of versions) {
  Deno.test(`explain on containerd ${version}: what the runtime cannot start is told by its kind`, async (t) => {
    await withObserver({ name: "explain", containerd: version }, async (seen) => {
      const { agent } = seen.node;
      for (const [name, { main, spec }] of Object.entries(broken)) {
        await agent.putManifest(`${name}.json`, pod(name, { containers: [box("main", main)], ...spec }));
      }
      for (const [name, { says }] of Object.entries(broken)) {
        await t.step(name, async () => {
          let last = "";
          const explain = async () => {
            const args = ["explain", name, "--root-dir", agent.paths.kubelet];
            last = (await agentProgram(args, { run: agent.paths.run })).stdout;
            return says.test(last);
          };
          await waitFor(`the remedy for ${name}`, explain, { within: patience }).catch((thrown) => {
            throw new Error(`${thrown.message}\n--- explain says:\n${last}`);
          });
          assert.equal(/Remedy: Correct command or args/.test(last), says.source.includes("command or args"), last);
        });
      }
    });
  });
}
