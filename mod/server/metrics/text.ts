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

/** The comments above a family's samples. */
export function familyHead(name: string, type: MetricType, help: string): string {
  const text = help.replace(/[\\\n]/g, (c) => escapes[c] ?? c);
  return `# HELP ${name} ${text}\n# TYPE ${name} ${type}\n`;
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
    this.#families.set(name, { type, head: familyHead(name, type, help), lines: [] });
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

  /** What each family's part of the page is, by name; in their order. */
  parts(): [name: string, text: string][] {
    return [...this.#families].filter(([, { lines }]) => lines.length > 0)
      .map(([name, { head, lines }]): [string, string] => [name, head + lines.join("")]).sort(([a], [b]) =>
        a < b ? -1 : 1
      );
  }

  /** Every family that was named, with its type, also those without samples. */
  declared(): ReadonlyMap<string, MetricType> {
    return new Map([...this.#families].map(([name, { type }]) => [name, type]));
  }

  /** The whole page. */
  text(): string {
    return this.parts().map(([, text]) => text).join("");
  }
}
