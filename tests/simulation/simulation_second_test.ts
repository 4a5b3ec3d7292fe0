import { testSeeds } from "./groups.ts";

for (let first = 101; first <= 181; first += 20) testSeeds(first, 20);
