// SPDX-License-Identifier: Apache-2.0

/**
 * Runs one function on several replicas at the same time and gives these replicas collectives. Replicas are
 * threads of the process, or of several processes. This package binds libdist, a C library that brings the
 * programming model of TensorFlow's tf.distribute to host CPUs. Begin with {@link org.libdist.Strategy}.
 *
 * <p>A {@link org.libdist.Strategy} holds the replicas. A function that it runs receives a {@link
 * org.libdist.Replica}, whose collectives exchange data with the other replicas. {@link org.libdist.Tensor}s
 * are views of memory outside the heap, {@link org.libdist.Value}s are passed into runs and returned from
 * them, {@link org.libdist.Variable}s outlive runs, and {@link org.libdist.Dataset}s produce batches.
 *
 * <p>Failures that libdist reports are thrown as a {@link org.libdist.DistException}. Exceptions that your
 * own functions throw are rethrown unchanged by the call that received the function. Objects that are {@link
 * java.lang.AutoCloseable} hold native memory. Close them when you no longer need them; otherwise the garbage
 * collector closes most of them.
 */
package org.libdist;
