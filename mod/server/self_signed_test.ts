import assert from "@assert";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { createDenoHost } from "../base/deno_host.ts";
import { silent } from "../base/log.ts";
import { selfSignedFiles } from "./self_signed.ts";

const day = 86_400_000;

Deno.test("a self-signed certificate is made for the host, kept, and used again", async () => {
  const dir = await Deno.makeTempDir({ prefix: "server-test-" });
  try {
    const options = { certDir: `${dir}/pki`, hostname: "node1", host: createDenoHost(), now: Date.now(), log: silent };
    const { certFile, keyFile } = await selfSignedFiles(options);
    const text = await Deno.readTextFile(certFile);
    const leaf = new X509Certificate(text);
    assert.match(leaf.subject, /^CN=node1@\d+$/);
    assert.equal(leaf.subjectAltName, "DNS:node1");
    assert.ok(Date.parse(leaf.validTo) - options.now > 364 * day);
    assert.equal((text.match(/BEGIN CERTIFICATE/g) ?? []).length, 2);
    assert.equal(((await Deno.stat(keyFile)).mode ?? 0) & 0o777, 0o600);
    await selfSignedFiles(options);
    assert.equal(await Deno.readTextFile(certFile), text);
    await Deno.remove(keyFile);
    await selfSignedFiles(options);
    assert.ok(
      new X509Certificate(await Deno.readTextFile(certFile)).checkPrivateKey(
        createPrivateKey(await Deno.readTextFile(keyFile)),
      ),
    );
    await Deno.remove(certFile);
    await assert.rejects(selfSignedFiles(options), /kubelet\.crt is missing/);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});
