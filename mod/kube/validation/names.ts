import type { Problems } from "./problem.ts";

const label = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/;
const nameChars = /^(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;
const lower = "use lower-case letters, digits and '-', with a letter or digit at both ends";

/** True for a DNS label (RFC 1123). */
export function isLabel(text: string): boolean {
  return text.length <= 63 && label.test(text);
}

/** True for a DNS subdomain (RFC 1123): labels joined by dots, at most 253 characters. A label may be of any length. */
export function isSubdomain(text: string): boolean {
  return text.length <= 253 && text.split(".").every((part) => label.test(part));
}

/** True for a DNS name that may have underscores, as search domains may. */
export function isSearchDomain(text: string): boolean {
  return text.length <= 253 && text.split(".").every((part) => /^_?[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?$/.test(part));
}

/** True for a label value. */
export function isLabelValue(text: string): boolean {
  return text.length <= 63 && (text === "" || nameChars.test(text));
}

/** True for a qualified name: a name, with or without a DNS subdomain and `/` before it. */
export function isQualifiedName(text: string): boolean {
  const parts = text.split("/");
  const name = parts.at(-1) ?? "";
  if (parts.length > 2 || (parts.length === 2 && !isSubdomain(parts[0] ?? ""))) return false;
  return name.length <= 63 && nameChars.test(name);
}

/** True for the name of an environment variable: printable ASCII without `=` (the relaxed rule, always on in v1.36). */
export function isEnvName(text: string): boolean {
  return /^[\x20-\x3c\x3e-\x7e]+$/.test(text);
}

/** True for an IPv4 or IPv6 address. */
export function isIp(text: string): boolean {
  if (/^\d{1,3}(?:\.\d{1,3}){3}$/.test(text)) {
    return text.split(".").every((part) => Number(part) <= 255 && (part === "0" || !part.startsWith("0")));
  }
  return text.includes(":") && /^[0-9a-fA-F:.]+$/.test(text) && URL.canParse(`http://[${text}]/`);
}

/** Checks a DNS label that must be there. */
export function checkLabel(p: Problems, path: string, text: string | undefined): void {
  if (!text) p.required(path, `${lower}, at most 63 characters`);
  else if (!isLabel(text)) p.add(path, text, "is no DNS label", `${lower}, at most 63 characters`);
}

/** Checks a DNS subdomain that must be there. */
export function checkSubdomain(p: Problems, path: string, text: string | undefined): void {
  const remedy = `${lower}, parts joined by '.', at most 253 characters`;
  if (!text) p.required(path, remedy);
  else if (!isSubdomain(text)) p.add(path, text, "is no DNS subdomain", remedy);
}

/** Checks a qualified name, such as a label key. */
export function checkQualifiedName(p: Problems, path: string, text: string): void {
  if (isQualifiedName(text)) return;
  const remedy = "use letters, digits, '-', '_', '.' (at most 63), after an optional DNS subdomain and '/'";
  p.add(path, text, "is no qualified name", remedy);
}

/** Checks labels or a selector made like labels. */
export function checkLabels(p: Problems, path: string, labels: Record<string, string> | undefined): void {
  for (const [key, value] of Object.entries(labels ?? {})) {
    checkQualifiedName(p, path, key);
    if (!isLabelValue(value)) {
      p.add(`${path}[${key}]`, value, "is no label value", "use at most 63 letters, digits, '-', '_', '.', or nothing");
    }
  }
}

/** Checks a port number. */
export function checkPortNumber(p: Problems, path: string, port: number): void {
  if (!Number.isInteger(port) || port < 1 || port > 65535) {
    p.add(path, port, "is no port number", "use a number from 1 to 65535");
  }
}

/** Checks a port name. */
export function checkPortName(p: Problems, path: string, name: string): void {
  const good = name.length <= 15 && /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/.test(name) && /[a-z]/.test(name) &&
    !name.includes("--");
  if (good) return;
  const remedy = "use at most 15 lower-case letters, digits and single '-' inside, with at least one letter";
  p.add(path, name, "is no port name", remedy);
}

/** Checks a port given by number or name. */
export function checkPort(p: Problems, path: string, port: number | string): void {
  if (typeof port === "number") checkPortNumber(p, path, port);
  else checkPortName(p, path, port);
}
