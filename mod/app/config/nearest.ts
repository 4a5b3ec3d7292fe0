/** Edits (insert, delete, replace, swap of neighbours) from one word to another. */
function distance(a: string, b: string): number {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let best = Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        best = Math.min(best, (before[j - 2] ?? 0) + 1);
      }
      next.push(best);
    }
    before = row;
    row = next;
  }
  return row[b.length] ?? 0;
}

/** The known words that a mistyped one most likely meant, best first; none when nothing is close. */
export function nearest(word: string, known: Iterable<string>, limit = 3): string[] {
  const wanted = word.slice(0, 80).toLowerCase();
  const found: { name: string; score: number }[] = [];
  for (const name of known) {
    const lower = name.toLowerCase();
    const part = wanted.length > 3 && (lower.includes(wanted) || wanted.includes(lower));
    const score = part ? 1 : distance(wanted, lower);
    if (score <= Math.max(2, Math.floor(wanted.length / 3))) found.push({ name, score });
  }
  found.sort((a, b) => a.score - b.score || a.name.length - b.name.length || (a.name < b.name ? -1 : 1));
  return found.slice(0, limit).map((candidate) => candidate.name);
}

/** After so many mistakes of a kind, hints are left out: they cost time and help nobody. */
const MAX_HINTS = 20;

/**
 * `; did you mean a, b?`, or nothing. `before` is the number of mistakes reported already: a hostile text can hold
 * tens of thousands.
 */
export function didYouMean(
  word: string,
  known: Iterable<string>,
  options: { prefix?: string; before?: number } = {},
): string {
  if ((options.before ?? 0) >= MAX_HINTS) return "";
  const prefix = options.prefix ?? "";
  const names = nearest(word, known);
  return names.length === 0 ? "" : `; did you mean ${names.map((name) => prefix + name).join(", ")}?`;
}

/** `a, b or c`. */
export function listOr(words: readonly string[]): string {
  const last = words.at(-1) ?? "";
  return words.length < 2 ? last : `${words.slice(0, -1).join(", ")} or ${last}`;
}
