import { table } from "../../scripts/lib/table.ts";

/** One measured figure: what was measured in each round, and what it may be at most. */
export interface Figure {
  readonly name: string;
  readonly unit: "ms" | "ratio" | "%" | "MiB" | "MB/s" | "1/s" | "lines";
  readonly values: readonly number[];
  /** The most that the median may be; without it the figure is only told. */
  readonly limit?: number;
}

/** The middle of the values, or the mean of the two in the middle; NaN without any. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const half = sorted.length / 2;
  const upper = sorted[Math.floor(half)] ?? NaN;
  return Number.isInteger(half) ? ((sorted[half - 1] ?? NaN) + upper) / 2 : upper;
}

/** Whether a figure is within its limit; one without a limit is, one without values is not. */
export function within({ values, limit }: Figure): boolean {
  return limit === undefined || median(values) <= limit;
}

/** Quotients of two series of one run: the agent's median against the floor's, and pairwise for the spread. */
export function ratio(name: string, agent: readonly number[], floor: readonly number[], limit?: number): Figure {
  const base = median(floor);
  return {
    name,
    unit: "ratio",
    values: agent.map((value) => value / base),
    ...(limit === undefined ? {} : { limit }),
  };
}

function shown(value: number, unit: Figure["unit"]): string {
  if (!Number.isFinite(value)) return "-";
  if (unit === "lines") return value.toFixed(0);
  // what is short is told more exactly
  return unit === "ms" && value >= 20 ? value.toFixed(0) : value.toFixed(2);
}

/** The figures as a table: median, least, most, limit, verdict. */
export function figureTable(figures: readonly Figure[]): string {
  const rows = figures.map((figure) => {
    const { name, unit, values, limit } = figure;
    return [
      name,
      shown(median(values), unit),
      shown(Math.min(...values), unit),
      shown(Math.max(...values), unit),
      unit,
      limit === undefined ? "" : `<= ${limit}`,
      limit === undefined ? "" : within(figure) ? "ok" : "over",
      String(values.length),
    ];
  });
  return table(["FIGURE", "MEDIAN", "MIN", "MAX", "UNIT", "LIMIT", "", "ROUNDS"], rows);
}

/** The figures for machines. */
export function figureJson(figures: readonly Figure[]): Record<string, unknown>[] {
  return figures.map((figure) => ({ ...figure, median: median(figure.values), ok: within(figure) }));
}
