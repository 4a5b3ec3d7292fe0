import assert from "@assert";
import { servingTemplate } from "./certificates.ts";

Deno.test("the serving certificate has every address of the node, sorted; none is asked for without an IP address", () => {
  const addresses = (...list: [string, string][]) => ({
    status: { addresses: list.map(([type, address]) => ({ type, address })) },
  });
  const subject = { commonName: "system:node:n1", organizations: ["system:nodes"] };
  assert.equal(servingTemplate("n1", undefined), undefined);
  assert.equal(servingTemplate("n1", addresses(["Hostname", "n1"])), undefined);
  assert.deepEqual(
    servingTemplate(
      "n1",
      addresses(
        ["InternalIP", "10.0.0.2"],
        ["ExternalIP", "1.2.3.4"],
        ["InternalIP", "fd00::1"],
        ["Hostname", "n1"],
        ["InternalDNS", "n1"],
        ["ExternalDNS", "a.example"],
      ),
    ),
    { ...subject, dnsNames: ["a.example", "n1"], ipAddresses: ["1.2.3.4", "10.0.0.2", "fd00::1"] },
  );
  assert.deepEqual(servingTemplate("n1", addresses(["InternalIP", "10.0.0.2"], ["Hostname", "10.0.0.2"])), {
    ...subject,
    dnsNames: [],
    ipAddresses: ["10.0.0.2"],
  });
});
