const certificate = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g;
const privateKey = /-----BEGIN ((?:[A-Z]+ )?)PRIVATE KEY-----[\s\S]*?-----END \1PRIVATE KEY-----/;

/** The certificates of a PEM text, in order. They may be unreadable themselves. */
export function certificatesIn(text: string): string[] {
  return text.match(certificate) ?? [];
}

/** The first private key of a PEM text, which may hold other things too; undefined when there is none. */
export function privateKeyIn(text: string): string | undefined {
  return text.match(privateKey)?.[0];
}
