/** One thing wrong with an object. */
export interface FieldProblem {
  /** The field, such as `spec.containers[0].name`. */
  readonly path: string;
  /** The value that stands there, shortened for a message; absent when nothing stands there. */
  readonly value?: string;
  /** What is wrong with it. */
  readonly problem: string;
  /** What to write instead. */
  readonly remedy: string;
}

/** Problems one message lists; the rest is counted. */
const shownProblems = 20;

/** The problems as one line, each with path, value and remedy. */
export function formatProblems(problems: readonly FieldProblem[]): string {
  const lines = problems.slice(0, shownProblems).map(({ path, value, problem, remedy }) =>
    `${path}: ${value === undefined ? "" : `${value} `}${problem}; ${remedy}`
  );
  if (problems.length > shownProblems) lines.push(`and ${problems.length - shownProblems} more`);
  return lines.join("; ");
}

/** Collects the problems of one object. */
export class Problems {
  readonly list: FieldProblem[] = [];

  /** Notes a problem with a value; `undefined` means that nothing stands there. */
  add(path: string, value: unknown, problem: string, remedy: string): void {
    this.list.push({ path, ...(value === undefined ? {} : { value: show(value) }), problem, remedy });
  }

  /** Notes that a field is missing. */
  required(path: string, remedy: string): void {
    this.add(path, undefined, "is required", remedy);
  }

  /** Notes that a field must not be set here. */
  forbidden(path: string, why: string, remedy = "remove it"): void {
    this.add(path, undefined, `may not be set ${why}`, remedy);
  }

  /** Checks a value against the known ones; an empty one is missing unless it is among them. */
  oneOf(path: string, value: string | undefined, known: readonly string[]): void {
    if (value !== undefined && known.includes(value)) return;
    const remedy = `use one of ${known.map((k) => JSON.stringify(k)).join(", ")}`;
    if (value === undefined || value === "") this.required(path, remedy);
    else this.add(path, value, "is not known", remedy);
  }

  /** Checks that a number, when given, lies in a range. */
  range(path: string, value: number | undefined, low: number, high: number): void {
    if (value === undefined || (value >= low && value <= high)) return;
    this.add(path, value, "is out of range", `use a number from ${low} to ${high}`);
  }

  /** Checks that a number, when given, is not negative. */
  notNegative(path: string, value: number | undefined): void {
    if (value !== undefined && value < 0) this.add(path, value, "is negative", "use 0 or more");
  }
}

function show(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 120 ? `${text.slice(0, 120)}…` : text;
}
