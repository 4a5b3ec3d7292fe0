/**
 * Rows as aligned text columns two spaces apart, the header in capitals as given. Control characters in cells become
 * spaces, so that what a pod says cannot move the cursor; with `width` (columns) lines are cut to it.
 */
export function table(header: readonly string[], rows: readonly (readonly string[])[], width = Infinity): string {
  // deno-lint-ignore no-control-regex
  const clean = [header, ...rows].map((row) => row.map((cell) => cell.replace(/[\u0000-\u001f\u007f-\u009f]+/g, " ")));
  const widths: number[] = [];
  for (const row of clean) row.forEach((cell, i) => widths[i] = Math.max(widths[i] ?? 0, [...cell].length));
  return clean.map((row) => {
    const line = row.map((cell, i) => cell + " ".repeat((widths[i] ?? 0) - [...cell].length)).join("  ").trimEnd();
    return [...line].length > width ? [...line].slice(0, Math.max(0, width)).join("") : line;
  }).join("\n");
}
