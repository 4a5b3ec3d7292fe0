/** Kinds of metrics, as the text format names them. */
export type MetricType = "counter" | "gauge" | "histogram" | "summary";

/** Label names with their values, in the order in which they are written. */
export type Labels = Readonly<Record<string, string>>;

const escapes: Readonly<Record<string, string>> = { "\\": "\\\\", "\n": "\\n", '"': '\\"' };

/** Labels as text, without braces. */
export function labelPairs(labels: Labels): string {
  let text = "";
  for (const name in labels) {
    const value = labels[name] ?? "";
    const plain = /[\\\n"]/.test(value) ? value.replace(/[\\\n"]/g, (c) => escapes[c] ?? c) : value;
    text += `${text === "" ? "" : ","}${name}="${plain}"`;
  }
  return text;
}

function labelText(labels: Labels): string {
  const text = labelPairs(labels);
  return text === "" ? "" : `{${text}}`;
}

/** A value as the text format has it. */
export function numberText(value: number): string {
  if (value === Infinity) return "+Inf";
  if (value === -Infinity) return "-Inf";
  return String(value);
}

interface Family {
  readonly type: MetricType;
  readonly head: string;
  readonly lines: string[];
}

/** Makes a page in the Prometheus text format; samples may come in any order and are told by family, sorted. */
export class MetricsPage {
  readonly #families = new Map<string, Family>();
  /** Labels as text: a page has many samples of one object, which is put into words once. */
  readonly #texts = new WeakMap<Labels, string>();

  /** Names a family; one without samples is not told. Naming it again changes nothing. */
  family(name: string, type: MetricType, help: string): void {
    if (this.#families.has(name)) return;
    const text = help.replace(/[\\\n]/g, (c) => escapes[c] ?? c);
    this.#families.set(name, { type, head: `# HELP ${name} ${text}\n# TYPE ${name} ${type}\n`, lines: [] });
  }

  /**
   * Adds a sample; an undefined value adds none. @param atMs its time, milliseconds since the epoch
   * @param suffix of the name, for the parts of a histogram
   */
  sample(name: string, labels: Labels, value: number | undefined, atMs?: number, suffix = ""): void {
    if (value === undefined) return;
    let text = this.#texts.get(labels);
    if (text === undefined) this.#texts.set(labels, text = labelText(labels));
    const time = atMs === undefined ? "" : ` ${Math.floor(atMs)}`;
    this.#families.get(name)?.lines.push(`${name}${suffix}${text} ${numberText(value)}${time}\n`);
  }

  /** Puts in a whole family whose samples are text already, in pieces, each line ended; one without samples is not told. */
  lines(name: string, type: MetricType, help: string, parts: readonly string[]): void {
    if (parts.length === 0) return;
    this.family(name, type, help);
    const family = this.#families.get(name);
    family?.lines.push(parts.join(""));
  }

  /** Every family that was named, with its type, also those without samples. */
  declared(): ReadonlyMap<string, MetricType> {
    return new Map([...this.#families].map(([name, { type }]) => [name, type]));
  }

  /** The whole page. */
  text(): string {
    const names = [...this.#families.keys()].sort();
    const parts: string[] = [];
    for (const name of names) {
      const family = this.#families.get(name);
      if (!family || family.lines.length === 0) continue;
      parts.push(family.head, family.lines.length === 1 ? family.lines[0] ?? "" : family.lines.join(""));
    }
    return parts.join("");
  }
}
