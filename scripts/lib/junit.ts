/** How many tests ran to which end. */
export interface Counts {
  readonly passed: number;
  readonly failed: number;
}

/** Counts, and what each failed test said: its name and the first lines of its error. */
export interface Report extends Counts {
  readonly failures: readonly string[];
}

/**
 * What of an error is told again at the end of a run, where nothing that follows can push it out of sight: so many
 * lines, so many characters of each. The records of an agent's log (JSON) stand where the test ran.
 */
const linesTold = 12;
const charactersTold = 240;
const logRecord = /^\s*\{"/;
const entities: Readonly<Record<string, string>> = { lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" };

/**
 * Counts the test cases of Deno's JUnit report. Skipped ones count as neither. Throws when the text is not a whole
 * report: a runner that was cut off must not look like one that had nothing to do.
 */
export function countJunit(xml: string): Report {
  if (!/<testsuites\b[^>]*>[\s\S]*<\/testsuites>\s*$/.test(xml)) throw new Error("the test report is not complete");
  let passed = 0;
  const failures: string[] = [];
  for (const [head, body] of xml.matchAll(/<testcase\b(?:[^>"]|"[^"]*")*?(?:\/>|>([\s\S]*?)<\/testcase>)/g)) {
    if (/<(failure|error)\b/.test(body ?? "")) failures.push(told(head));
    else if (!/<skipped\b/.test(body ?? "")) passed++;
  }
  return { passed, failed: failures.length, failures };
}

function told(testcase: string): string {
  const name = testcase.match(/\bname="([^"]*)"/)?.[1] ?? "?";
  const body = testcase.match(/<(?:failure|error)\b(?:[^>"]|"[^"]*")*>([\s\S]*?)<\/(?:failure|error)>/)?.[1] ?? "";
  const lines = plain(body).trim().split("\n").filter((line) => line.trim() !== "" && !logRecord.test(line));
  return [plain(name), ...lines.slice(0, linesTold).map((line) => `  ${line.slice(0, charactersTold)}`)].join("\n");
}

function plain(text: string): string {
  return text.replace(/&(\w+|#\d+);/g, (whole, name: string) => {
    return name.startsWith("#") ? String.fromCodePoint(Number(name.slice(1))) : entities[name] ?? whole;
  });
}
