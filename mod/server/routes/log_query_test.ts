import assert from "@assert";
import { checkLogQuery, joined, journalArguments, parseLogQuery } from "./log_query.ts";

Deno.test("parameters of a node log query: what cannot be read is 400", () => {
  const cases: [parameters: string, want: unknown][] = [
    ["", undefined],
    ["unknown=true", undefined],
    ["sinceTime=", undefined],
    ["boot=", undefined],
    ["query=foo&query=bar", { services: ["foo", "bar"], files: [] }],
    ["query=/foo&query=%5Cbar", { services: [], files: ["/foo", "\\bar"] }],
    ["tailLines=100&boot=-23&pattern=x", { services: [], files: [], tailLines: 100, boot: -23, pattern: "x" }],
    ["sinceTime=2026-01-02T03:04:05Z", { services: [], files: [], since: Date.UTC(2026, 0, 2, 3, 4, 5) }],
    ["sinceTime=2019-12-04%2002:00:00", 'sinceTime: Invalid value: "2019-12-04 02:00:00": invalid time format'],
    ["untilTime=2019-13-40T00:00:00Z", 'untilTime: Invalid value: "2019-13-40T00:00:00Z": invalid time format'],
    ["tailLines=x", 'tailLines: Invalid value: "x": strconv.Atoi: parsing "x": invalid syntax'],
    ["query=%20", 'query: Invalid value: []string{" "}: may not be empty'],
    [
      "boot=a&tailLines=b",
      '[boot: Invalid value: "a": strconv.Atoi: parsing "a": invalid syntax, ' +
      'tailLines: Invalid value: "b": strconv.Atoi: parsing "b": invalid syntax]',
    ],
  ];
  for (const [parameters, want] of cases) {
    const { errors, query } = parseLogQuery(new URLSearchParams(parameters));
    assert.deepEqual(errors ? joined(errors) : query, want, parameters);
  }
});

Deno.test("queries that may not be: 406", () => {
  const cases: [parameters: string, fault: RegExp | undefined][] = [
    ["query=kubelet&tailLines=100000&boot=0", undefined],
    ["query=a@b.c:d_1-2", undefined],
    ["query=a&pattern=(?i)x(?P<n>y)", undefined],
    ["tailLines=1", /cannot be empty with options/],
    ["query=a&query=/b", /cannot specify a file and service/],
    ["query=/a&query=/b", /more than one file/],
    ["query=/a&boot=0", /cannot specify file with options/],
    ["query=a%3Bb", /unsupported characters/],
    [`query=${"a".repeat(257)}`, /length must be less than 256/],
    ["query=a&query=b&query=c&query=d&query=e", /Too many: 5: must have at most 4 items/],
    ["query=a&boot=1", /boot: Invalid value: 1: must be less than 1/],
    ["query=a&tailLines=100001", /must be between 0 and 100000, inclusive/],
    ["query=a&tailLines=-1", /must be between 0 and 100000, inclusive/],
    ["query=a&pattern=(", /pattern: Invalid value: "\(": error parsing regexp/],
    ["query=a&sinceTime=2026-01-02T00:00:00Z&untilTime=2026-01-01T00:00:00Z", /must be after `sinceTime`/],
  ];
  for (const [parameters, fault] of cases) {
    const { query } = parseLogQuery(new URLSearchParams(parameters));
    if (!query) throw new Error(`${parameters}: no query`);
    const faults = checkLogQuery(query);
    if (fault) assert.match(joined(faults), fault, parameters);
    else assert.deepEqual(faults, [], parameters);
  }
});

Deno.test("arguments of journalctl", () => {
  const { query } = parseLogQuery(
    new URLSearchParams(
      "query=a&sinceTime=2026-01-02T03:04:05Z&untilTime=2026-11-12T13:14:15%2B01:00&tailLines=3&pattern=x&boot=-1",
    ),
  );
  if (!query) throw new Error("no query");
  assert.deepEqual(journalArguments(query, ["a", "b"]), [
    ...["--utc", "--no-pager", "--output=short-precise", "--since=2026-1-2 3:4:5", "--until=2026-11-12 12:14:15"],
    ...["--pager-end", "--lines=3", "--unit=a", "--unit=b", "--grep=x", "--boot", "-1"],
  ]);
});
