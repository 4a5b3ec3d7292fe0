import { main } from "./mod/app/main.ts";

const code = await main(Deno.args);
if (code !== undefined) Deno.exit(code);
