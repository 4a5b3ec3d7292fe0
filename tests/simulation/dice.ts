import { type Random, seeded } from "../../mod/base/random.ts";

/** Choices made from a seed. */
export class Dice {
  readonly random: Random;

  constructor(seed: number) {
    this.random = seeded(seed);
  }

  /** True with this probability. */
  chance(probability: number): boolean {
    return this.random() < probability;
  }

  /** A whole number from `low` to `high`, both included. */
  int(low: number, high: number): number {
    return low + Math.floor(this.random() * (high - low + 1));
  }

  pick<T>(list: readonly T[]): T {
    const value = list[Math.floor(this.random() * list.length)];
    if (value === undefined) throw new RangeError("nothing to pick from");
    return value;
  }

  /** One of the keys, each as likely as its weight says. */
  weighted<K extends string>(weights: Readonly<Record<K, number>>): K {
    const entries = Object.entries(weights) as [K, number][];
    let left = this.random() * entries.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [key, weight] of entries) {
      left -= weight;
      if (left < 0) return key;
    }
    return entries[0]![0];
  }

  /** A length between `low` and `high`, short ones as likely as long ones on a logarithmic scale. */
  span(low: number, high: number): number {
    return Math.round(low * (high / low) ** this.random());
  }
}
