import type { KeyToPath } from "../types.ts";
import type { Problems } from "./problem.ts";

/** Checks that a path has no `..` element. */
export function checkNoBacksteps(p: Problems, path: string, text: string): void {
  if (text.split("/").includes("..")) p.add(path, text, "contains '..'", "write the path without '..'");
}

/** Checks a path that must stay below a directory: relative, without `..`. */
export function checkDescending(p: Problems, path: string, text: string): void {
  if (text.startsWith("/")) p.add(path, text, "is absolute", "use a relative path");
  checkNoBacksteps(p, path, text);
}

/** Checks a file's path below a volume that the agent writes: names that begin with `..` are the agent's. */
export function checkLocalFile(p: Problems, path: string, text: string | undefined): void {
  if (!text) {
    p.required(path, "use a relative path");
    return;
  }
  checkDescending(p, path, text);
  if (text.startsWith("..") && !text.startsWith("../")) {
    p.add(path, text, "begins with '..'", "choose another name: those are reserved");
  }
}

/** Checks the mode of a file. */
export function checkMode(p: Problems, path: string, mode: number | undefined): void {
  if (mode !== undefined && (mode < 0 || mode > 0o777)) {
    p.add(path, mode, "is no file mode", "use 0 to 0777 (octal; 511 in JSON)");
  }
}

/** Checks which keys of an object go to which files. */
export function checkKeyPaths(p: Problems, path: string, items: readonly KeyToPath[] | undefined): void {
  items?.forEach((item, i) => {
    if (!item.key) p.required(`${path}[${i}].key`, "name the key");
    checkLocalFile(p, `${path}[${i}].path`, item.path);
    checkMode(p, `${path}[${i}].mode`, item.mode);
  });
}
