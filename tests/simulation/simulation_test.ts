import { testSeeds } from "./groups.ts";

// Together with simulation_second_test.ts, which runs beside it, the part of the simulation that the gate can wait for.
for (let first = 1; first <= 81; first += 20) testSeeds(first, 20);
