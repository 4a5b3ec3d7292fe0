import { importFault, resolveImport } from "./layers.ts";

const repository = decodeURIComponent(new URL("../../", import.meta.url).pathname);

function check(
  context: Deno.lint.RuleContext,
  node: Deno.lint.Node,
  source: Deno.lint.StringLiteral,
  typeOnly: boolean,
): void {
  if (!context.filename.startsWith(repository)) return;
  const from = context.filename.slice(repository.length);
  const to = resolveImport(from, source.value);
  const fault = to === undefined ? undefined : importFault(from, to, typeOnly);
  if (fault !== undefined) context.report({ node, message: fault });
}

/** Our lint rules: `denolet/layers` holds the import table of layers.ts. */
const plugin: Deno.lint.Plugin = {
  name: "denolet",
  rules: {
    layers: {
      create: (context) => ({
        ImportDeclaration: (node) =>
          check(context, node, node.source, node.importKind === "type" || onlyTypes(node.specifiers)),
        ExportAllDeclaration: (node) => check(context, node, node.source, node.exportKind === "type"),
        ExportNamedDeclaration: (node) => {
          if (node.source) check(context, node, node.source, node.exportKind === "type");
        },
        ImportExpression: (node) => {
          if (node.source.type === "Literal" && typeof node.source.value === "string") {
            check(context, node, node.source as Deno.lint.StringLiteral, false);
          }
        },
      }),
    },
  },
};

function onlyTypes(specifiers: Deno.lint.ImportDeclaration["specifiers"]): boolean {
  return specifiers.length > 0 &&
    specifiers.every((one) => one.type === "ImportSpecifier" && one.importKind === "type");
}

export default plugin;
