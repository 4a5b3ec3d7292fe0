import { FakeHost } from "../../mod/base/fake_host.ts";

/** The fake machine, with two more ways to look at it that cost little. */
export class SimHost extends FakeHost {
  /** Names in a directory. */
  names(path: string): string[] {
    return [...this.quiet(path)?.inode?.children.keys() ?? []];
  }

  /** Mount points at or below a path. */
  mountTargets(path: string): string[] {
    return this.fs.mountsBelow(path);
  }
}
