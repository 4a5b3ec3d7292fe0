/** A node log query (http.md section 6). Times are milliseconds since the epoch. */
export interface LogQuery {
  readonly services: readonly string[];
  readonly files: readonly string[];
  readonly since?: number;
  readonly until?: number;
  readonly tailLines?: number;
  readonly boot?: number;
  readonly pattern?: string;
}

const maxServices = 4;
const maxServiceLength = 256;
const maxTailLines = 100_000;
const rfc3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/;
const unsafe = /[^a-zA-Z\-_.:0-9@]/;

function invalid(field: string, value: string | number | readonly string[], why: string): string {
  const shown = typeof value === "object" ? `[]string{${value.map((each) => JSON.stringify(each)).join(", ")}}` : value;
  return `${field}: Invalid value: ${
    typeof shown === "string" && typeof value === "string" ? JSON.stringify(shown) : shown
  }: ${why}`;
}

/** Errors as one text: alone, or in brackets. */
export function joined(errors: readonly string[]): string {
  const different = [...new Set(errors)];
  return different.length === 1 ? different[0] ?? "" : `[${different.join(", ")}]`;
}

/** Reads the parameters: errors (400), or the query; neither when no parameter of a query is set. */
export function parseLogQuery(
  parameters: URLSearchParams,
): { errors: string[]; query?: undefined } | { errors?: undefined; query: LogQuery | undefined } {
  const errors: string[] = [];
  const all = parameters.getAll("query");
  const files = all.filter((each) => /[/\\]/.test(each));
  const services = all.filter((each) => !/[/\\]/.test(each) && each.trim() !== "");
  if (all.length > 0 && files.length + services.length === 0) errors.push(invalid("query", all, "may not be empty"));
  const time = (name: string): number | undefined => {
    const text = parameters.get(name) ?? "";
    if (text === "") return undefined;
    const at = rfc3339.test(text) ? Date.parse(text) : NaN;
    if (!Number.isNaN(at)) return at;
    errors.push(invalid(name, text, "invalid time format"));
    return undefined;
  };
  const integer = (name: string): number | undefined => {
    const text = parameters.get(name) ?? "";
    if (text === "") return undefined;
    if (/^[+-]?\d{1,15}$/.test(text)) return Number(text);
    errors.push(invalid(name, text, `strconv.Atoi: parsing ${JSON.stringify(text)}: invalid syntax`));
    return undefined;
  };
  const since = time("sinceTime"), until = time("untilTime"), boot = integer("boot"), tailLines = integer("tailLines");
  const pattern = parameters.get("pattern") ?? "";
  if (errors.length > 0) return { errors };
  const query: LogQuery = {
    services,
    files,
    ...(since === undefined ? {} : { since }),
    ...(until === undefined ? {} : { until }),
    ...(tailLines === undefined ? {} : { tailLines }),
    ...(boot === undefined ? {} : { boot }),
    ...(pattern === "" ? {} : { pattern }),
  };
  const empty = services.length + files.length === 0 && Object.keys(query).length === 2;
  return { query: empty ? undefined : query };
}

/** True when the query has an option besides its services or file. */
export function hasOptions(query: LogQuery): boolean {
  return Object.keys(query).length > 2;
}

/** What is wrong with a query that could be read (406). Whether its file exists is for the caller to see. */
export function checkLogQuery(query: LogQuery): string[] {
  const { services, files, since, until, boot, tailLines, pattern } = query;
  const errors: string[] = [];
  for (const service of services) {
    if (service.length > maxServiceLength) {
      errors.push(invalid("query", service.slice(0, 300), `length must be less than ${maxServiceLength}`));
    } else if (unsafe.test(service)) errors.push(invalid("query", service, "input contains unsupported characters"));
  }
  if (services.length > maxServices) {
    errors.push(`query: Too many: ${services.length}: must have at most ${maxServices} items`);
  }
  if (files.length + services.length === 0) errors.push("query: Required value: cannot be empty with options");
  else if (files.length > 0 && services.length > 0) {
    errors.push(invalid("query", `[${files.join(" ")}], [${services.join(" ")}]`, "cannot specify a file and service"));
  } else if (files.length > 1) errors.push(invalid("query", files, "cannot specify more than one file"));
  else if (files.length === 1 && hasOptions(query)) {
    errors.push(invalid("query", files, "cannot specify file with options"));
  }
  if (since !== undefined && until !== undefined && since > until) {
    errors.push(invalid("untilTime", new Date(until).toISOString(), "must be after `sinceTime`"));
  }
  if (boot !== undefined && boot > 0) errors.push(invalid("boot", boot, "must be less than 1"));
  if (tailLines !== undefined && (tailLines < 0 || tailLines > maxTailLines)) {
    errors.push(invalid("tailLines", tailLines, `must be between 0 and ${maxTailLines}, inclusive`));
  }
  if (pattern !== undefined) {
    try {
      // Only the shape is judged here, journalctl runs it: what Perl has and JavaScript has not is put aside.
      new RegExp(pattern.replace(/\(\?[a-zA-Z-]+\)/g, "").replaceAll("(?P<", "(?<"));
    } catch {
      errors.push(invalid("pattern", pattern.slice(0, 300), "error parsing regexp"));
    }
  }
  return errors;
}

function journalTime(ms: number): string {
  const at = new Date(ms);
  const [y, mo, d] = [at.getUTCFullYear(), at.getUTCMonth() + 1, at.getUTCDate()];
  return `${y}-${mo}-${d} ${at.getUTCHours()}:${at.getUTCMinutes()}:${at.getUTCSeconds()}`;
}

/** Arguments of journalctl for the services that log to the journal. */
export function journalArguments(query: LogQuery, services: readonly string[]): string[] {
  const { since, until, tailLines, pattern, boot } = query;
  return [
    "--utc",
    "--no-pager",
    "--output=short-precise",
    ...(since === undefined ? [] : [`--since=${journalTime(since)}`]),
    ...(until === undefined ? [] : [`--until=${journalTime(until)}`]),
    ...(tailLines === undefined ? [] : ["--pager-end", `--lines=${tailLines}`]),
    ...services.map((service) => `--unit=${service}`),
    ...(pattern === undefined ? [] : [`--grep=${pattern}`]),
    ...(boot === undefined ? [] : ["--boot", String(boot)]),
  ];
}
