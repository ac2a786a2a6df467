// SPDX-License-Identifier: Apache-2.0

/** What dist_bench asks for: operations between two resets of the data, and timed batches, after one as a warm-up. */
record Plan(int iterations, int batches) {}
