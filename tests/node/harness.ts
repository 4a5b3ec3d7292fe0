import { messageOf } from "../../mod/base/errors.ts";
import { AgentNode, type AgentOptions, agentPaths, cleanAgent, endAgent } from "../../scripts/node/agent_node.ts";
import { type Containerd, layoutOf, startContainerd } from "../../scripts/node/containerd.ts";
import { assertUnused } from "../../scripts/node/containerd_clean.ts";
import { ensureContainerd2 } from "../../scripts/node/containerd2.ts";
import { ensureInstalled } from "../../scripts/node/install.ts";
import { ensureContainerd2WithRunc } from "../../scripts/node/runc.ts";

/** How a node test wants its node. */
export interface NodeOptions extends Pick<AgentOptions, "config" | "flags" | "manifests" | "program" | "env"> {
  /** Makes the node differ from others beside it: a-z, 0-9 and '-', at most 20. */
  readonly name: string;
  /** 'debian' (containerd 1.6) when not given. */
  readonly containerd?: "debian" | "v2";
  /** With containerd 2: a runc that can map the ids of mounts, instead of Debian's. */
  readonly newRunc?: boolean;
  /** Whether the agent is started and waited for (healthz); true when not given. */
  readonly start?: boolean;
}

/** A whole node of a test: a private containerd with our images, and an agent. */
export interface TestNode {
  readonly containerd: Containerd;
  readonly agent: AgentNode;
}

/** The versions of containerd that node tests run on. */
export const versions = ["debian", "v2"] as const;

/**
 * Runs a test against a private containerd without an agent, with our images imported, and removes everything after
 * it, also when the test fails; the error then has the end of containerd's log. Returns what the test returns.
 */
export async function withContainerd<T>(
  options: Pick<NodeOptions, "name" | "containerd" | "newRunc">,
  test: (containerd: Containerd) => Promise<T>,
): Promise<T> {
  const version = options.containerd ?? "debian";
  await ensureInstalled();
  const ensure = options.newRunc ? ensureContainerd2WithRunc : ensureContainerd2;
  const binDir = version === "v2" ? await ensure() : "/usr/bin";
  const containerd = await startContainerd({ name: options.name, version, binDir });
  const failures: unknown[] = [];
  let result: T | undefined;
  try {
    await containerd.importImages();
    result = await test(containerd);
  } catch (thrown) {
    failures.push(await explained(thrown, "containerd", () => containerd.logEnd(15)));
  }
  try {
    await containerd.stop();
  } catch (thrown) {
    failures.push(thrown);
  }
  raise(failures);
  return result as T;
}

/**
 * Runs a test against a whole node and removes everything after it. Pods that are left are ended without the agent: a
 * test that is about their end removes their manifests itself (`agent.drain()`). A failed test's error has the ends of
 * the agent's and containerd's logs.
 */
export async function withNode(options: NodeOptions, test: (node: TestNode) => Promise<void>): Promise<void> {
  const paths = agentPaths(options.name);
  await assertUnused(layoutOf({ name: options.name }));
  await endAgent(paths);
  const failures: unknown[] = [];
  try {
    await withContainerd(options, async (containerd) => {
      const agent = await AgentNode.prepare({
        name: options.name,
        containerd,
        ...(options.config ? { config: options.config } : {}),
        ...(options.flags ? { flags: options.flags } : {}),
        ...(options.program ? { program: options.program } : {}),
        ...(options.env ? { env: options.env } : {}),
        ...(options.manifests ? { manifests: options.manifests } : {}),
      });
      try {
        if (options.start ?? true) {
          agent.start();
          await agent.healthy();
        }
        await test({ containerd, agent });
      } catch (thrown) {
        throw await explained(thrown, "the agent", () => agent.logEnd(40));
      } finally {
        await agent.kill();
      }
    });
  } catch (thrown) {
    failures.push(thrown);
  }
  try {
    await cleanAgent(paths);
  } catch (thrown) {
    failures.push(thrown);
  }
  raise(failures);
}

/** The error with the end of a log behind its message, once. */
async function explained(thrown: unknown, whose: string, log: () => Promise<string>): Promise<Error> {
  const message = messageOf(thrown);
  const end = message.includes("end of /") ? "" : `\n--- end of the log of ${whose}:\n${await log()}`;
  const error = new Error(`${message}${end}`, { cause: thrown });
  if (thrown instanceof Error && thrown.stack) error.stack = `${error.message}\n${thrown.stack}`;
  return error;
}

function raise(failures: readonly unknown[]): void {
  if (failures.length > 1) throw new AggregateError(failures, failures.map(messageOf).join("\n"));
  if (failures.length === 1) throw failures[0];
}
