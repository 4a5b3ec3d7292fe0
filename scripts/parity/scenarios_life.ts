import {
  all,
  box,
  condition,
  container,
  deletion,
  ended,
  event,
  once,
  pod,
  ready,
  type Scenario,
  shell,
  tells,
  waiting,
} from "./scenario.ts";

/** Pods that live and end in the usual ways: containers of all kinds, restarts, probes, hooks, deletions. */
export const lifeScenarios: readonly Scenario[] = [
  {
    name: "plain",
    pod: pod("plain", { containers: [box("main"), box("second")] }, {
      labels: { app: "plain" },
      annotations: { note: "x" },
    }),
    steps: [
      { name: "ready", until: ready },
      {
        name: "ephemeral",
        act: ({ call, path }) =>
          call("PATCH", `${path}/ephemeralcontainers`, {
            spec: { ephemeralContainers: [{ ...box("debugger"), targetContainerName: "main" }] },
          }, "application/strategic-merge-patch+json"),
        until: container("debugger", (one) => one.state?.running !== undefined),
      },
    ],
  },
  {
    name: "init",
    pod: pod("init", {
      initContainers: [
        tells("first", "echo first"),
        box("side", { restartPolicy: "Always", startupProbe: { exec: { command: ["true"] }, periodSeconds: 1 } }),
        tells("last", "echo last"),
      ],
      containers: [box("main")],
    }),
    steps: [{ name: "ready", until: ready }, deletion("deleted")],
  },
  {
    name: "init-fails",
    pod: pod("init-fails", { initContainers: [shell("first", "exit 4")], containers: [box("main")] }),
    steps: once("backing off", waiting("first", "CrashLoopBackOff", 1)),
  },
  {
    name: "init-fails-for-good",
    pod: pod("init-fails-for-good", {
      restartPolicy: "Never",
      initContainers: [shell("first", "exit 4")],
      containers: [box("main")],
    }),
    steps: once("failed", ended("Failed")),
  },
  {
    name: "restarts",
    pod: pod("restarts", { containers: [shell("main", "echo told > /dev/termination-log; exit 3"), box("second")] }),
    steps: once("backing off", all(waiting("main", "CrashLoopBackOff", 2), event("BackOff"))),
  },
  {
    name: "job",
    pod: pod("job", { restartPolicy: "OnFailure", containers: [shell("main", "exit 0")] }),
    steps: [{ name: "succeeded", until: ended("Succeeded") }, deletion("deleted")],
  },
  {
    name: "job-retries",
    pod: pod("job-retries", {
      restartPolicy: "OnFailure",
      volumes: [{ name: "v", emptyDir: {} }],
      containers: [
        shell("main", "[ -f /v/tried ] && exit 0; touch /v/tried; exit 9", {
          volumeMounts: [{ name: "v", mountPath: "/v" }],
        }),
      ],
    }),
    steps: once("succeeded", ended("Succeeded")),
  },
  {
    name: "never",
    pod: pod("never", {
      restartPolicy: "Never",
      containers: [
        shell("main", "echo from the log; exit 7", { terminationMessagePolicy: "FallbackToLogsOnError" }),
        shell("killed", "kill -9 $$"),
      ],
    }),
    steps: once("failed", ended("Failed")),
  },
  {
    name: "half",
    pod: pod("half", { restartPolicy: "Never", containers: [box("main"), shell("ends", "exit 0")] }),
    steps: once("one ended", container("ends", (one) => one.state?.terminated !== undefined)),
  },
  {
    name: "deadline",
    pod: pod("deadline", { activeDeadlineSeconds: 6, containers: [box("main")] }),
    steps: once("failed", ended("Failed")),
  },
  {
    name: "deadline-graceful",
    pod: pod("deadline-graceful", {
      activeDeadlineSeconds: 6,
      restartPolicy: "Never",
      containers: [shell("main", "trap 'exit 5' TERM; sleep 86400 & wait $!")],
    }),
    steps: once("failed", ended("Failed")),
  },
  {
    name: "unready",
    pod: pod("unready", {
      containers: [
        box("main", {
          readinessProbe: { exec: { command: ["sh", "-c", "echo no; exit 1"] }, periodSeconds: 1 },
          livenessProbe: { exec: { command: ["true"] }, periodSeconds: 1 },
        }),
        box("second"),
      ],
    }),
    steps: once("unready", all(event("Unhealthy", 2), container("main", (one) => one.started === true))),
  },
  {
    name: "unlively",
    pod: pod("unlively", {
      containers: [
        box("main", {
          livenessProbe: {
            exec: { command: ["sh", "-c", "echo dead; exit 2"] },
            periodSeconds: 2,
            failureThreshold: 2,
          },
        }),
      ],
    }),
    steps: [
      ...once("restarted", container("main", (one) => one.restartCount === 1 && one.state?.running !== undefined)),
      ...once("backing off", all(waiting("main", "CrashLoopBackOff", 1), event("BackOff"))),
    ],
  },
  {
    name: "unstarted",
    pod: pod("unstarted", {
      containers: [
        box("main", {
          startupProbe: { tcpSocket: { port: 81 }, periodSeconds: 1, failureThreshold: 900 },
          readinessProbe: { exec: { command: ["true"] } },
        }),
      ],
    }),
    steps: once("not started", event("Unhealthy", 2)),
  },
  {
    name: "probed",
    pod: pod("probed", {
      containers: [
        box("main", {
          image: "localhost/web:1",
          command: ["httpd", "-f", "-p", "80", "-h", "/www"],
          ports: [{ name: "web", containerPort: 80 }],
          startupProbe: { tcpSocket: { port: "web" }, periodSeconds: 1 },
          readinessProbe: { httpGet: { path: "/healthz", port: "web" }, periodSeconds: 1 },
        }),
        box("missing", {
          image: "localhost/web:1",
          command: ["httpd", "-f", "-p", "8080", "-h", "/www"],
          readinessProbe: { httpGet: { path: "/none", port: 8080 }, periodSeconds: 1 },
        }),
      ],
    }),
    steps: once("answered", all(event("Unhealthy", 2), container("main", (one) => one.ready === true))),
  },
  {
    name: "hooks",
    pod: pod("hooks", {
      terminationGracePeriodSeconds: 10,
      containers: [box("main", {
        lifecycle: {
          postStart: { exec: { command: ["sh", "-c", "echo started > /tmp/x"] } },
          preStop: { exec: { command: ["sh", "-c", "exit 3"] } },
        },
      })],
    }),
    steps: [{ name: "ready", until: ready }, deletion("deleted")],
  },
  {
    name: "hook-fails",
    pod: pod("hook-fails", {
      containers: [
        box("main", { lifecycle: { postStart: { exec: { command: ["sh", "-c", "echo bad hook; exit 8"] } } } }),
      ],
    }),
    steps: once("backing off", all(event("FailedPostStartHook"), event("BackOff"))),
  },
  {
    name: "gated",
    pod: pod("gated", { readinessGates: [{ conditionType: "example.com/in" }], containers: [box("main")] }),
    steps: [
      { name: "not ready", until: condition("ContainersReady") },
      {
        name: "ready",
        act: ({ call, path }) =>
          call("PATCH", `${path}/status`, {
            status: {
              conditions: [{ type: "example.com/in", status: "True", lastTransitionTime: "2024-01-01T00:00:00Z" }],
            },
          }, "application/strategic-merge-patch+json"),
        until: ready,
      },
    ],
  },
  {
    name: "graceful",
    pod: pod("graceful", {
      terminationGracePeriodSeconds: 10,
      containers: [shell("main", "trap 'echo bye; exit 6' TERM; sleep 86400 & wait $!"), box("second")],
    }),
    steps: [{ name: "ready", until: ready }, deletion("deleted")],
  },
  {
    name: "stubborn",
    pod: pod("stubborn", { containers: [shell("main", "trap '' TERM; while :; do sleep 1; done")] }),
    steps: [{ name: "ready", until: ready }, deletion("deleted", 1)],
  },
  {
    name: "forced",
    pod: pod("forced", { containers: [box("main")] }),
    steps: [{ name: "ready", until: ready }, deletion("deleted", 0)],
  },
  {
    name: "resized",
    pod: pod("resized", {
      containers: [
        box("main", {
          resources: { requests: { cpu: "20m", memory: "16Mi" }, limits: { cpu: "50m", memory: "32Mi" } },
        }),
      ],
    }),
    steps: [
      { name: "ready", until: ready },
      {
        name: "resized",
        act: ({ call, path }) =>
          call("PATCH", `${path}/resize`, {
            spec: {
              containers: [{
                name: "main",
                resources: { requests: { cpu: "30m" }, limits: { cpu: "60m" } },
              }],
            },
          }, "application/strategic-merge-patch+json"),
        until: container("main", (one) => one.resources?.limits?.cpu === "60m"),
      },
      {
        name: "resized again",
        act: ({ call, path }) =>
          call("PATCH", `${path}/resize`, {
            spec: {
              containers: [{
                name: "main",
                resources: { requests: { cpu: "110m" }, limits: { cpu: "110m" } },
              }],
            },
          }, "application/strategic-merge-patch+json"),
        until: container("main", (one) => one.resources?.limits?.cpu === "110m"),
      },
    ],
  },
  {
    name: "static",
    static: true,
    pod: pod("static", { containers: [box("main")] }, { labels: { app: "static" } }),
    steps: once("ready", ready),
  },
  {
    name: "static-ends",
    static: true,
    pod: pod("static-ends", { restartPolicy: "Never", containers: [shell("main", "exit 0")] }),
    steps: once("succeeded", ended("Succeeded")),
  },
];
