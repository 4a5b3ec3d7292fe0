import assert from "@assert";
import { createDenoHost } from "../base/deno_host.ts";
import { FakeClock } from "../base/fake_clock.ts";
import { RecordingLogger } from "../base/log.ts";
import { CertificateFiles } from "./certificate_files.ts";
import { dirWith, makeAuthority } from "./testing.ts";

Deno.test("certificate files: changes are handed on, bad ones told once and kept out", async () => {
  const authority = await makeAuthority("ca");
  const [one, two] = [await authority.certify("CN=one"), await authority.certify("CN=two")];
  const dir = await dirWith({ "tls.crt": one.cert, "tls.key": one.key });
  try {
    const log = new RecordingLogger();
    const files = new CertificateFiles({
      certFile: `${dir}/tls.crt`,
      keyFile: `${dir}/tls.key`,
      clientCAFile: "",
      host: createDenoHost(),
      clock: new FakeClock(0),
      log,
    });
    assert.equal((await files.load()).cert, one.cert);
    const broken: [name: string, text: string, problem: RegExp][] = [
      ["tls.crt", two.cert, /the key in .*tls\.key does not belong to the certificate in .*tls\.crt/],
      ["tls.key", "nonsense", /the key file .*tls\.key holds no usable private key/],
      ["tls.crt", "nonsense", /tls\.crt holds no PEM certificate/],
      ["tls.crt", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", /certificate 1 is damaged/],
    ];
    for (const [name, text, problem] of broken) {
      await Deno.writeTextFile(`${dir}/tls.crt`, one.cert);
      await Deno.writeTextFile(`${dir}/tls.key`, one.key);
      await Deno.writeTextFile(`${dir}/${name}`, text);
      await assert.rejects(files.load(), problem);
    }
    await Deno.remove(`${dir}/tls.key`);
    await assert.rejects(files.load(), /tls\.key/);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});
