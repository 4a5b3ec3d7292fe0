import "reflect-metadata";
import assert from "@assert";
import { createPrivateKey } from "node:crypto";
import * as x509 from "@peculiar/x509";
import { makeKeyAndProof } from "./key.ts";

Deno.test("keys of every kind prove themselves", async () => {
  for (const type of ["ECDSAP256", "ECDSAP384", "ED25519", "RSA3072", "ECDSAP521"]) {
    const { keyPem, request } = await makeKeyAndProof(type);
    assert.match(keyPem, /^-----BEGIN PRIVATE KEY-----/, type);
    const parsed = new x509.Pkcs10CertificateRequest(new Uint8Array(request));
    assert.equal(parsed.subject, "", type);
    const expected = createPrivateKey(keyPem).asymmetricKeyType;
    assert.ok(["rsa", "ec", "ed25519"].includes(expected ?? ""), type);
    // The engine's own WebCrypto has no P-521.
    if (type !== "ECDSAP521") assert.equal(await parsed.verify(), true, type);
  }
  await assert.rejects(makeKeyAndProof("DSA"), /unknown key type "DSA"; use RSA3072/);
});
