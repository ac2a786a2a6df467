// SPDX-License-Identifier: Apache-2.0

/** The request of dist_bench: operations between two resets of the data, and timed batches after one warm-up batch. */
record Plan(int iterations, int batches) {}
