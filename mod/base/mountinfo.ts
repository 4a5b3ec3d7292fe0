import type { MountEntry } from "./host.ts";

/** The kernel writes blanks, tabs, newlines and backslashes of a field as `\` and three octal digits. */
function unescape(field: string): string {
  if (!field.includes("\\")) return field;
  // Octets, not characters: a UTF-8 name may be escaped byte by byte.
  const bytes: number[] = [];
  const encoder = new TextEncoder();
  for (const part of field.split(/(\\[0-7]{3})/)) {
    if (/^\\[0-7]{3}$/.test(part)) bytes.push(parseInt(part.slice(1), 8) & 0xff);
    else bytes.push(...encoder.encode(part));
  }
  return new TextDecoder().decode(new Uint8Array(bytes));
}

/** Reads the text of /proc/<pid>/mountinfo (proc(5)); lines that are none are left out. */
export function parseMountinfo(text: string): MountEntry[] {
  const entries: MountEntry[] = [];
  for (const line of text.split("\n")) {
    const fields = line.split(" ");
    const dash = fields.indexOf("-", 6);
    const [id, , , root, target, options] = fields;
    const [type, source, superOptions] = dash < 0 ? [] : fields.slice(dash + 1);
    if (id === undefined || !/^\d+$/.test(id) || root === undefined || target === undefined || type === undefined) {
      continue;
    }
    const all = [...(options ?? "").split(","), ...(superOptions ?? "").split(",")];
    entries.push({
      id: Number(id),
      source: unescape(source ?? ""),
      target: unescape(target),
      type: unescape(type),
      root: unescape(root),
      options: [...new Set(all.filter((o) => o !== "").map(unescape))],
      propagation: fields.slice(6, dash).filter((f) => f !== ""),
    });
  }
  return entries;
}
