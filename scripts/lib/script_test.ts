import assert from "@assert";
import { repository } from "./files.ts";
import { noArguments, optionsOf, outcomeOf, Refusal, type Script, UsageError } from "./script.ts";

async function ran(main: Script["main"], ...args: string[]): Promise<[code: number, printed: string, told: string]> {
  let [printed, told] = ["", ""];
  const code = await outcomeOf({
    name: "x",
    usage: "deno task x",
    main,
    print: (line) => printed += line,
    complain: (line) => told += line,
  }, args);
  return [code, printed, told];
}

const options = { only: { type: "string", multiple: true }, all: { type: "boolean", default: false } } as const;

Deno.test("script: what is none of its options is refused by name, with the usage", async () => {
  const main: Script["main"] = (args) => optionsOf(args, options).all ? 0 : 3;
  assert.deepEqual(await ran(main, "--all"), [0, "", ""]);
  assert.deepEqual(await ran(main), [3, "", ""]);
  for (const args of [["--bogus"], ["word"], ["--only"], ["--all=yes"], ["--all", "--", "word"]]) {
    const [code, printed, told] = await ran(main, ...args);
    assert.deepEqual([code, printed], [2, ""], args.join(" "));
    assert.match(told, /^x: .*(--bogus|word|--only|--all)[^]*deno task x$/, args.join(" "));
  }
});

Deno.test("script: one without arguments refuses any", async () => {
  const main: Script["main"] = (args) => (noArguments(args), 0);
  assert.deepEqual(await ran(main), [0, "", ""]);
  const [code, , told] = await ran(main, "--bogus");
  assert.deepEqual([code, /--bogus[^]*deno task x$/.test(told)], [2, true]);
});

Deno.test("script: help, a refusal without usage, a failure", async () => {
  const never = () => assert.fail("it must not run");
  assert.deepEqual(await ran(never, "--help"), [0, "deno task x", ""]);
  assert.deepEqual(await ran(never, "-h"), [0, "deno task x", ""]);
  assert.deepEqual(await ran(() => Promise.reject(new Refusal("needs root"))), [2, "", "x: needs root"]);
  assert.deepEqual(await ran(() => Promise.reject(new Error("no disk"))), [1, "", "x: no disk"]);
  assert(new UsageError("") instanceof Refusal);
});

Deno.test("script: every task's script is run this way, so that none takes an argument that it does not know", async () => {
  const { tasks }: { tasks: Record<string, string> } = JSON.parse(await Deno.readTextFile(`${repository}/deno.json`));
  const scripts = Object.values(tasks).flatMap((task) =>
    /^deno run .*?((?:scripts|tests)\/\S+\.ts)/.exec(task)?.[1] ?? []
  );
  assert(new Set(scripts).size >= 9, scripts.join());
  for (const path of new Set([...scripts, "scripts/features.ts", "tests/simulation/kill_main.ts"])) {
    const text = await Deno.readTextFile(`${repository}/${path}`);
    assert.match(text, /^(if \(import\.meta\.main\) \{?\s*)?await runScript\(/m, path);
    assert.match(text, /\b(optionsOf|noArguments|UsageError|devOptions|readOptions)\b/, path);
  }
});
