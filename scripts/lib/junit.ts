/** How many tests ran to which end. */
export interface Counts {
  readonly passed: number;
  readonly failed: number;
}

/**
 * Counts the test cases of Deno's JUnit report. Skipped ones count as neither. Throws when the text is not a whole
 * report: a runner that was cut off must not look like one that had nothing to do.
 */
export function countJunit(xml: string): Counts {
  if (!/<testsuites\b[^>]*>[\s\S]*<\/testsuites>\s*$/.test(xml)) throw new Error("the test report is not complete");
  let passed = 0, failed = 0;
  for (const [, body] of xml.matchAll(/<testcase\b(?:[^>"]|"[^"]*")*?(?:\/>|>([\s\S]*?)<\/testcase>)/g)) {
    if (/<(failure|error)\b/.test(body ?? "")) failed++;
    else if (!/<skipped\b/.test(body ?? "")) passed++;
  }
  return { passed, failed };
}
