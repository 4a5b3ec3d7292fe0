import type { Container, HTTPGetAction, LifecycleHandler, PodSpec, Probe } from "../types.ts";
import { checkPort, checkPortNumber } from "./names.ts";
import type { Problems } from "./problem.ts";

const signalNames = ("SIGABRT SIGALRM SIGBUS SIGCHLD SIGCLD SIGCONT SIGFPE SIGHUP SIGILL SIGINT SIGIO SIGIOT SIGKILL " +
  "SIGPIPE SIGPOLL SIGPROF SIGPWR SIGQUIT SIGSEGV SIGSTKFLT SIGSTOP SIGSYS SIGTERM SIGTRAP SIGTSTP SIGTTIN SIGTTOU " +
  "SIGURG SIGUSR1 SIGUSR2 SIGVTALRM SIGWINCH SIGXCPU SIGXFSZ SIGRTMIN SIGRTMAX").split(" ");
const signals = new Set([
  ...signalNames,
  ...Array.from({ length: 15 }, (_, i) => `SIGRTMIN+${i + 1}`),
  ...Array.from({ length: 14 }, (_, i) => `SIGRTMAX-${i + 1}`),
]);

const timings = [
  "initialDelaySeconds",
  "timeoutSeconds",
  "periodSeconds",
  "successThreshold",
  "failureThreshold",
] as const;
const probes = ["livenessProbe", "readinessProbe", "startupProbe"] as const;

/** Checks probes and lifecycle hooks of a container that may have them. */
export function checkProbesAndHooks(p: Problems, path: string, container: Container, spec: PodSpec): void {
  for (const field of probes) {
    const probe = container[field];
    if (probe) checkProbe(p, `${path}.${field}`, probe, field);
  }
  const { postStart, preStop, stopSignal } = container.lifecycle ?? {};
  const grace = spec.terminationGracePeriodSeconds;
  if (postStart) checkHandler(p, `${path}.lifecycle.postStart`, postStart, grace);
  if (preStop) checkHandler(p, `${path}.lifecycle.preStop`, preStop, grace);
  if (stopSignal === undefined) return;
  const at = `${path}.lifecycle.stopSignal`;
  if (!spec.os?.name) p.forbidden(at, "without spec.os.name", "set spec.os.name to linux");
  else if (!signals.has(stopSignal)) p.add(at, stopSignal, "is no signal", "use a name such as SIGTERM or SIGRTMIN+1");
}

/** Refuses probes and hooks for a container that may not have them. */
export function refuseProbesAndHooks(p: Problems, path: string, container: Container, why: string): void {
  for (const field of [...probes, "lifecycle"] as const) {
    if (container[field] !== undefined) p.forbidden(`${path}.${field}`, why);
  }
}

function checkProbe(p: Problems, path: string, probe: Probe, field: (typeof probes)[number]): void {
  checkHandler(p, path, probe, undefined);
  for (const timing of timings) p.notNegative(`${path}.${timing}`, probe[timing]);
  if (field !== "readinessProbe" && probe.successThreshold !== 1) {
    p.add(`${path}.successThreshold`, probe.successThreshold, "must be 1 here", "leave it out");
  }
  const grace = probe.terminationGracePeriodSeconds;
  if (grace === undefined) return;
  const at = `${path}.terminationGracePeriodSeconds`;
  if (field === "readinessProbe") p.forbidden(at, "for a readiness probe");
  else if (grace <= 0) p.add(at, grace, "is not positive", "use 1 or more, or leave it out");
}

type Handler = LifecycleHandler & { readonly grpc?: Probe["grpc"] };
const handlers = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] as const;

function checkHandler(p: Problems, path: string, handler: Handler, grace: number | undefined): void {
  const given = handlers.filter((kind) => handler[kind] !== undefined);
  if (given.length !== 1) {
    const shown = given.length === 0 ? "no handler" : `${given.length} handlers (${given.join(", ")})`;
    p.add(path, undefined, `has ${shown}`, "give it exactly one, such as exec or httpGet");
  }
  const { exec, httpGet, tcpSocket, grpc, sleep } = handler;
  if (exec && !exec.command?.length) p.required(`${path}.exec.command`, "name the program and its arguments");
  if (httpGet) checkHttpGet(p, `${path}.httpGet`, httpGet);
  if (tcpSocket) checkPort(p, `${path}.tcpSocket.port`, tcpSocket.port);
  if (grpc) checkPortNumber(p, `${path}.grpc.port`, grpc.port);
  if (sleep && grace !== undefined) p.range(`${path}.sleep.seconds`, sleep.seconds, 0, Math.max(grace, 0));
}

function checkHttpGet(p: Problems, path: string, get: HTTPGetAction): void {
  if (!get.path) p.required(`${path}.path`, "use a path such as /healthz");
  checkPort(p, `${path}.port`, get.port);
  p.oneOf(`${path}.scheme`, get.scheme, ["HTTP", "HTTPS"]);
  get.httpHeaders?.forEach(({ name }, i) => {
    if (!/^[-A-Za-z0-9]+$/.test(name)) {
      p.add(`${path}.httpHeaders[${i}].name`, name, "is no header name", "use letters, digits and '-'");
    }
  });
}
