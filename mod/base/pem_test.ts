import assert from "@assert";
import { certificatesIn, privateKeyIn } from "./pem.ts";

const block = (label: string, text = "AAAA") => `-----BEGIN ${label}-----\n${text}\n-----END ${label}-----`;

Deno.test("certificates and a key of one text, in any order and among other things", () => {
  const [a, b] = [block("CERTIFICATE", "A"), block("CERTIFICATE", "B")];
  for (const label of ["PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY", "ENCRYPTED PRIVATE KEY"]) {
    const key = block(label);
    const text = `words\n${key}\n${a}\n${block("EC PARAMETERS")}\n${b}\n`;
    assert.equal(privateKeyIn(text), key, label);
    assert.deepEqual(certificatesIn(text), [a, b]);
  }
});

Deno.test("what is cut off, or ends as another thing, is none", () => {
  const texts = [
    "",
    "-----BEGIN PRIVATE KEY-----\nAAAA",
    "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----",
    block("PUBLIC KEY"),
    "-----BEGIN CERTIFICATE-----\nAAAA",
  ];
  for (const text of texts) {
    assert.equal(privateKeyIn(text), undefined, text);
    assert.deepEqual(certificatesIn(text), [], text);
  }
});
