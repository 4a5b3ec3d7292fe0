/** `$(VAR)` references in commands, arguments, variables and sub paths (runtime-contract.md section 5). */

/** What stands for a variable; undefined leaves the reference as it is written. */
export type Lookup = (name: string) => string | undefined;

/**
 * Replaces each `$(NAME)` that the lookup knows. `$$` is a plain `$`, so `$$(NAME)` stays `$(NAME)`; a `$` before
 * anything else, and a reference without its `)`, stay as they are. Replaced text is not looked at again.
 */
export function expand(text: string, lookup: Lookup): string {
  const out: string[] = [];
  let kept = 0;
  let closable = true;
  let at = text.indexOf("$");
  while (at >= 0 && at + 1 < text.length) {
    const next = text[at + 1];
    let end = at + 2;
    if (next === "$") {
      out.push(text.slice(kept, at + 1));
      kept = end;
    } else if (next === "(") {
      const close: number = closable ? text.indexOf(")", at + 2) : -1;
      // Once there is no `)` ahead there is none for any later reference either: don't search the text again.
      closable = close >= 0;
      if (closable) {
        end = close + 1;
        out.push(text.slice(kept, at), lookup(text.slice(at + 2, close)) ?? text.slice(at, end));
        kept = end;
      }
    }
    at = text.indexOf("$", end);
  }
  out.push(text.slice(kept));
  return out.join("");
}

/** A lookup in several maps, the first that has the name winning. */
export function lookupIn(...maps: readonly ReadonlyMap<string, string>[]): Lookup {
  return (name) => maps.find((map) => map.has(name))?.get(name);
}
