import type { Context } from "./context.ts";

const suites = new Set([
  ...["AES_128_GCM_SHA256", "AES_256_GCM_SHA384", "CHACHA20_POLY1305_SHA256"],
  ...["ECDHE_ECDSA", "ECDHE_RSA"].flatMap((exchange) =>
    [
      "AES_128_CBC_SHA",
      "AES_256_CBC_SHA",
      "AES_128_CBC_SHA256",
      "AES_128_GCM_SHA256",
      "AES_256_GCM_SHA384",
      "CHACHA20_POLY1305",
      "CHACHA20_POLY1305_SHA256",
      "RC4_128_SHA",
    ].map((cipher) => `${exchange}_WITH_${cipher}`)
  ),
  "ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
  ...[
    "RC4_128_SHA",
    "3DES_EDE_CBC_SHA",
    "AES_128_CBC_SHA",
    "AES_256_CBC_SHA",
    "AES_128_CBC_SHA256",
    "AES_128_GCM_SHA256",
    "AES_256_GCM_SHA384",
  ].map((cipher) => `RSA_WITH_${cipher}`),
].map((name) => `TLS_${name}`));

// Go's ids: P-256, P-384, P-521, X25519 and the three hybrids with ML-KEM.
const curves = new Set([23, 24, 25, 29, 4587, 4588, 4589]);

/** TLS, authentication, logs, tracing and diagnostics. */
export function checkServer(context: Context): void {
  const { config, gates, written } = context;
  for (const suite of config.tlsCipherSuites) {
    if (!suites.has(suite)) {
      context.refuseText(
        "tlsCipherSuites",
        `${
          JSON.stringify(suite.slice(0, 80))
        } is no cipher suite; use Go names such as TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256`,
      );
    }
  }
  for (const curve of config.tlsCurvePreferences) {
    if (!curves.has(curve)) {
      context.refuseText("tlsCurvePreferences", `${curve} is no curve; use ${[...curves].join(", ")}`);
    }
  }
  if (config.serverTLSBootstrap && !gates.enabled("RotateKubeletServerCertificate")) {
    context.refuse(
      "serverTLSBootstrap",
      "needs feature gate RotateKubeletServerCertificate; turn it on or set the field to false",
    );
  }
  if (context.standalone) {
    if (config.authentication.webhook.enabled) {
      context.refuse("authentication.webhook.enabled", "needs an API server; give --kubeconfig or set it to false");
    }
    if (config.authorization.mode === "Webhook") {
      context.refuse("authorization.mode", "needs an API server; give --kubeconfig or set it to AlwaysAllow");
    }
  }
  if (config.enableSystemLogQuery && !gates.enabled("NodeLogQuery")) {
    context.refuse("enableSystemLogQuery", "needs feature gate NodeLogQuery");
  }
  if (config.enableSystemLogQuery && !config.enableSystemLogHandler) {
    context.refuse("enableSystemLogQuery", "needs enableSystemLogHandler: true");
  }
  checkLogging(context);
  const endpoint = written.tracing?.endpoint;
  if (endpoint !== undefined && endpoint.includes("//") && !/^(dns|unix|unix-abstract):/.test(endpoint)) {
    context.refuse("tracing.endpoint", "must have no scheme or one of dns, unix, unix-abstract");
  }
}

function checkLogging(context: Context): void {
  const { config, gates, written } = context;
  if (!(config.logging.flushFrequencyMs > 0)) context.refuse("logging.flushFrequency", "must be more than 0");
  if (config.logging.vmodule.length > 0 && written.logging?.format !== "text") {
    context.refuseText("logging.vmodule", "works with the text format only; remove it or set logging.format to text");
  }
  config.logging.vmodule.forEach((item, index) => {
    if (item.filePattern === "" || /[=,]/.test(item.filePattern)) {
      context.refuseText(
        "logging.vmodule",
        `item ${index}: pattern ${JSON.stringify(item.filePattern)} must not be empty or contain = or ,`,
      );
    }
    if (item.verbosity > 2 ** 31 - 1) {
      context.refuseText("logging.vmodule", `item ${index}: verbosity ${item.verbosity} must be at most 2147483647`);
    }
  });
  if (gates.enabled("LoggingAlphaOptions")) return;
  for (const format of ["text", "json"] as const) {
    const options = written.logging?.options?.[format];
    if (options?.splitStream === true) {
      context.refuse(`logging.options.${format}.splitStream`, "needs feature gate LoggingAlphaOptions");
    }
    if ((options?.infoBufferSize ?? "0") !== "0") {
      context.refuse(`logging.options.${format}.infoBufferSize`, "needs feature gate LoggingAlphaOptions");
    }
  }
}
