import assert from "@assert";
import { hostNetworkHosts, managedHosts } from "./hosts.ts";

const head = "# Kubernetes-managed hosts file.\n" +
  "127.0.0.1\tlocalhost\n" +
  "::1\tlocalhost ip6-localhost ip6-loopback\n" +
  "fe00::0\tip6-localnet\n" +
  "fe00::0\tip6-mcastprefix\n" +
  "fe00::1\tip6-allnodes\n" +
  "fe00::2\tip6-allrouters\n";
const aliases = [{ ip: "1.2.3.4", hostnames: ["foo", "foo.bar"] }, { ip: "::5" }];

Deno.test("the managed file names the pod for each of its addresses", () => {
  const pod = { podIPs: ["10.0.0.2", "fd00::2"], hostname: "web", domain: "" };
  assert.equal(managedHosts(pod), `${head}10.0.0.2\tweb\nfd00::2\tweb\n`);
  assert.equal(
    managedHosts({ ...pod, podIPs: ["10.0.0.2"], domain: "sub.ns.svc.cluster.local", aliases }),
    `${head}10.0.0.2\tweb.sub.ns.svc.cluster.local\tweb\n` +
      "\n# Entries added by HostAliases.\n1.2.3.4\tfoo\tfoo.bar\n::5\t\n",
  );
  assert.equal(managedHosts({ ...pod, podIPs: [], aliases: [] }), head);
});

Deno.test("a pod in the node's network has the node's file", () => {
  assert.equal(
    hostNetworkHosts("127.0.0.1 localhost\n", aliases.slice(0, 1)),
    "# Kubernetes-managed hosts file (host network).\n127.0.0.1 localhost\n" +
      "\n# Entries added by HostAliases.\n1.2.3.4\tfoo\tfoo.bar\n",
  );
  assert.equal(hostNetworkHosts(""), "# Kubernetes-managed hosts file (host network).\n");
});
