import { main } from "./mod/app/main.ts";

Deno.exit(await main(Deno.args));
