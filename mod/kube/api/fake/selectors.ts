import { isObject } from "./json.ts";

/** Whether an object fits a field selector (`a.b=c,d!=e`); a field that is missing is empty. */
export function matchesFields(object: unknown, selector: string | undefined): boolean {
  return termsOf(selector).every((term) => {
    const [, path, operator, value] = /^([^!=]+)(==|!=|=)(.*)$/.exec(term) ?? [];
    if (path === undefined || operator === undefined) throw new Error(`not a field selector: ${term}`);
    return (fieldAt(object, path) === value) === (operator !== "!=");
  });
}

function fieldAt(object: unknown, path: string): string {
  let at = object;
  for (const part of path.split(".")) at = isObject(at) && Object.hasOwn(at, part) ? at[part] : undefined;
  return at === undefined || at === null ? "" : String(at);
}

/** Whether labels fit a selector of equalities and existence (`a=b,c!=d,e,!f`). */
export function matchesLabels(labels: Readonly<Record<string, string>> | undefined, selector?: string): boolean {
  const all = labels ?? {};
  const has = (key: string) => Object.hasOwn(all, key);
  return termsOf(selector).every((term) => {
    const [, key, operator, value] = /^([^!=]+)(==|!=|=)(.*)$/.exec(term) ?? [];
    if (key !== undefined) return (has(key) && all[key] === value) === (operator !== "!=");
    return term.startsWith("!") ? !has(term.slice(1)) : has(term);
  });
}

function termsOf(selector: string | undefined): string[] {
  return (selector ?? "").split(",").map((term) => term.trim()).filter((term) => term !== "");
}
