import assert from "@assert";
import { ContainerState } from "../../cri/gen/runtime_pb.ts";
import type { Container, Pod, Volume } from "../../mod/kube/types.ts";
import { remove, unlessMissing } from "../../scripts/lib/files.ts";
import { waitFor } from "../../scripts/lib/wait.ts";
import { versions } from "./harness.ts";
import { box, Observer, patience, pod, shell, withObserver } from "./support.ts";

/** A container that writes its start and its end into the pod's trace, which outlives the pod on the node. */
function traced(name: string, more: Partial<Container> = {}, atEnd = ""): Container {
  return shell(
    name,
    `trap '${atEnd}echo ${name} ends >> /trace/t; exit 0' TERM; echo ${name} >> /trace/t; while :; do sleep 0.1; done`,
    {
      volumeMounts: [{ name: "trace", mountPath: "/trace" }],
      ...more,
    },
  );
}

function traceIn(directory: string, name: string): Volume[] {
  return [{ name: "trace", hostPath: { path: `${directory}/${name}`, type: "DirectoryOrCreate" } }];
}

function mountTrace(line: string, name: string, more: Partial<Container> = {}): Container {
  return shell(name, line, { volumeMounts: [{ name: "trace", mountPath: "/trace" }], ...more });
}

/** The pods of this test, by name. */
function manifests(traces: string, port: number): Pod[] {
  const always = { restartPolicy: "Always" };
  return [
    pod("order", {
      terminationGracePeriodSeconds: 30,
      initContainers: [
        mountTrace("echo first >> /trace/t", "first"),
        traced("outer", {
          ...always,
          command: [
            "sh",
            "-c",
            "trap 'echo outer ends >> /trace/t; exit 0' TERM; echo outer >> /trace/t; sleep 1; echo outer started >> /trace/t; " +
            "touch /tmp/up; while :; do sleep 0.1; done",
          ],
          startupProbe: { exec: { command: ["test", "-e", "/tmp/up"] }, periodSeconds: 1, failureThreshold: 60 },
        }),
        mountTrace("echo second >> /trace/t", "second"),
        traced("inner", always),
      ],
      containers: [traced("main", {}, "sleep 1; ")],
      volumes: traceIn(traces, "order"),
    }),
    pod("always", { restartPolicy: "Always", containers: [shell("main", "exit 0")] }),
    pod("on-failure-good", { restartPolicy: "OnFailure", containers: [shell("main", "exit 0")] }),
    pod("on-failure-bad", { restartPolicy: "OnFailure", containers: [shell("main", "exit 4")] }),
    pod("never-bad", { restartPolicy: "Never", containers: [shell("main", "exit 3"), shell("good", "exit 0")] }),
    pod("never-half", { restartPolicy: "Never", containers: [shell("main", "exit 3"), box("other")] }),
    pod("init-bad-never", {
      restartPolicy: "Never",
      initContainers: [shell("init", "exit 5")],
      containers: [box("main")],
    }),
    pod("init-bad", { initContainers: [shell("init", "exit 5")], containers: [box("main")] }),
    pod("sidecar-job", {
      restartPolicy: "Never",
      initContainers: [box("side", always)],
      containers: [shell("main", "sleep 1")],
    }),
    pod("message", {
      restartPolicy: "Never",
      containers: [
        shell("file", "echo 'from the file' > /dev/termination-log; exit 1"),
        shell("logs", "echo 'from the log'; exit 1", { terminationMessagePolicy: "FallbackToLogsOnError" }),
        shell("no-logs", "echo 'not this'; exit 0", { terminationMessagePolicy: "FallbackToLogsOnError" }),
        shell("moved", "echo 'own path' > /tmp/why; exit 0", { terminationMessagePath: "/tmp/why" }),
        shell("long", "head -c 9000 /dev/zero | tr '\\0' x > /dev/termination-log; exit 0"),
      ],
    }),
    pod("no-program", { restartPolicy: "Never", containers: [box("main", { command: ["/no/such/program"] })] }),
    pod("hooks", {
      terminationGracePeriodSeconds: 30,
      containers: [
        traced("main", {
          lifecycle: {
            postStart: { exec: { command: ["sh", "-c", "echo post-start >> /trace/t"] } },
            preStop: { exec: { command: ["sh", "-c", "sleep 1; echo pre-stop >> /trace/t"] } },
          },
        }),
        box("http", {
          lifecycle: {
            postStart: { httpGet: { host: "127.0.0.1", port, path: "/post-start?x=1" } },
            preStop: {
              httpGet: { host: "127.0.0.1", port, path: "/pre-stop", httpHeaders: [{ name: "X-Mine", value: "v" }] },
            },
          },
        }),
        box("sleep", { lifecycle: { preStop: { sleep: { seconds: 1 } } } }),
      ],
      volumes: traceIn(traces, "hooks"),
    }),
    pod("bad-post-start", {
      restartPolicy: "Never",
      containers: [box("main", { lifecycle: { postStart: { exec: { command: ["sh", "-c", "exit 9"] } } } })],
    }),
    pod("bad-pre-stop", {
      containers: [box("main", { lifecycle: { preStop: { exec: { command: ["false"] } } } })],
    }),
    pod("stubborn", {
      terminationGracePeriodSeconds: 2,
      containers: [
        mountTrace("trap 'echo told >> /trace/t' TERM; echo main >> /trace/t; while :; do sleep 0.1; done", "main"),
      ],
      volumes: traceIn(traces, "stubborn"),
    }),
    pod("deadline", { activeDeadlineSeconds: 3, containers: [box("main")] }),
    pod("gated", { readinessGates: [{ conditionType: "example.com/gate" }], containers: [box("main")] }),
  ];
}

async function traceOf(traces: string, name: string): Promise<string[]> {
  const text = await unlessMissing(Deno.readTextFile(`${traces}/${name}/t`)) ?? "";
  return text.split("\n").filter((line) => line !== "");
}

for (const version of versions) {
  Deno.test(`containers on containerd ${version}: order, restarts, hooks, ends`, async (t) => {
    const traces = await Deno.makeTempDir({ prefix: "denolet-trace-" });
    const asked: { path: string; agent: string | null; mine: string | null }[] = [];
    await using server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, (request) => {
      const { pathname, search } = new URL(request.url);
      const { headers } = request;
      asked.push({ path: pathname + search, agent: headers.get("user-agent"), mine: headers.get("x-mine") });
      return new Response("no", { status: 500 });
    });
    const all = manifests(traces, server.addr.port);
    await withObserver({ name: `ct-${version}`, containerd: version }, async (seen) => {
      const { agent } = seen.node;
      for (const one of all) await agent.putManifest(`${one.metadata?.name}.yaml`, one);
      /** Takes a pod's manifest away and waits until it is gone. */
      const end = async (name: string) => {
        const uid = await seen.uid(name);
        await agent.removeManifest(`${name}.yaml`);
        await seen.gone(name, uid);
      };

      await t.step("init containers one after another, a sidecar's startup probe holds up what follows", async () => {
        const status = await seen.ready("order");
        assert.deepEqual((await traceOf(traces, "order")).slice(0, 5), [
          "first",
          "outer",
          "outer started",
          "second",
          "inner",
        ]);
        assert.equal((await traceOf(traces, "order")).at(5), "main");
        assert.equal(Observer.of(status, "first").state?.terminated?.reason, "Completed");
        assert.equal(Observer.of(status, "outer").started, true);
        assert.ok(Observer.of(status, "inner").state?.running);
      });

      await t.step("at the end: the main containers first, then the sidecars, the last one first", async () => {
        await end("order");
        assert.deepEqual((await traceOf(traces, "order")).slice(6), ["main ends", "inner ends", "outer ends"]);
      });

      await t.step("restart policies and phases", async () => {
        await seen.phase("on-failure-good", "Succeeded");
        const bad = await seen.phase("never-bad", "Failed");
        const { terminated } = Observer.of(bad, "main").state ?? {};
        assert.equal(terminated?.exitCode, 3);
        assert.equal(terminated?.reason, "Error");
        assert.equal(Observer.of(bad, "good").state?.terminated?.reason, "Completed");
        assert.equal(Observer.of(bad, "main").restartCount, 0);
        await seen.until("never-half", "to run on with one failed container", (status) => {
          return status.phase === "Running" && Observer.of(status, "main").state?.terminated?.exitCode === 3 &&
            Observer.of(status, "other").ready;
        });
        await seen.phase("init-bad-never", "Failed");
        assert.equal((await seen.containers("init-bad-never", "main")).length, 0);
        const job = await seen.phase("sidecar-job", "Succeeded");
        assert.ok(Observer.of(job, "side").state?.terminated);
      });

      await t.step("crash loops: count, waiting reason, last state, back-off event", async () => {
        for (
          const [name, container, code] of [["always", "main", 0], ["on-failure-bad", "main", 4], [
            "init-bad",
            "init",
            5,
          ]] as const
        ) {
          const status = await seen.until(name, "to be in a crash loop", (one) => {
            const { state, restartCount } = Observer.of(one, container);
            return state?.waiting?.reason === "CrashLoopBackOff" && restartCount >= 1;
          });
          const one = Observer.of(status, container);
          const uid = await seen.uid(name);
          assert.match(
            one.state?.waiting?.message ?? "",
            new RegExp(
              `^back-off \\d+s restarting failed container=${container} pod=${seen.full(name)}_default\\(${uid}\\)$`,
            ),
          );
          assert.equal(one.lastState?.terminated?.exitCode, code);
          assert.equal(status.phase, name === "init-bad" ? "Pending" : "Running");
          const event = await seen.event(name, "BackOff");
          assert.equal(
            event.message,
            `Back-off restarting failed container ${container} in pod ${seen.full(name)}_default(${uid})`,
          );
        }
        assert.equal((await seen.containers("init-bad", "main")).length, 0);
      });

      await t.step("termination messages", async () => {
        const status = await seen.phase("message", "Failed");
        const said = (container: string) => Observer.of(status, container).state?.terminated?.message;
        assert.equal(said("file"), "from the file\n");
        assert.equal(said("logs"), "from the log\n");
        assert.equal(said("no-logs"), undefined);
        assert.equal(said("moved"), "own path\n");
        // 12288 bytes for all five containers
        assert.match(said("long") ?? "", /^x+$/);
        assert.ok([4096, 2457].includes(said("long")?.length ?? 0), `${said("long")?.length}`);
      });

      await t.step("a program that is not there", async () => {
        const status = await seen.phase("no-program", "Failed");
        const { terminated } = Observer.of(status, "main").state ?? {};
        assert.equal(terminated?.reason, "StartError");
        assert.equal(terminated?.exitCode, 128);
        assert.match(terminated?.message ?? "", /no such file/);
        await seen.event("no-program", "Failed", /no such file/);
      });

      await t.step("hooks: postStart beside the start, preStop before the end, by command and over HTTP", async () => {
        await seen.ready("hooks");
        await waitFor("the command", async () => (await traceOf(traces, "hooks")).length === 2, { within: patience });
        assert.deepEqual((await traceOf(traces, "hooks")).sort(), ["main", "post-start"]);
        assert.deepEqual(asked.map((one) => one.path), ["/post-start?x=1"]);
        await end("hooks");
        assert.deepEqual((await traceOf(traces, "hooks")).slice(2), ["pre-stop", "main ends"]);
        assert.deepEqual(asked.slice(1).map(({ path, mine }) => [path, mine]), [["/pre-stop", "v"]]);
        for (const { agent } of asked) assert.match(agent ?? "", /^kube-lifecycle\/1\.36/);
      });

      await t.step("hooks that fail", async () => {
        await seen.event("bad-post-start", "FailedPostStartHook");
        // told to end, it ended well
        await seen.phase("bad-post-start", "Succeeded");
        await seen.event("bad-post-start", "Killing", /^FailedPostStartHook$/);
        await seen.ready("bad-pre-stop");
        await end("bad-pre-stop");
        await seen.event("bad-pre-stop", "FailedPreStopHook");
      });

      await t.step("a container that ignores SIGTERM is killed when its grace is over", async () => {
        await seen.ready("stubborn");
        await waitFor("its start", async () => (await traceOf(traces, "stubborn")).length === 1, { within: patience });
        await end("stubborn");
        assert.deepEqual(await traceOf(traces, "stubborn"), ["main", "told"]);
      });

      await t.step("activeDeadlineSeconds ends the pod as failed", async () => {
        const status = await seen.phase("deadline", "Failed");
        assert.equal(status.reason, "DeadlineExceeded");
        assert.equal(status.message, "Pod was active on the node longer than the specified deadline");
        const [one] = await seen.containers("deadline");
        assert.equal(one?.state, ContainerState.CONTAINER_EXITED);
        await seen.event("deadline", "DeadlineExceeded");
      });

      await t.step("a readiness gate that nobody sets holds back Ready, not ContainersReady", async () => {
        const of = (status: { conditions?: { type: string; status: string; reason?: string }[] }, type: string) =>
          status.conditions?.find((one) => one.type === type);
        const status = await seen.until(
          "gated",
          "ready containers",
          (one) => of(one, "ContainersReady")?.status === "True",
        );
        assert.equal(of(status, "Ready")?.status, "False");
        assert.equal(of(status, "Ready")?.reason, "ReadinessGatesNotReady");
      });

      await t.step("at the end nothing is left", async () => {
        assert.ok(await agent.drain());
        await seen.nothingLeft();
      });
    });
    await remove(traces);
  });
}
