import assert from "@assert";
import {
  NamespaceMode,
  SecurityProfile_ProfileType as Type,
  SupplementalGroupsPolicy,
} from "../../../cri/gen/runtime_pb.ts";
import type { BoundPod, Container, PodSecurityContext, PodSpec, SecurityContext } from "../../kube/types.ts";
import { containerSecurity, maskedPaths, podNamespaces, readonlyPaths, type SecurityInput } from "./security.ts";

interface Case {
  pod?: PodSecurityContext;
  container?: SecurityContext;
  spec?: Partial<PodSpec>;
  annotations?: Record<string, string>;
  input?: Partial<SecurityInput>;
}

function security({ pod, container, spec, annotations, input }: Case = {}): ReturnType<typeof containerSecurity> {
  const bound: BoundPod = {
    metadata: { name: "p", namespace: "ns", uid: "u", ...(annotations === undefined ? {} : { annotations }) },
    spec: { containers: [], ...(pod === undefined ? {} : { securityContext: pod }), ...spec },
  };
  const c: Container = { name: "c", ...(container === undefined ? {} : { securityContext: container }) };
  return containerSecurity({
    pod: bound,
    container: c,
    user: { uid: 0 },
    seccompDefault: false,
    seccompDir: "/r/seccomp",
    ...input,
  });
}

Deno.test("nothing asked: the defaults", () => {
  assert.deepEqual(security(), {
    privileged: false,
    namespaceOptions: { ipc: NamespaceMode.POD, network: NamespaceMode.POD, pid: NamespaceMode.CONTAINER },
    runAsUser: { value: 0n },
    readonlyRootfs: false,
    supplementalGroups: [],
    supplementalGroupsPolicy: SupplementalGroupsPolicy.Merge,
    noNewPrivs: false,
    maskedPaths,
    readonlyPaths,
    seccomp: { profileType: Type.Unconfined },
  });
});

Deno.test("the container's fields win over the pod's", () => {
  const got = security({
    pod: { runAsUser: 1, runAsGroup: 2, seLinuxOptions: { level: "pod", role: "r" }, fsGroup: 5 },
    container: {
      runAsUser: 3,
      seLinuxOptions: { level: "own" },
      capabilities: { add: ["NET_ADMIN"], drop: ["ALL"] },
      privileged: true,
      readOnlyRootFilesystem: true,
    },
  });
  assert.deepEqual(got.runAsUser, { value: 3n });
  assert.deepEqual(got.runAsGroup, { value: 2n });
  assert.deepEqual(got.selinuxOptions, { level: "own" });
  assert.deepEqual(got.capabilities, { addCapabilities: ["NET_ADMIN"], dropCapabilities: ["ALL"] });
  assert.deepEqual([got.privileged, got.readonlyRootfs], [true, true]);
  const nulls = { runAsUser: null } as unknown as SecurityContext;
  assert.deepEqual(security({ pod: { runAsUser: 1 }, container: nulls }).runAsUser, { value: 1n });
});

Deno.test("the user is the spec's, else the image's, else root", () => {
  const of = (input: Case) => {
    const { runAsUser, runAsUsername } = security(input);
    return [runAsUser?.value, runAsUsername];
  };
  assert.deepEqual(of({ pod: { runAsUser: 7 }, input: { user: { username: "web" } } }), [7n, undefined]);
  assert.deepEqual(of({ input: { user: { uid: 8n } } }), [8n, undefined]);
  assert.deepEqual(of({ input: { user: { username: "web" } } }), [undefined, "web"]);
  assert.deepEqual(of({ input: { user: {} } }), [0n, undefined]);
});

Deno.test("runAsNonRoot is verified", () => {
  const where = '(pod: "p_ns(u)", container: c)';
  const nonRoot = { runAsNonRoot: true };
  const cases: [string, Case, string | undefined][] = [
    ["root by spec", { pod: nonRoot, container: { runAsUser: 0 } }, "container's runAsUser breaks non-root policy"],
    ["root by image", { container: nonRoot }, "container has runAsNonRoot and image will run as root"],
    [
      "no user in image",
      { container: nonRoot, input: { user: {} } },
      "container has runAsNonRoot and image will run as root",
    ],
    [
      "name",
      { container: nonRoot, input: { user: { username: "web" } } },
      "container has runAsNonRoot and image has non-numeric user (web), cannot verify user is non-root",
    ],
    [
      "too large",
      { container: nonRoot, input: { user: { uid: 2 ** 31 } } },
      "container has runAsNonRoot and image has an invalid user id (2147483648). (Must be 1-(2147483647))",
    ],
    ["spec over image", { pod: { ...nonRoot, runAsUser: 1 } }, undefined],
    ["image", { container: nonRoot, input: { user: { uid: 1 } } }, undefined],
    ["the container allows root", { pod: nonRoot, container: { runAsNonRoot: false } }, undefined],
  ];
  for (const [what, input, message] of cases) {
    if (message === undefined) assert.doesNotThrow(() => security(input), what);
    else {
      assert.throws(() => security(input), {
        name: "CreateContainerConfigError",
        message: `${message} ${where}`,
      }, what);
    }
  }
});

Deno.test("seccomp: container, pod, default", () => {
  const local = { type: "Localhost", localhostProfile: "a/b.json" };
  const cases: [Case, unknown][] = [
    [{ input: { seccompDefault: true } }, { profileType: Type.RuntimeDefault }],
    [{ pod: { seccompProfile: { type: "RuntimeDefault" } } }, { profileType: Type.RuntimeDefault }],
    [
      { pod: { seccompProfile: { type: "RuntimeDefault" } }, container: { seccompProfile: { type: "Unconfined" } } },
      { profileType: Type.Unconfined },
    ],
    [{ container: { seccompProfile: local } }, { profileType: Type.Localhost, localhostRef: "/r/seccomp/a/b.json" }],
  ];
  for (const [input, want] of cases) assert.deepEqual(security(input).seccomp, want);
  assert.throws(() => security({ container: { seccompProfile: { type: "Localhost" } } }), {
    message: /localhostProfile/,
  });
  const climbing = { type: "Localhost", localhostProfile: "../../etc/x" };
  assert.throws(() => security({ container: { seccompProfile: climbing } }), { message: /without "\.\."/ });
});

Deno.test("AppArmor: container, annotation, pod", () => {
  const key = "container.apparmor.security.beta.kubernetes.io/c";
  const pod = { appArmorProfile: { type: "Unconfined" } };
  const of = (input: Case) => {
    const { apparmor, apparmorProfile } = security(input);
    return [apparmor, apparmorProfile];
  };
  assert.deepEqual(of({}), [undefined, undefined]);
  assert.deepEqual(of({ pod }), [{ profileType: Type.Unconfined }, "unconfined"]);
  assert.deepEqual(of({ pod, annotations: { [key]: "runtime/default" } }), [
    { profileType: Type.RuntimeDefault },
    "runtime/default",
  ]);
  assert.deepEqual(of({ annotations: { [key]: "localhost/x" } }), [
    { profileType: Type.Localhost, localhostRef: "x" },
    "localhost/x",
  ]);
  assert.deepEqual(of({ annotations: { [key]: "odd", [`${key}2`]: "unconfined" } }), [undefined, undefined]);
  const own = { appArmorProfile: { type: "Localhost", localhostProfile: "mine" } };
  assert.deepEqual(of({ pod, container: own, annotations: { [key]: "unconfined" } })[1], "localhost/mine");
  assert.throws(() => security({ container: { appArmorProfile: { type: "Localhost" } } }), {
    message: /missing localhost/,
  });
  assert.throws(() => security({ container: { appArmorProfile: { type: "X" } } }), {
    message: /unknown apparmor.*"X"/,
  });
});

Deno.test("privilege escalation, /proc, groups", () => {
  const no = { allowPrivilegeEscalation: false };
  assert.equal(security({ container: no }).noNewPrivs, true);
  assert.equal(security({ container: { allowPrivilegeEscalation: true } }).noNewPrivs, false);
  assert.equal(security({ container: { ...no, privileged: true } }).noNewPrivs, false);
  assert.equal(security({ container: { ...no, capabilities: { add: ["CAP_SYS_ADMIN"] } } }).noNewPrivs, false);
  const open = security({ container: { procMount: "Unmasked" }, input: { extraMaskedPaths: ["/x"] } });
  assert.deepEqual([open.maskedPaths, open.readonlyPaths], [[], []]);
  assert.deepEqual(security({ input: { extraMaskedPaths: ["/x"] } }).maskedPaths, [...maskedPaths, "/x"]);
  const groups = security({
    pod: { fsGroup: 1, supplementalGroups: [2, 3], supplementalGroupsPolicy: "Strict" },
    input: { extraGroups: [4] },
  });
  assert.deepEqual(groups.supplementalGroups, [1n, 2n, 3n, 4n]);
  assert.equal(groups.supplementalGroupsPolicy, SupplementalGroupsPolicy.Strict);
  assert.throws(() => security({ pod: { supplementalGroupsPolicy: "X" } }), {
    message: /unsupported supplementalGroupsPolicy: X/,
  });
  assert.throws(() => security({ pod: { fsGroup: NaN } }), { message: /supplemental group/ });
});

Deno.test("namespaces, and the target of an ephemeral container", () => {
  const pod = (spec: Partial<PodSpec>): BoundPod => ({
    metadata: { name: "p", namespace: "ns", uid: "u" },
    spec: { containers: [], ...spec },
  });
  const { NODE, POD, CONTAINER, TARGET } = NamespaceMode;
  const cases: [Partial<PodSpec>, [NamespaceMode, NamespaceMode, NamespaceMode]][] = [
    [{}, [POD, POD, CONTAINER]],
    [{ hostIPC: true, hostNetwork: true, hostPID: true }, [NODE, NODE, NODE]],
    [{ shareProcessNamespace: true }, [POD, POD, POD]],
    [{ shareProcessNamespace: true, hostPID: true }, [POD, POD, NODE]],
  ];
  for (const [spec, [ipc, network, pid]] of cases) assert.deepEqual(podNamespaces(pod(spec)), { ipc, network, pid });
  const userns = { mode: POD, uids: [{ hostId: 65536, containerId: 0, length: 65536 }], gids: [] };
  assert.deepEqual(podNamespaces(pod({}), userns).usernsOptions, userns);
  const target = { targetContainerId: "abc" };
  const aimed = security({ input: target }).namespaceOptions;
  assert.deepEqual([aimed?.pid, aimed?.targetId], [TARGET, "abc"]);
  assert.equal(security({ input: target, spec: { shareProcessNamespace: true } }).namespaceOptions?.pid, POD);
});
