import { testSeeds } from "./groups.ts";

// The same world with the node as a member of a cluster, whose API server has faults of its own.
for (let first = 1; first <= 41; first += 20) testSeeds(first, 20, { cluster: true });
