import { resolveImport } from "./layers.ts";

/** An import statement of a source text. */
export interface FoundImport {
  readonly specifier: string;
  readonly typeOnly: boolean;
}

/** Import and export-from statements of a formatted source: those that start a line outside comments and templates. */
export function importsOf(source: string): FoundImport[] {
  const found: FoundImport[] = [];
  const statement = /^(?:import|export)\s+(type\s)?(?:[^;"'`=()]*?\bfrom\s+)?"([^"\n]+)"/gm;
  for (const [, type, specifier] of source.matchAll(statement)) {
    if (specifier !== undefined) found.push({ specifier, typeOnly: type !== undefined });
  }
  return found;
}

/** Files by path relative to the repository, each with its text → what each imports of the others at run time. */
export function importGraph(files: ReadonlyMap<string, string>): Map<string, string[]> {
  const graph = new Map<string, string[]>();
  for (const [path, text] of files) {
    const targets = importsOf(text).filter((one) => !one.typeOnly).map((one) => resolveImport(path, one.specifier));
    graph.set(path, targets.filter((to) => to !== undefined && files.has(to)) as string[]);
  }
  return graph;
}

/** One cycle for each group of files that import one another in a circle, as the path around it. */
export function cyclesOf(graph: ReadonlyMap<string, readonly string[]>): string[][] {
  const cycles: string[][] = [];
  const done = new Set<string>();
  for (const start of graph.keys()) {
    if (done.has(start)) continue;
    // depth first without recursion: a chain of imports may be long
    const path: { file: string; next: number }[] = [{ file: start, next: 0 }];
    const on = new Map([[start, 0]]);
    for (let top = path.at(-1); top; top = path.at(-1)) {
      const target = (graph.get(top.file) ?? [])[top.next++];
      if (target === undefined) {
        done.add(top.file);
        on.delete(top.file);
        path.pop();
        continue;
      }
      const at = on.get(target);
      if (at !== undefined) cycles.push([...path.slice(at).map((one) => one.file), target]);
      else if (!done.has(target)) {
        on.set(target, path.length);
        path.push({ file: target, next: 0 });
      }
    }
  }
  return cycles;
}
