/**
 * Like Promise.all, but ends only when every part has ended, whatever fails: nobody may begin anew beside work that is
 * still under way. Rejects with the first failure in the order given.
 */
export async function allOf<T extends readonly unknown[]>(
  work: readonly [...{ [K in keyof T]: Promise<T[K]> }],
): Promise<T>;
export async function allOf<T>(work: readonly Promise<T>[]): Promise<T[]>;
export async function allOf(work: readonly Promise<unknown>[]): Promise<unknown[]> {
  const results = await Promise.allSettled(work);
  return results.map((result) => {
    if (result.status === "rejected") throw result.reason;
    return result.value;
  });
}
