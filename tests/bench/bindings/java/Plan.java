// SPDX-License-Identifier: Apache-2.0

/** What dist_bench asks for: operations between two resets of the data, and how often that is timed, after once in vain. */
record Plan(int iterations, int batches) {}
