import assert from "@assert";
import { buildRequest, headOf, requestTarget, resolvePort, urlOf } from "./request.ts";

const ports = { ports: [{ name: "web", containerPort: 8080 }, { name: "bad", containerPort: 70000 }] };

Deno.test("resolvePort: numbers, names, digits in a string", () => {
  const cases: [number | string, number | RegExp][] = [
    [80, 80],
    ["web", 8080],
    ["8443", 8443],
    ["nope", /port nope not found/],
    ["__proto__", /not found/],
    ["bad", /invalid port number: 70000/],
    [0, /invalid port number: 0/],
    [65536, /invalid port/],
    [NaN, /invalid port/],
    ["-1", /not found/],
  ];
  for (const [port, want] of cases) {
    if (typeof want === "number") assert.equal(resolvePort(port, ports), want);
    else assert.throws(() => resolvePort(port, ports), want, String(port));
  }
});

Deno.test("requestTarget escapes what cannot stand in a request line", () => {
  const cases: [string, string][] = [
    ["", "/"],
    ["/healthz", "/healthz"],
    ["healthz", "/healthz"],
    ["/a?x=1&y=2", "/a?x=1&y=2"],
    ["/a#frag", "/a"],
    ["/a b", "/a%20b"],
    ["/a\r\nX: y", "/a%0D%0AX:%20y"],
    ["/%zz?q", "/%25zz%3Fq"],
    ["/é", "/%C3%A9"],
    ["http://other/x", "/x"],
    ["//other/x", "/x"],
    ["/../up", "/../up"],
  ];
  for (const [path, want] of cases) assert.equal(requestTarget(path), want, path);
});

Deno.test("buildRequest: user agent, Accept, Host, IPv6, ports by name", () => {
  const call = { container: ports, podIP: "10.0.0.9", purpose: "probe" as const };
  const plain = buildRequest({ ...call, action: { port: "web", path: "/ok" } });
  assert.equal(
    headOf(plain),
    "GET /ok HTTP/1.1\r\nHost: 10.0.0.9:8080\r\nUser-Agent: kube-probe/1.36\r\nAccept: */*\r\nConnection: close\r\n\r\n",
  );
  assert.equal(urlOf(plain), "http://10.0.0.9:8080/ok");

  const rich = buildRequest({
    ...call,
    podIP: "fd00::1",
    purpose: "lifecycle",
    action: {
      port: 443,
      scheme: "HTTPS",
      httpHeaders: [
        { name: "Host", value: "shop.example" },
        { name: "X-A", value: "1" },
        { name: "x-a", value: "2\r\nEvil: 1" },
        { name: "accept", value: "" },
        { name: "Content-Length", value: "5" },
      ],
    },
  });
  assert.equal(urlOf(rich), "https://[fd00::1]:443/");
  assert.equal(
    headOf(rich),
    "GET / HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: kube-lifecycle/1.36\r\nX-A: 1\r\nx-a: 2  Evil: 1\r\n" +
      "Connection: close\r\n\r\n",
  );
  const agent = buildRequest({ ...call, action: { port: 1, httpHeaders: [{ name: "User-Agent", value: "me" }] } });
  assert.match(headOf(agent), /\r\nUser-Agent: me\r\nAccept/);
});

Deno.test("buildRequest: the plain HTTP fallback drops Authorization", () => {
  const action = { port: 1, scheme: "HTTPS", httpHeaders: [{ name: "authorization", value: "secret" }] };
  const request = buildRequest({
    container: {},
    podIP: "1.2.3.4",
    purpose: "lifecycle",
    action,
    fallbackScheme: "http",
  });
  assert.equal(request.scheme, "http");
  assert.doesNotMatch(headOf(request), /secret/);
});

Deno.test("buildRequest names what is wrong", () => {
  const call = { container: {}, podIP: undefined, purpose: "probe" as const };
  assert.throws(() => buildRequest({ ...call, action: { port: 80 } }), /no IP address yet/);
  assert.throws(
    () => buildRequest({ ...call, action: { port: 80, host: "h", scheme: "ftp" } }),
    /protocol scheme "ftp"/,
  );
  const httpHeaders = [{ name: "a b", value: "" }];
  assert.throws(
    () => buildRequest({ ...call, action: { port: 80, host: "h", httpHeaders } }),
    /header field name "a b"/,
  );
});
