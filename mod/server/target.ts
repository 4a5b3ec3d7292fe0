/** A request's target, taken apart. */
export interface Target {
  /** The path as sent, still encoded. */
  readonly raw: string;
  /** The path, percent-decoded; bytes that are not UTF-8 become U+FFFD. */
  readonly path: string;
  /** The path, each segment decoded by itself: a slash that was encoded stays so. Handlers are found by it. */
  readonly segmented: string;
  /** The query without its question mark. */
  readonly query: string;
}

/** Decodes percent signs; undefined when one is not followed by two hexadecimal digits. */
export function percentDecode(text: string): string | undefined {
  if (!text.includes("%")) return text;
  if (/%(?![0-9A-Fa-f]{2})/.test(text)) return undefined;
  try {
    return decodeURIComponent(text);
  } catch {
    // Not UTF-8: such a name exists on no path of ours, but must not fail harder than a name that does not exist.
    const bytes: number[] = [];
    for (let at = 0; at < text.length; at++) {
      if (text[at] === "%") {
        bytes.push(parseInt(text.slice(at + 1, at + 3), 16));
        at += 2;
      } else bytes.push(...new TextEncoder().encode(text[at]));
    }
    return new TextDecoder().decode(new Uint8Array(bytes));
  }
}

/** Takes a request line's target apart, origin form or absolute form; undefined for what is neither. */
export function parseTarget(target: string): Target | undefined {
  let rest = target;
  const absolute = /^https?:\/\/[^/?#]*/i.exec(rest);
  if (absolute) rest = rest.slice(absolute[0].length) || "/";
  if (!rest.startsWith("/")) return undefined;
  const mark = rest.indexOf("?");
  const raw = mark < 0 ? rest : rest.slice(0, mark);
  const path = percentDecode(raw);
  if (path === undefined) return undefined;
  const segmented = raw.includes("%")
    ? raw.split("/").map((each) => (percentDecode(each) ?? each).replaceAll("/", "%2F")).join("/")
    : raw;
  return { raw, path, segmented, query: mark < 0 ? "" : rest.slice(mark + 1) };
}

/** The path without `.`, `..` and empty segments; a `/` at its end is kept. */
export function cleanPath(raw: string): string {
  const segments: string[] = [];
  for (const segment of raw.split("/")) {
    if (segment === "..") segments.pop();
    else if (segment !== "" && segment !== ".") segments.push(segment);
  }
  const clean = `/${segments.join("/")}`;
  return clean !== "/" && raw.endsWith("/") ? `${clean}/` : clean;
}
