import assert from "@assert";
import { beyondAscii } from "./bundle.ts";

Deno.test("bundle: a character beyond ASCII is found, with what stands around it", () => {
  const cases: { text: string; found: string | undefined }[] = [
    { text: "", found: undefined },
    { text: `const end = /[.\\u2026]$/;\x00\x7f`, found: undefined },
    { text: "const end = /[.\u2026]$/;", found: "const end = /[.\u2026]$/;" },
    { text: `${"a".repeat(50)}\u00e9${"b".repeat(50)}`, found: `${"a".repeat(30)}\u00e9${"b".repeat(29)}` },
  ];
  for (const { text, found } of cases) assert.equal(beyondAscii(text), found);
});
