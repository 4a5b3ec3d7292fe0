/** Files of variables that a container writes for another (features.md section 3, C24). */
import { CreateContainerConfigError } from "./errors.ts";

function refuse(line: number, what: string): never {
  throw new CreateContainerConfigError(`invalid environment variable format at line ${line}: ${what}`);
}

/**
 * The value of a variable in a file of `NAME='value'` lines; undefined when it isn't there or is empty.
 * A value stands in single quotes and may span lines; a space after `=` makes it empty. Only what comes before the
 * variable is checked. Throws CreateContainerConfigError with the line on anything else.
 */
export function valueInEnvFile(text: string, key: string): string | undefined {
  const lines = text.replace(/\n$/, "").split("\n").map((line) => line.replace(/\r$/, ""));
  for (let at = 0; at < lines.length; at++) {
    const line = (lines[at] ?? "").replace(/^[ \t]+/, "");
    if (line === "" || line.startsWith("#")) continue;
    const equals = line.indexOf("=");
    if (equals < 0) refuse(at + 1, "missing '='");
    const name = line.slice(0, equals);
    if (name.trimEnd() === "") refuse(at + 1, "empty variable name");
    if (/[ \t]$/.test(name)) refuse(at + 1, "whitespace before '=' is not allowed");
    let rest = line.slice(equals + 1);
    if (/^[ \t]/.test(rest)) {
      if (name === key) return undefined;
      continue;
    }
    if (!rest.startsWith("'")) refuse(at + 1, "value must be enclosed in single quotes");
    rest = rest.slice(1);
    const start = at;
    const parts: string[] = [];
    let close = rest.indexOf("'");
    while (close < 0) {
      parts.push(rest);
      at++;
      const next = lines[at];
      if (next === undefined) refuse(start + 1, "unclosed single quote");
      rest = next;
      close = rest.indexOf("'");
    }
    if (!/^[ \t]*(#|$)/.test(rest.slice(close + 1))) refuse(at + 1, "unexpected content after closing quote");
    parts.push(rest.slice(0, close));
    if (name === key) return parts.join("\n") || undefined;
  }
  return undefined;
}
