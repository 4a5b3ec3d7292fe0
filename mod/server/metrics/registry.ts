import type { Labels, MetricsPage } from "./text.ts";

/** Upper bounds of histograms that have none of their own, seconds. */
export const usualBuckets = [.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10] as const;

interface Series<T> {
  readonly labels: Labels;
  value: T;
}

/** Series by their labels. */
class SeriesMap<T> {
  readonly #series = new Map<string, Series<T>>();

  at(labels: Labels, initial: () => T): Series<T> {
    const key = JSON.stringify(Object.values(labels));
    let series = this.#series.get(key);
    if (!series) this.#series.set(key, series = { labels, value: initial() });
    return series;
  }

  get size(): number {
    return this.#series.size;
  }

  all(): Iterable<Series<T>> {
    return this.#series.values();
  }

  removeIf(gone: (labels: Labels) => boolean): void {
    for (const [key, { labels }] of this.#series) if (gone(labels)) this.#series.delete(key);
  }
}

/** What every metric is. */
interface Facts {
  readonly name: string;
  readonly help: string;
}

/** A count, or a number that goes up and down. A series is there from its first mention on. */
export class Numbers {
  readonly #series = new SeriesMap<number>();

  constructor(readonly facts: Facts & { readonly type: "counter" | "gauge" }) {}

  /** Labels must have the same names in the same order each time. */
  add(labels: Labels = {}, by = 1): void {
    this.#series.at(labels, () => 0).value += by;
  }

  set(labels: Labels, value: number): void {
    this.#series.at(labels, () => 0).value = value;
  }

  get size(): number {
    return this.#series.size;
  }

  /** Forgets series. */
  removeIf(gone: (labels: Labels) => boolean): void {
    this.#series.removeIf(gone);
  }

  /** The sum over all series. */
  total(): number {
    let sum = 0;
    for (const { value } of this.#series.all()) sum += value;
    return sum;
  }

  writeTo(page: MetricsPage): void {
    const { name, help, type } = this.facts;
    page.family(name, type, help);
    for (const { labels, value } of this.#series.all()) page.sample(name, labels, value);
  }
}

/** How observations are spread. */
export class Histogram {
  readonly #series = new SeriesMap<{ counts: number[]; sum: number; count: number }>();
  readonly #buckets: readonly number[];

  constructor(readonly facts: Facts & { readonly buckets?: readonly number[] }) {
    this.#buckets = facts.buckets ?? usualBuckets;
  }

  observe(labels: Labels, value: number): void {
    const { value: spread } = this.#series.at(labels, () => this.#empty());
    const at = this.#buckets.findIndex((bound) => value <= bound);
    if (at >= 0) spread.counts[at] = (spread.counts[at] ?? 0) + 1;
    spread.sum += value;
    spread.count++;
  }

  /** Makes the series without an observation, for a histogram without labels. */
  begin(labels: Labels = {}): this {
    this.#series.at(labels, () => this.#empty());
    return this;
  }

  #empty(): { counts: number[]; sum: number; count: number } {
    return { counts: this.#buckets.map(() => 0), sum: 0, count: 0 };
  }

  /** Forgets series. */
  removeIf(gone: (labels: Labels) => boolean): void {
    this.#series.removeIf(gone);
  }

  writeTo(page: MetricsPage): void {
    const { name, help } = this.facts;
    page.family(name, "histogram", help);
    for (const { labels, value: { counts, sum, count } } of this.#series.all()) {
      let below = 0;
      this.#buckets.forEach((bound, at) => {
        below += counts[at] ?? 0;
        page.sample(name, { ...labels, le: String(bound) }, below, undefined, "_bucket");
      });
      page.sample(name, { ...labels, le: "+Inf" }, count, undefined, "_bucket");
      page.sample(name, labels, sum, undefined, "_sum");
      page.sample(name, labels, count, undefined, "_count");
    }
  }
}

/** Bounds that grow by a factor. */
export function exponential(first: number, factor: number, count: number): number[] {
  return Array.from({ length: count }, (_, at) => Number((first * factor ** at).toPrecision(12)));
}
