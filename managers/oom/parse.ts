/** One call of the kernel's out-of-memory killer. */
export interface OomKill {
  /** The group whose limit was exceeded; "/" when the machine itself was short. */
  readonly limitOf: string;
  /** The group of the process that was chosen; "/" when the kernel does not say. */
  readonly group: string;
  /** The process that was chosen; empty and 0 when the kernel does not say. */
  readonly process: string;
  readonly pid: number;
}

const begin = /invoked oom-killer:/;
/** Since Linux 5.0. What comes first in the line is the kernel's: the process's name, at its end, is anyone's. */
const summary =
  /^oom-kill:constraint=[A-Z_]+,.*?(?:,global_oom|,oom_memcg=(.*?)),task_memcg=(.*?),task=(.*),pid=(\d+),uid=\d+\s*$/;
/** Before 5.0. */
const legacyGroups = /^Task in (.*) killed as a result of limit of (.*)$/;
const killed = /Killed process (\d+),? \(?(.*?)\)?,? (?:UID|total-vm)/;

/** The kernel's own lines are shorter. */
const longest = 4096;

/**
 * Reads the kernel's log line by line and tells each call of its out-of-memory killer once, by whichever line completes
 * it: the summary of newer kernels, the kill itself of older ones.
 */
export class OomParser {
  #open: { limitOf: string; group: string } | undefined;

  /** Takes the next line; the kill that it completes, or undefined. */
  feed(line: string): OomKill | undefined {
    if (line.length > longest) return undefined;
    if (begin.test(line)) {
      this.#open = { limitOf: "/", group: "/" };
      return undefined;
    }
    const said = summary.exec(line);
    if (said) {
      this.#open = undefined;
      const [, limitOf = "/", group = "/", process = "", pid = "0"] = said;
      return { limitOf, group, process, pid: Number(pid) };
    }
    const open = this.#open;
    if (!open) return undefined;
    const groups = legacyGroups.exec(line);
    if (groups) {
      open.group = groups[1] || "/";
      open.limitOf = groups[2] || "/";
      return undefined;
    }
    const victim = killed.exec(line);
    if (!victim) return undefined;
    this.#open = undefined;
    return { ...open, process: victim[2] ?? "", pid: Number(victim[1]) };
  }
}
