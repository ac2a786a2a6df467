// SPDX-License-Identifier: Apache-2.0

/**
 * Runs one function on several replicas at the same time and lets them meet in collectives: tf.distribute's
 * model for host CPUs, by libdist. Begin with {@link org.libdist.Strategy}.
 *
 * <p>A {@link org.libdist.Strategy} has replicas; a function that it runs gets a {@link org.libdist.Replica},
 * whose collectives meet the others'. {@link org.libdist.Tensor}s are views of memory outside the heap,
 * {@link org.libdist.Value}s what runs take and give, {@link org.libdist.Variable}s outlive runs, {@link
 * org.libdist.Dataset}s give batches. What fails throws a {@link org.libdist.DistException}; what your own
 * functions throw comes back itself. What is AutoCloseable holds native memory, and is closed by the garbage
 * collector if not by you.
 */
package org.libdist;
