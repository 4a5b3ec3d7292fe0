import assert from "@assert";
import { ask, startServer } from "../testing.ts";
import { contentTypeOf, parseRange } from "./file_headers.ts";
import { listing } from "./log_files.ts";

/** A server whose /logs/ is a directory of ours. */
async function logServer() {
  const top = await Deno.makeTempDir({ prefix: "server-test-" });
  const root = `${top}/log`, pods = `${top}/pods`;
  await Deno.mkdir(`${root}/sub dir`, { recursive: true });
  await Deno.mkdir(pods);
  const server = await startServer({ enableSystemLogQuery: true, podLogsDir: pods }, { dir: top, logDir: root });
  return { top, root, pods, server, base: `https://127.0.0.1:${server.https}` };
}

Deno.test("/logs/ serves files and directories below /var/log, and nothing else", async () => {
  const { top, root, pods, server, base } = await logServer();
  await using _ = server;
  await Deno.writeTextFile(`${root}/a.log`, "0123456789");
  await Deno.writeTextFile(`${root}/sub dir/<x>`, "x");
  await Deno.mkdir(`${root}/index`);
  await Deno.writeTextFile(`${root}/index/index.html`, "<p>");
  await Deno.symlink("../../secret", `${root}/sub dir/index.html`);
  await Deno.writeTextFile(`${top}/secret`, "secret");
  await Deno.writeTextFile(`${pods}/0.log`, "pod");
  await Deno.symlink(`${top}/secret`, `${root}/stolen`);
  await Deno.symlink(top, `${root}/out`);
  await Deno.symlink(`${pods}/0.log`, `${root}/c.log`);
  await Deno.symlink("loop", `${root}/loop`);
  await new Deno.Command("mkfifo", { args: [`${root}/pipe`] }).output();
  const page = '<!doctype html>\n<meta name="viewport" content="width=device-width">\n<pre>\n';
  const cases: [path: string, status: number, body: string, location?: string][] = [
    ["/logs/a.log", 200, "0123456789"],
    [
      "/logs/",
      200,
      page +
      ["a.log", "c.log", "index/", "loop", "out", "pipe", "stolen"].map((n) => `<a href="${n}">${n}</a>\n`).join("") +
      '<a href="sub%20dir/">sub dir/</a>\n</pre>\n',
    ],
    ["/logs", 307, '<a href="/logs/">Temporary Redirect</a>.\n\n', "/logs/"],
    ["/logs/sub%20dir", 301, "", "sub%20dir/"],
    ["/logs/sub%20dir/", 200, `${page}<a href="%3Cx%3E">&lt;x&gt;</a>\n<a href="index.html">index.html</a>\n</pre>\n`],
    ["/logs/sub%20dir/%3Cx%3E", 200, "x"],
    ["/logs/a.log/", 301, "", "../a.log"],
    ["/logs/missing", 404, "404 page not found\n"],
    ["/logs/a.log/x", 404, "404 page not found\n"],
    ["/logs/stolen", 403, "403 Forbidden\n"],
    ["/logs/out/secret", 403, "403 Forbidden\n"],
    ["/logs/c.log", 200, "pod"],
    ["/logs/pipe", 403, "403 Forbidden\n"],
    ["/logs/loop", 403, "403 Forbidden\n"],
    ["/logs/%2e%2e/secret", 404, "404 page not found\n"],
    ["/logs/..%2fsecret", 404, "404 page not found\n"],
    ["/logs/sub%20dir/%2e%2e/a.log", 200, "0123456789"],
    ["/logs/../secret", 307, '<a href="/secret">Temporary Redirect</a>.\n\n', "/secret"],
    ["/logs/index/", 200, "<p>"],
    ["/logs/index/index.html", 301, "", "./"],
    ["/logs/a.log%00", 404, "404 page not found\n"],
    [`/logs/${"x".repeat(5000)}`, 500, "500 Internal Server Error\n"],
    ["/logs/?query=/a.log", 200, "0123456789"],
    ["/logs/?query=a.log&query=none", 200, "0123456789\nlog not found for none\n"],
    ["/logs/?query=c&query=stolen", 200, "pod\nlog not found for stolen\n"],
    [
      "/logs/?query=a&tailLines=1",
      200,
      "\noptions present and query resolved to log files for [a]\ntry without specifying options\n",
    ],
    ["/logs/?query=/../secret", 404, "404 page not found\n"],
    ["/logs/a.log?query=a", 406, "path not allowed in query mode\n"],
    ["/logs/?query=a;b", 406, 'query: Invalid value: "a;b": input contains unsupported characters\n'],
    ["/logs/?query=%20", 400, 'query: Invalid value: []string{" "}: may not be empty\n'],
  ];
  for (const [path, status, body, location] of cases) {
    const answer = await ask(`${base}${path}`, { path });
    assert.equal(`${answer.status} ${answer.body}`, `${status} ${body}`, path);
    assert.equal(answer.headers.location, location, path);
  }
  assert.equal((await ask(`${base}/logs/a.log`, { method: "POST" })).status, 405);
});

Deno.test("/logs/ answers ranges and dates", async () => {
  const { root, server, base } = await logServer();
  await using _ = server;
  await Deno.writeTextFile(`${root}/a.log`, "0123456789");
  await Deno.utime(`${root}/a.log`, new Date("2026-01-02T03:04:05Z"), new Date("2026-01-02T03:04:05.700Z"));
  const date = "Fri, 02 Jan 2026 03:04:05 GMT";
  const cases: [headers: Record<string, string>, status: number, body: string, range?: string][] = [
    [{}, 200, "0123456789"],
    [{ range: "bytes=2-4" }, 206, "234", "bytes 2-4/10"],
    [{ range: "bytes=8-" }, 206, "89", "bytes 8-9/10"],
    [{ range: "bytes=-3" }, 206, "789", "bytes 7-9/10"],
    [{ range: "bytes=10-" }, 416, "invalid range: failed to overlap\n", "bytes */10"],
    [{ range: "lines=1" }, 416, "invalid range\n"],
    [{ range: "bytes=0-0,2-3" }, 200, "0123456789"],
    [{ range: "bytes=2-4", "if-range": date }, 206, "234", "bytes 2-4/10"],
    [{ range: "bytes=2-4", "if-range": "Fri, 02 Jan 2026 03:04:04 GMT" }, 200, "0123456789"],
    [{ "if-modified-since": date }, 304, ""],
    [{ "if-modified-since": "Fri, 02 Jan 2026 03:04:04 GMT" }, 200, "0123456789"],
  ];
  for (const [headers, status, body, range] of cases) {
    const answer = await ask(`${base}/logs/a.log`, { headers });
    assert.equal(`${answer.status} ${answer.body}`, `${status} ${body}`, JSON.stringify(headers));
    assert.equal(answer.headers["content-range"], range, JSON.stringify(headers));
  }
  assert.equal((await ask(`${base}/logs/a.log`)).headers["last-modified"], date);
  const big = new Uint8Array(3_000_000).fill(120);
  await Deno.writeFile(`${root}/big`, big);
  assert.equal((await ask(`${base}/logs/big`)).body.length, big.length);
});

Deno.test("parseRange", () => {
  const cases: [header: string | undefined, size: number, want: ReturnType<typeof parseRange>][] = [
    [undefined, 10, undefined],
    ["bytes=0-0", 10, { start: 0, length: 1 }],
    ["bytes= 5 - 100 ", 10, { start: 5, length: 5 }],
    ["bytes=-100", 10, { start: 0, length: 10 }],
    ["bytes=-0", 10, "unsatisfiable"],
    ["bytes=0-", 0, "unsatisfiable"],
    ["bytes=4-2", 10, "malformed"],
    ["bytes=-", 10, "malformed"],
    ["bytes=a-b", 10, "malformed"],
    ["bytes=99999999999999999999-", 10, "malformed"],
    ["bytes=", 10, undefined],
  ];
  for (const [header, size, want] of cases) assert.deepEqual(parseRange(header, size), want, header);
});

Deno.test("content types and names in listings", () => {
  const bytes = (text: string) => new TextEncoder().encode(text);
  assert.equal(contentTypeOf("/a/b.LOG", bytes("")), "text/plain; charset=utf-8");
  assert.equal(contentTypeOf("/a/syslog", bytes("x\ty\n")), "text/plain; charset=utf-8");
  assert.equal(contentTypeOf("/a/wtmp", bytes("x\0")), "application/octet-stream");
  assert.equal(contentTypeOf("/a.b/__proto__", new Uint8Array([0x1f, 0x8b, 8, 0])), "application/x-gzip");
  assert.match(listing([{ name: "a:b", isDirectory: false }]), /<a href="\.\/a:b">a:b<\/a>/);
  assert.match(listing([{ name: '"?#%', isDirectory: true }]), /<a href="%22%3F%23%25\/">&#34;\?#%\/<\/a>/);
});
